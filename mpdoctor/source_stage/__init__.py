"""Stage 1: source files, walked as far as a finding could be in them, and judged, on all cores.

A file is walked if its text may show mixed precision (or be wrong without any), if it imports a file that does, if one
that does imports it, or if it imports a file that is walked for that reason. Of the others only their syntax is looked
at. What an earlier run has said of a file, and of all that it imports, is taken from the cache.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed
from mpdoctor.progress import Progress, SilentProgress
from mpdoctor.source.import_graph import Outlines
from mpdoctor.source_stage.file_texts import FileTexts
from mpdoctor.source_stage.files_together import FilesTogether
from mpdoctor.source_stage.judged_files import Judged, crash_from_breakdown, distinct_findings
from mpdoctor.source_stage.pool import WorkerPool
from mpdoctor.source_stage.process_count import most_processes
from mpdoctor.source_stage.unchanged_files import IncrementalResults, look_from_cache
from mpdoctor.source_stage.walked_files import WalkedFiles
from mpdoctor.source_stage.worker import Task, WorkerInput

if TYPE_CHECKING:
    from mpdoctor.source.kept_sources import KeptSources
    from mpdoctor.source_stage.cache import Cache

SILENT = SilentProgress()
WORTH_A_PROCESS = 400_000  # bytes of source: fewer are walked before another process is up
GROUP = 12_000_000  # bytes of source: of so much the workers hold some 600 MiB until it is judged
MOST_TOGETHER = 40  # files of a program that is walked once more as one
MOST_OF_FEW_TOGETHER = 120  # the same, among a FEW files: of many, such programs took twice as long as all the rest
FEW = 250
MOST_UNDER_ASSUMED_POLICY = 8  # files of a program in a large directory: larger ones take several times as long

JudgeAhead = Callable[["SourceStage", list[Path]], None]
"""Files by absolute path, and with them all that they hang together with by imports."""


class SourceStage(ABC):
    """The source of a run: `SourceOfProgram` or `SourceOfFiles`. `facts` holds those of every file, by path as shown,
    without their events, which stay where they were walked; `passed_over` the links out of the project by which imports
    would go.

    files
        How each is shown, by absolute path.
    texts
        What they hold, or what to take in place of that.
    outlines
        What they import.
    cache
        What earlier runs have said.
    kept
        What was parsed in earlier checks of this process.
    progress
        Is told how many of the files have been read, and then how many have been judged.
    """

    def __init__(
        self,
        files: Mapping[Path, str],
        texts: FileTexts,
        outlines: Outlines,
        *,
        assume_mixed: bool,
        cache: Cache | None,
        kept: KeptSources | None,
        progress: Progress,
    ) -> None:
        self._progress = progress
        self._assume_mixed = assume_mixed
        self._files = dict(files)
        self._texts, self._outlines = texts, outlines
        self.passed_over = outlines.passed_over
        self._memory = IncrementalResults(cache, outlines, files, texts)
        self._workers = WorkerPool(self._processes(), WorkerInput(self._files, texts.unsaved, outlines, kept))
        self._seen = WalkedFiles(self._files, texts, outlines, self._memory, self._workers, progress)
        self._crashes: set[Crashed] = set()
        self._judged_ahead: dict[tuple[Path, bytes], Judged] = {}
        self._is_judging_ahead = False

    def _processes(self) -> int:
        """How many processes the bytes of source are worth."""
        looked_at = (outline for path, outline in self._outlines.items() if path in self._memory.new)
        size = sum(outline.size for outline in looked_at if outline.names_framework)
        return min(most_processes(), 1 + size // WORTH_A_PROCESS)

    def _take_together(self, own: Collection[Path], *, is_program: bool = False) -> None:
        """Keep what the files that are judged now say of each other."""
        self._together = FilesTogether(
            self._seen, own, self._files, is_program=is_program, assume_mixed=self._assume_mixed
        )
        self.facts = self._together.facts

    @abstractmethod
    def _judged_with(self, path: Path, asked: Collection[str]) -> tuple[str, ...] | None:
        """The files, as shown, of the program that is judged when this one is: () where it is judged alone, None where
        it is not judged by itself. `asked`: the files that are to be judged."""

    def judge(self, keras: Callable[[str], Keras], codes: frozenset[str], paths: Collection[str]) -> Judged:
        """What the rules of these codes find in these files (paths as shown), each by its own Keras."""
        tasks = {task.path: task for task in self._tasks(keras, codes, paths)}
        findings = {path: judged for path, task in tasks.items() if (judged := self._judged_before(task)) is not None}
        new = {path: task for path, task in tasks.items() if path not in findings}
        unknown = [path for path in new if not self._workers.have_looked_at(path)]
        walked, size_of = self._seen.walked, self._seen.size_of
        list(self._workers.all_do("walk", [path for path in unknown if path in walked], size_of))
        list(self._workers.all_do("read", [path for path in unknown if path not in walked], size_of))
        for path, judged in self._judging(new):
            self._memory.keep_findings(new[path], judged)
            findings[path] = judged
            if self._is_judging_ahead:
                self._judged_ahead[path, new[path].digest] = judged
        programs_first = sorted(tasks, key=lambda path: not tasks[path].program)
        said = [item for path in programs_first for item in findings[path]]
        return self._each_once([*self._crashes_in(paths), *said])

    def _tasks(self, keras: Callable[[str], Keras], codes: frozenset[str], asked: Collection[str]) -> Iterator[Task]:
        """A task for each of these files that is judged by itself, with what the other files say of it."""
        for shown_as in asked:
            path = self._together.paths[shown_as]
            program = None if self.facts[shown_as].is_broken else self._judged_with(path, asked)
            if program is not None:
                yield Task(path, self._together.said_of(shown_as, keras(shown_as)), codes, program)

    def _judging(self, tasks: Mapping[Path, Task]) -> Iterator[tuple[Path, Judged]]:
        """Judge the files, with progress. Judging before all files are read shows as files that are not read yet."""
        shows_progress = len(tasks) > 1 and not self._is_judging_ahead
        if shows_progress:
            self._progress.stage("judging the source")
        for done, (path, said) in enumerate(self._workers.judge(tasks), 1):
            yield path, said
            if shows_progress:
                self._progress.steps(done, len(tasks))

    def save(self) -> None:
        """Leave to later runs what this one has found."""
        self._memory.save()

    def _judged_before(self, task: Task) -> Judged | None:
        said = self._judged_ahead.get((task.path, task.digest)) if self._judged_ahead else None
        return self._memory.findings(task) if said is None else said

    def _crashes_in(self, paths: Iterable[str]) -> Iterator[Crashed]:
        """A crash for each of these files that mpdoctor broke on before it was judged, or while its imports were looked
        up."""
        for path, broken in self._outlines.breakdowns.items():
            yield crash_from_breakdown(dataclasses.replace(broken, path=self._files.get(path, broken.path)))
        for shown_as in paths:
            yield from map(crash_from_breakdown, self.facts[shown_as].breakdowns)

    def _each_once(self, said: Judged) -> Judged:
        """What was said, each item once: a crash on a file comes up again with each file that imports it, and a file of
        several programs is judged in each of them."""
        new = dict.fromkeys(item for item in said if isinstance(item, Crashed) and item not in self._crashes)
        self._crashes.update(new)
        return [*new, *distinct_findings(said)]


class SourceOfProgram(SourceStage):
    """The source of one program: all that its `files` import is walked and judged with them. It is looked at anew, and
    no outline is made of it beforehand."""

    def __init__(
        self,
        files: Mapping[Path, str],
        unsaved: Mapping[Path, bytes] = MappingProxyType({}),
        *,
        assume_mixed: bool = False,
        progress: Progress = SILENT,
        kept: KeptSources | None = None,
    ) -> None:
        texts, outlines = FileTexts(unsaved), Outlines()
        super().__init__(files, texts, outlines, assume_mixed=assume_mixed, cache=None, kept=kept, progress=progress)
        self._scripts = frozenset(files)
        self._seen.walk_programs(files)
        self._take_together(self._files, is_program=True)

    def _judged_with(self, path: Path, asked: Collection[str]) -> tuple[str, ...] | None:
        return tuple(asked) if path in self._scripts else None


class SourceOfFiles(SourceStage):
    """The source of many files, each judged by itself, or as the program that begins with it.

    judge_ahead
        Judges the files of a group as they will be judged in the end. Of many files a group is walked and judged at
        a time, so that what was made of it can be given back before the next one.
    """

    def __init__(
        self,
        files: Mapping[Path, str],
        unsaved: Mapping[Path, bytes] = MappingProxyType({}),
        *,
        assume_mixed: bool = False,
        progress: Progress = SILENT,
        cache: Cache | None = None,
        judge_ahead: JudgeAhead | None = None,
    ) -> None:
        from mpdoctor.source.prefilter import outlines_from_files  # one program is not looked at beforehand

        texts = FileTexts(unsaved)
        outlines = outlines_from_files(files, texts.of, look_from_cache(cache, texts))
        super().__init__(files, texts, outlines, assume_mixed=assume_mixed, cache=cache, kept=None, progress=progress)
        self._walk_in_groups(judge_ahead)
        self._take_together(self._files)

    def _walk_in_groups(self, judge_ahead: JudgeAhead | None) -> None:
        groups = self._outlines.groups(GROUP)
        for group in groups:
            inside = set(group)
            own = [path for path in self._files if path in inside]  # in this order, as they are judged in the end
            self._seen.walk_what_matters(own, self._assume_mixed)
            if judge_ahead is not None and len(groups) > 1 and self._workers.is_at_work:
                self._take_together(own)
                self._is_judging_ahead = True
                judge_ahead(self, own)
                self._is_judging_ahead = False
                self._crashes.clear()
                self._workers.start_anew()

    def _judged_with(self, path: Path, asked: Collection[str]) -> tuple[str, ...]:
        """The given files that are to be judged together with this one, itself included: where a program begins (it is
        a script, or nothing imports it) that shows mixed precision. The others make their layers under a policy that
        only this file sets. () for others."""
        begins = path not in self._seen.imported or self._seen.is_script(path)
        most = self._most_together(path) if path in self._outlines and begins else 0
        together = {path, *self._outlines.reached_from([path])} if most else set()
        if not 1 < len(together) <= most:
            return ()
        return tuple(sorted(self._files[path] for path in together & self._files.keys()))

    def _most_together(self, path: Path) -> int:
        """How many files a program that begins with this one may have, to be judged as one; 0 for none. Where a policy
        is assumed no file shows one: all programs of a small directory are judged so, and small ones of a large one."""
        if path in self._seen.mixed:
            return MOST_TOGETHER if len(self._files) > FEW else MOST_OF_FEW_TOGETHER
        if not self._assume_mixed:
            return 0
        return MOST_TOGETHER if len(self._files) <= MOST_TOGETHER else MOST_UNDER_ASSUMED_POLICY
