"""Which Keras a project asks for, as its files say (`declared_versions`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from mpdoctor.facts.versions import LEGACY_KERAS, Keras
from mpdoctor.project.asked_of_system import is_there
from mpdoctor.project.declared_versions import may_hold_pins, pins_from_declarations, pins_from_locks
from mpdoctor.project.declared_versions.images import pins_from_images
from mpdoctor.project.declared_versions.legacy_keras import file_that_sets_it, is_project
from mpdoctor.project.declared_versions.pins import KERAS, TENSORFLOW, TF_KERAS, Pin
from mpdoctor.project.keras_from_pins import installed_release, is_companion, keras_from_commands, keras_from_pins
from mpdoctor.project.project_folder import declares_project

_MOST_PINS = 300
_RANGED = (*TENSORFLOW, *KERAS)
_Found = TypeVar("_Found")


class _Prose(NamedTuple):
    """The folder whose prose names a certain Keras, and what it says."""

    folder: Path
    pins: list[Pin]


class KerasOfFolders:
    """Cache of what was found for folders, for callers that ask for many: nothing is read twice."""

    def __init__(self) -> None:
        self._declared: dict[Path, Keras | None] = {}
        self._prose: dict[Path, _Prose | None] = {}
        self._by_folder: dict[Path, Keras | None] = {}
        self._pins: dict[Path, list[Pin]] = {}

    def declared(self, here: Path) -> Keras | None:
        """The Keras that the nearest project asks for that holds a folder, in files that programs read."""
        return _nearest_answer(here, self._declared, lambda folder: self._from_files(folder, is_nearest=folder == here))

    def named_in_prose(self, here: Path) -> Keras | None:
        """The Keras that its prose says to install, within what those files allow."""
        if here not in self._by_folder:
            prose = _nearest_in_prose(here, self._prose, _prose_of_folder)
            self._by_folder[here] = (
                keras_from_pins([*prose.pins, *self._pins_up_to(prose.folder, here)]) if prose else None
            )
        return self._by_folder[here]

    def ranges(self, here: Path) -> list[str]:
        """What the nearest files say of the releases of TensorFlow and Keras that say anything of them."""
        self.declared(here)
        for folder in (here, *here.parents):
            told = [pin.told for pin in self._pins.get(folder, ()) if pin.name in _RANGED and len(pin.allowed)]
            if told:
                return told
        return []

    def _from_files(self, folder: Path, is_nearest: bool) -> Keras | None:
        pins = self._pins[folder] = []
        return _keras_from_folder(folder, is_nearest, pins) if may_hold_pins(folder) else None

    def _pins_up_to(self, top: Path, here: Path) -> list[Pin]:
        folders = (here, *here.parents)
        return [pin for folder in folders[: folders.index(top) + 1] for pin in self._pins.get(folder, ())]


def keras_from_project(near: Path, known: KerasOfFolders | None = None) -> Keras | None:
    """The Keras that the nearest project asks for that holds a directory; None where none asks for a certain one.

    `known` keeps what was found for a directory, for those who ask for many."""
    known, here = known or KerasOfFolders(), _absolute(near)
    return known.declared(here) or known.named_in_prose(here)


def keras_from_file(path: Path, known: KerasOfFolders | None = None) -> Keras | None:
    """The Keras that a notebook installs itself, else the one that the project around a file asks for. What a notebook
    has commented out says less than what a project declares, and more than its prose."""
    if path.suffix != ".ipynb":
        return keras_from_project(path.parent, known)
    from mpdoctor.project.declared_versions.notebooks import pins_from_notebook

    known, here = known or KerasOfFolders(), _absolute(path.parent)
    run, commented = map(_each_once, pins_from_notebook(path))
    return (
        keras_from_pins(run)
        or known.declared(here)
        or (keras_from_commands([*run, *commented]) if commented else None)
        or known.named_in_prose(here)
    )


def keras_from_estimators(texts: Mapping[str, str]) -> dict[str, Keras]:
    """The Keras of the programs, by path, that others among these texts have a cloud train; of nested folders the inner
    one counts."""
    from mpdoctor.project.declared_versions.estimators import trained_in_cloud

    of_folders: dict[Path, list[Pin]] = {}
    for path, text in texts.items():
        for trained in trained_in_cloud(text, Path(path)):
            of_folders.setdefault(trained.folder, []).append(trained.pin)
    keras_by_path: dict[str, Keras] = {}
    for path in texts if of_folders else ():
        folder = next((folder for folder in _absolute(Path(path)).parents if folder in of_folders), None)
        keras = keras_from_pins(of_folders[folder]) if folder is not None else None
        if keras is not None:
            keras_by_path[path] = keras
    return keras_by_path


def keras_from_assertions(text: str, path: Path) -> Keras | None:
    """The Keras that the text of a program asserts to run with."""
    from mpdoctor.project.declared_versions.assertions import pins_from_assertions

    return keras_from_pins(list(pins_from_assertions(text, path)))


def ranges_around(near: Path) -> list[str]:
    """Sentences of the files around a directory whose ranges of releases name no certain Keras."""
    return KerasOfFolders().ranges(_absolute(near))


def release_in_prose_around(near: Path) -> tuple[str, str] | None:
    """The nearest page around a directory that names a release of TensorFlow, and its words."""
    from mpdoctor.project.declared_versions.prose import release_in_prose

    return _nearest_in_prose(_absolute(near), {}, release_in_prose)


def asks_for_tf_keras(near: Path) -> bool:
    """Whether the nearest project that holds a directory names tf_keras among what it needs."""
    here = _absolute(near)
    for folder in (here, *here.parents):
        pins = pins_from_declarations(folder) if may_hold_pins(folder) else []
        if pins or is_there(folder / ".git"):
            return any(pin.name == TF_KERAS for pin in pins)
    return False


def _absolute(near: Path) -> Path:
    return Path(os.path.abspath(near))  # noqa: PTH100 - as the configuration is looked for


def _nearest_answer(
    here: Path, known: dict[Path, _Found | None], read: Callable[[Path], _Found | None]
) -> _Found | None:
    """What the first says of a folder and those above it, up to where a repository begins."""
    return _first_answer((here, *here.parents), known, read)


def _nearest_in_prose(
    here: Path, known: dict[Path, _Found | None], read: Callable[[Path], _Found | None]
) -> _Found | None:
    """What the first says of a folder and those above it, in prose, which speaks of the project that it lies in: where
    no file says where that begins, of the folder and the one above. A page that lies far up, in a home or a temporary
    folder, is about something else."""
    upward = (here, *here.parents)
    repository = next((place for place, folder in enumerate(upward) if is_there(folder / ".git")), None)
    project = next((place for place, folder in enumerate(upward) if declares_project(folder)), None)
    last = repository if repository is not None else project if project is not None else 1
    return _first_answer(upward[: last + 1], known, read)


def _first_answer(
    upward: Sequence[Path], known: dict[Path, _Found | None], read: Callable[[Path], _Found | None]
) -> _Found | None:
    """What the first says of these folders, up to where a repository begins; None where nothing says anything."""
    passed: list[Path] = []
    answer = None
    for folder in upward:
        if folder in known:
            answer = known[folder]
            break
        passed.append(folder)
        answer = read(folder)
        if answer is not None or is_there(folder / ".git"):
            break
    known.update(dict.fromkeys(passed, answer))
    return answer


def _prose_of_folder(folder: Path) -> _Prose | None:
    from mpdoctor.project.declared_versions.prose import pins_from_prose

    pins = _each_once(pins_from_prose(folder))
    return _Prose(folder, pins) if keras_from_commands(pins) is not None else None


def _each_once(pins: Iterable[Pin]) -> list[Pin]:
    """A file may say the same twenty thousand times."""
    return list({(pin.name, pin.told): pin for pin in pins}.values())[:_MOST_PINS]


def _keras_from_folder(folder: Path, is_nearest: bool, pins: list[Pin]) -> Keras | None:
    """The Keras that a folder's files pin; `pins` gets all pins that were read. Where that is the Keras of a new
    TensorFlow, or none, a file that starts the programs may ask for tf_keras instead; above the nearest folder it
    counts only where a project begins."""
    keras = _keras_from_files(folder, pins)
    names_keras = any(pin.name in KERAS and len(pin.allowed) for pin in pins)
    is_of_tensorflow = keras is None or (keras.is_keras3 and not names_keras)
    place = file_that_sets_it(folder) if is_of_tensorflow and (is_nearest or pins or is_project(folder)) else ""
    if not place:
        return keras
    tensorflow = keras.tensorflow if keras is not None else ""
    return Keras("tf_keras", installed_release("tf_keras", "2"), tensorflow, f"{place} sets {LEGACY_KERAS}=1")


def _keras_from_files(folder: Path, pins: list[Pin]) -> Keras | None:
    """The Keras of the first file that names one; `pins` gets all pins that were read. A companion of Keras 2 only
    rules out releases: a file that names TensorFlow's says more."""
    for read in (pins_from_locks, pins_from_declarations, pins_from_images, _pins_from_scripts):
        pins += (told := _each_once(read(folder)))
        keras = keras_from_pins([pin for pin in told if not is_companion(pin)])
        if keras is not None:
            return keras
    return keras_from_pins(pins) if any(map(is_companion, pins)) else None


def _pins_from_scripts(folder: Path) -> Iterable[Pin]:
    from mpdoctor.project.declared_versions.scripts import pins_from_scripts  # where no other file names a Keras

    return pins_from_scripts(folder)
