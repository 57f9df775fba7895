"""Decides which Keras the source is judged by, and why."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.machine.environment import TENSORFLOWS
from mpdoctor.facts.versions import LEGACY_KERAS, Keras
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.project.asked_of_system import environment_variable
from mpdoctor.project.python_environments import environment_of, release_beside, release_in
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings

BESIDE = "installed beside mpdoctor"
_OF_ASSERTIONS = ("assert", ".__version__")


@dataclass(frozen=True)
class JudgedBy:
    """`usual`, and the files of a directory that name another Keras themselves. `is_guessed`: nothing asks for `usual`,
    which is what is installed beside mpdoctor, or Keras 3."""

    usual: Keras
    others: Mapping[str, Keras] = field(default_factory=dict)
    is_guessed: bool = False

    def of(self, path: str) -> Keras:
        return self.others.get(path, self.usual)

    def by_keras(self) -> tuple[tuple[Keras, tuple[str, ...]], ...]:
        """The Kerases other than the usual one, and the files of each."""
        files: dict[Keras, list[str]] = {}
        for path, keras in self.others.items():
            if dataclasses.replace(keras, because=self.usual.because) != self.usual:
                files.setdefault(keras, []).append(path)
        return tuple((keras, tuple(paths)) for keras, paths in files.items())


def keras_of_target(
    target: Target,
    settings: Settings,
    paths: Sequence[str],
    facts: Mapping[str, SourceFacts],
    runs: Iterable[ExaminationFacts],
) -> JudgedBy:
    """The Keras by which a target is judged. The first of these that says one:

    1. `--keras` or the configuration (though a file that imports tf_keras is not judged by Keras 3);
    2. the examiner, which has seen the Keras that ran;
    3. the packages of the interpreter that `--python` names (with the same exception);
    4. the text of the target's files;
    5. the environment, the project's files, those in the folder of an imported file, the Keras installed beside
       mpdoctor;
    6. Keras 3.

    `facts`: of all targets, because a file of one may import a file of another; `paths`: this target's files."""
    ran = [run.keras for run in runs if run.keras is not None]
    if settings.keras is None and ran:
        return JudgedBy(ran[0])
    named = settings.keras or (_keras_of_python(settings.python) if settings.python is not None else None)
    if named is not None:
        own = _declared_by_each(facts[path] for path in paths if path in facts) if named.is_keras3 else {}
        return JudgedBy(named, {path: keras for path, keras in own.items() if not keras.is_keras3})
    everywhere = _declared_with_imports(facts.values())
    declared = {path: everywhere[path] for path in paths if path in everywhere}
    if target.kind != "directory" and declared:  # one program: whichever of its files says so, says it for all
        return JudgedBy(next(iter(declared.values())))
    return _keras_of_environment(target, paths, facts, declared)


def _keras_of_environment(
    target: Target, paths: Sequence[str], facts: Mapping[str, SourceFacts], declared: Mapping[str, Keras]
) -> JudgedBy:
    """The Keras that the project asks for, or that is installed; else Keras 3. `declared`: what files say of
    themselves, by path."""
    asked_for = _asked_for_around(target)
    usual = asked_for or _keras_from_versions(release_beside("keras"), release_beside("tensorflow"), BESIDE) or Keras()
    if target.kind != "directory":
        imported = [used for path in paths if path in facts for used in facts[path].imports]
        handed_on = next(iter(_asked_for_nearer(imported, usual).values()), None) if asked_for is None else None
        return JudgedBy(handed_on or usual, is_guessed=asked_for is None and handed_on is None)
    nearer = _asked_for_nearer(paths, usual)
    guessed = (
        {**_trained_in_cloud(paths, facts), **_asked_for_by_imported(paths, facts, nearer)} if asked_for is None else {}
    )
    others = {**guessed, **nearer, **declared}
    if asked_for is None:
        others = {**_keras_of_own_package(paths, facts, others), **others}
    started = _tf_keras_of_started(paths, facts, usual) if usual.is_keras3 else None
    return JudgedBy(started or usual, others, is_guessed=asked_for is None and started is None)


def _keras_of_own_package(
    paths: Sequence[str], facts: Mapping[str, SourceFacts], known: Mapping[str, Keras]
) -> dict[str, Keras]:
    """The Keras of files for which nothing says one, in a package most of whose files have the same one, and none
    another. `known`: the Kerases of files, by path. A script that sets TF_USE_LEGACY_KERAS=1 says it for all files that
    it imports, and so for the rest of their package."""
    packages: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        if path in facts and facts[path].package:
            parts = facts[path].package.split(".")
            packages.setdefault((parts[0], str(Path(path).parents[len(parts) - 1])), []).append(path)
    found: dict[str, Keras] = {}
    for files in packages.values():
        kerases = [known[path] for path in files if path in known]
        if 2 * len(kerases) >= len(files) and len({(keras.package, keras.version) for keras in kerases}) == 1:
            found.update((path, kerases[0]) for path in files if path not in known)
    return found


