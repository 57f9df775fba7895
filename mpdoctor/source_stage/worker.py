"""A worker of the source stage: one process reads, walks and judges its share of the files."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.program.breakdown import Breakdown, breakdown_from_error
from mpdoctor.program.collector import without_garbage_collection
from mpdoctor.program.mixed_precision_signs import REWRITING_GRAPHS, shows_16_bits
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import FromOutside, Problem
from mpdoctor.source import facts_with_cells, facts_without_walking, program_with_imports, source_or_problem
from mpdoctor.source.import_graph import Outlines
from mpdoctor.source.modules import Files
from mpdoctor.source_stage.judged_files import Judged, ToldOfProgram, crash_from_breakdown, findings_of_file, located_in
from mpdoctor.source_stage.made_layers import makings_from_events

if TYPE_CHECKING:
    from mpdoctor.source.kept_sources import KeptSources
    from mpdoctor.source.project import Project

Method = Literal["read", "walk", "walk_with_imports", "judge"]
"""What a worker is asked to do with files: the name of its method."""

_Program = tuple[dict[Path, SourceFacts], SourceFacts]  # the facts of its files, and those of all together


@dataclass(frozen=True, slots=False)
class Task:
    """To judge a file: what is known of it from outside, and the rules that look.

    program
        How the files are shown that are judged together with it, walked anew as this one runs them; () where it is
        judged alone, on top of what it imports. Of what it imports besides nothing is said.
    """

    path: Path
    outside: FromOutside
    codes: frozenset[str]
    program: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """A digest of everything that the findings depend on besides the file and its imports."""
        from hashlib import blake2b  # it brings OpenSSL, which a check of one program does without

        outside = {**self.outside, "keras": _keras_as_text(self.outside.get("keras"))}
        asked = f"{sorted(outside.items())} {_codes_as_text(self.codes)} {self.program}"
        return blake2b(asked.encode(), digest_size=16).digest()


@lru_cache(maxsize=8)
def _keras_as_text(keras: Keras | None) -> str:
    """The `repr` of a Keras, cached: it is the same for nearly all files of a run."""
    return repr(keras)


@lru_cache(maxsize=8)
def _codes_as_text(codes: frozenset[str]) -> str:
    """The codes as one text, cached: they are the same for all files of a run."""
    return " ".join(sorted(codes))


class WorkerInput(NamedTuple):
    """What each worker is made with: how each file is shown, what to take in place of what a file holds, the outlines,
    and what was parsed in earlier checks of this process."""

    shown: Mapping[Path, str]
    unsaved: Mapping[Path, bytes]
    outlines: Outlines
    kept: KeptSources | None = None


class Worker:
    """Walks some of the files, keeps their facts, and judges them."""

    def __init__(self, given: WorkerInput) -> None:
        self._shown, self._unsaved, self._outlines, self._kept = given
        self._files = Files(given.unsaved, kept=given.kept)
        self._facts: dict[Path, SourceFacts] = {}
        self._programs: dict[Path, _Program] = {}

    @cached_property
    def _project(self) -> Project:
        """The interpreter is imported where something is to be walked."""
        from mpdoctor.source.project import Project

        return Project(self._files, self._shown, self._outlines)

    @without_garbage_collection()
    def read(self, paths: list[Path]) -> dict[Path, tuple[SourceFacts, bool]]:
        """What there is to say without a walk. What is parsed for it is not kept, which would take far more room."""
        for path in paths:
            files = self._files if self._files.holds(path) else Files(self._unsaved)
            with self._guard(path):
                self._facts[path] = facts_without_walking(files, path, self._shown[path])
        return {path: (self._facts[path], False) for path in paths}

    @without_garbage_collection()
    def walk(self, paths: list[Path]) -> dict[Path, tuple[SourceFacts, bool]]:
        """The facts without their events, and whether these show mixed precision."""
        for path in paths:
            with self._guard(path):
                self._walk(path)
        return self._facts_by_path(paths)

    def walk_with_imports(self, paths: list[Path]) -> dict[Path, tuple[SourceFacts, bool]]:
        for path in paths:
            with self._guard(path):
                program = program_with_imports(path, self._shown[path], Files(self._unsaved, kept=self._kept))
                self._programs[path] = program
                self._facts |= program[0]
        return self._facts_by_path(list(self._facts))

    @without_garbage_collection()
    def judge(self, tasks: list[Task]) -> dict[Path, Judged]:
        return {task.path: self._judged_with_imports(task) if task.program else self._judged(task) for task in tasks}

    def _walk(self, path: Path, guarded: bool = False) -> None:
        source = source_or_problem(self._files, path, self._shown[path])
        if isinstance(source, Problem):
            self._facts[path] = SourceFacts(self._shown[path], unreadable=source)
        else:
            self._facts[path] = facts_with_cells(self._project.walk(source, path, guarded), source)

    def _facts_by_path(self, paths: list[Path]) -> dict[Path, tuple[SourceFacts, bool]]:
        seen = {}
        for path in paths:
            with self._project.as_walked(path):
                is_mixed = bool(self._is_mixed(path, self._facts[path]))
                seen[path] = _without_events(self._facts[path]), is_mixed
        return seen

    def _judged(self, task: Task) -> Judged:
        """What the rules say of a file, and the crashes of mpdoctor's own on it or on a file that it imports."""
        if self._facts[task.path].is_blank:
            return []
        said: Judged = []
        with self._guard(task.path):
            if task.outside.get("is_guarded"):
                self._walk(task.path, guarded=True)
            facts = self._facts[task.path].to_judge(task.outside)
            with self._project.as_walked(task.path):
                said += findings_of_file(facts, task.codes)
        return [*map(crash_from_breakdown, self._facts[task.path].breakdowns), *said]

    def _judged_with_imports(self, task: Task) -> Judged:
        """The findings of a whole program. The script is judged with the events of all files; then each file that has a
        finding is judged again, by the rules of its findings, with its own text, in which an edit is made."""
        said: Judged = []
        walked = {task.path}
        with self._guard(task.path), self._program_of(task) as (files, whole):
            walked |= files.keys()
            signs = self._signs_of_mixed_precision(files)
            texts = {facts.path: facts.text for facts in files.values()}
            outside: FromOutside = {
                **task.outside,
                "is_imported": False,
                "is_guarded": False,
                "policies_elsewhere": (),
                "texts_beside": texts,
            }
            told = ToldOfProgram(task.codes)
            for path, facts in files.items():
                if facts.path not in task.program or path not in signs:
                    continue
                with self._guard(path):
                    seen = whole.for_file(facts, signs[path], outside)
                    judged = told.of_script(seen) if path == task.path else told.of_imported(seen)
                    said += located_in(facts.path, judged, texts.keys() if path == task.path else None)
        broken = (self._facts[path].breakdowns for path in sorted(walked & self._facts.keys()))
        return [*(crash_from_breakdown(breakdown) for breakdowns in broken for breakdown in breakdowns), *said]

    @contextmanager
    def _program_of(self, task: Task) -> Iterator[_Program]:
        """The program that a task is about: as it was walked, or walked for this one answer and not kept."""
        if task.path in self._programs:
            yield self._programs[task.path]
            return
        with _garbage_given_back():
            yield program_with_imports(task.path, self._shown[task.path], self._files, self._shown)

    def _signs_of_mixed_precision(self, files: Mapping[Path, SourceFacts]) -> dict[Path, tuple[Location, ...]]:
        """For each file the signs of mixed precision in itself and in the files that import it, directly or through
        others; without the files that mpdoctor broke on."""
        signs: dict[Path, tuple[Location, ...]] = {}
        of_importers: dict[str, list[Location]] = {}  # by path as shown
        for path, facts in files.items():
            with self._guard(path):
                signs[path] = facts.mixed_precision_signs
                for imported in facts.imports:
                    of_importers.setdefault(imported, []).extend(facts.signs_for_imports)
        return {path: (*own, *of_importers.get(files[path].path, ())) for path, own in signs.items()}

    def _is_mixed(self, path: Path, facts: SourceFacts) -> bool | None:
        """Whether the facts show mixed precision for what the file imports too; None where we broke on them."""
        answers: list[bool] = []
        with self._guard(path):
            answers.append(bool(facts.signs_for_imports))
        return answers[0] if answers else None

    @contextmanager
    def _guard(self, path: Path) -> Iterator[None]:
        """Report a file that mpdoctor breaks on, and go on with the others."""
        try:
            yield
        except Exception as error:
            self._facts[path] = broken_facts(breakdown_from_error(self._shown.get(path, str(path)), error))


@contextmanager
def _garbage_given_back() -> Iterator[None]:
    """Collect what was made in this context on leaving it. Objects that exist before are not gone over."""
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()


def broken_facts(breakdown: Breakdown) -> SourceFacts:
    return SourceFacts(breakdown.path, breakdowns=(breakdown,))


def policies_by_importers(project: Iterable[SourceFacts]) -> dict[str, tuple[str | None, ...]]:
    """For each path as shown, what the files that import it say of the global policy (`SourceFacts.policies_set`)."""
    policies: dict[str, dict[str | None, None]] = {}
    for facts in project:
        for path in facts.imports if facts.policies_set else ():
            policies.setdefault(path, {}).update(dict.fromkeys(facts.policies_set))
    return {path: tuple(names) for path, names in policies.items()}


def only_rewrites_graphs(sources: Iterable[SourceFacts]) -> bool:
    """Whether mixed precision is TensorFlow's rewriting of graphs in these files, and no policy is ever set: a wrapped
    optimizer goes with that, and layers compute in float32 as far as their code can tell."""
    facts = list(sources)
    return any(of_file.rewrites_graphs for of_file in facts) and not any(of_file.shows_16_bits for of_file in facts)


def _without_events(facts: SourceFacts) -> SourceFacts:
    from mpdoctor.semantics.source.trainings.written_files import saved_files_from_events

    makings, policies = makings_from_events(facts), facts.policies_from_events()
    return dataclasses.replace(
        facts,
        makings=makings,
        policies_set=policies,
        policies_unknown=facts.unknown_policies_from_events(),
        shows_16_bits=bool(facts.mixed_precision_signs) and shows_16_bits(facts.calls, facts.uses),
        rewrites_graphs=any(True for _ in facts.calls_named(*REWRITING_GRAPHS)),
        files_saved=saved_files_from_events(facts),
        uses=(),
        calls=(),
        reads=(),
        writes=(),
        operations=(),
        withs=(),
        returns=(),
        classes=(),
        functions=(),
    )