def _tf_keras_of_started(paths: Sequence[str], facts: Mapping[str, SourceFacts], usual: Keras) -> Keras | None:
    """tf_keras, where one of the files starts other programs with TF_USE_LEGACY_KERAS=1; else None."""
    from mpdoctor.project.declared_versions.legacy_keras import sets_it_for_a_command

    place = next((path for path in paths if path in facts and sets_it_for_a_command(facts[path].text)), None)
    if place is None:
        return None
    return Keras(
        "tf_keras", release_beside("tf_keras"), usual.tensorflow, f"{place} starts programs with {LEGACY_KERAS}=1"
    )


def _trained_in_cloud(paths: Sequence[str], facts: Mapping[str, SourceFacts]) -> dict[str, Keras]:
    """The files that others of a directory have a cloud train, with a TensorFlow that they name."""
    from mpdoctor.project.keras_of_project import keras_from_estimators

    return keras_from_estimators({path: facts[path].text for path in paths if path in facts})


def _asked_for_nearer(paths: Sequence[str], usual: Keras) -> dict[str, Keras]:
    """The files of a directory in whose own folders a project asks for another Keras, and notebooks that install it."""
    if _environment_says_tf_keras():
        return {}
    from mpdoctor.project.keras_of_project import KerasOfFolders, keras_from_file

    known = KerasOfFolders()
    of_places: dict[str, Keras | None] = {}  # of each folder, and of each notebook
    others = {}
    for path in paths:
        place = path if path.endswith(".ipynb") else os.path.dirname(path)  # noqa: PTH120 - no Path for each file
        if place not in of_places:
            of_places[place] = keras_from_file(Path(path), known)
        keras = of_places[place]
        if keras is not None and keras != usual:
            others[path] = keras
    return others


def _asked_for_by_imported(
    paths: Sequence[str], facts: Mapping[str, SourceFacts], nearer: Mapping[str, Keras]
) -> dict[str, Keras]:
    """The Keras of files that import a file whose own folder asks for one, a package with its own requirements say.
    `nearer`: for each file what its folder asks for."""
    if not nearer:
        return {}
    importing = ((path, used) for path in reversed(paths) if path in facts for used in reversed(facts[path].imports))
    return {path: nearer[used] for path, used in importing if used in nearer}


def _declared_with_imports(sources: Iterable[SourceFacts]) -> dict[str, Keras]:
    """The Keras of each file: the one that it declares itself, else that of a file that imports it, else that of a file
    that it imports."""
    sources = list(sources)
    own = _declared_by_each(sources)
    if not own:
        return {}
    handed_on = {path: own[source.path] for source in sources if source.path in own for path in source.imports}
    taken = {source.path: own[path] for source in sources for path in source.imports if path in own}
    known = {**taken, **handed_on, **own}
    return {source.path: known[source.path] for source in sources if source.path in known}


def _declared_by_each(sources: Iterable[SourceFacts]) -> dict[str, Keras]:
    said = ((source.path, _declared_by(source)) for source in sources)
    return {path: keras for path, keras in said if keras is not None}


def _declared_by(source: SourceFacts) -> Keras | None:
    """The Keras that a file is part of or whose names it uses, else the one whose version it asserts."""
    if source.package.partition(".")[0] == "tf_keras":
        return Keras("tf_keras", because=f"{source.path} is part of tf_keras")
    if source.declared_keras is not None:
        return Keras(source.declared_keras, because=f"{source.path} says so")
    if not all(word in source.text for word in _OF_ASSERTIONS):
        return None
    from mpdoctor.project.keras_of_project import keras_from_assertions

    return keras_from_assertions(source.text, Path(source.path))


def _asked_for_around(target: Target) -> Keras | None:
    """The Keras that the environment or the project asks for."""
    if _environment_says_tf_keras():
        return Keras(
            "tf_keras", release_beside("tf_keras"), release_beside("tensorflow"), "TF_USE_LEGACY_KERAS=1 is set"
        )
    from mpdoctor.project.keras_of_project import keras_from_file, keras_from_project

    place = target.path or Path()
    return keras_from_project(place) if target.kind == "directory" else keras_from_file(place)


def _keras_of_python(python: Path) -> Keras | None:
    """The Keras among the packages of an interpreter, which is not started; None where there is none."""
    environment = environment_of(python)
    if environment is None:
        return None
    tensorflow, because = release_in(environment, *TENSORFLOWS), f"installed beside --python {python}"
    if _environment_says_tf_keras():
        version = release_in(environment, "tf_keras")
        return Keras("tf_keras", version, tensorflow, f"TF_USE_LEGACY_KERAS=1 is set, {because}") if version else None
    return _keras_from_versions(release_in(environment, "keras"), tensorflow, because)


def _keras_from_versions(keras: str, tensorflow: str, because: str) -> Keras | None:
    """The Keras of these installed releases, "" for one that is not installed: up to 2.5 TensorFlow brought its own."""
    if keras:
        return Keras("tf.keras" if keras.startswith("2") else "keras", keras, tensorflow, because)
    return Keras("tf.keras", tensorflow, tensorflow, because) if re.match(r"2\.[0-5]\.", tensorflow) else None


def _environment_says_tf_keras() -> bool:
    return environment_variable("TF_USE_LEGACY_KERAS") == "1"
