"""The files of a run as far as they were looked at: which of them are walked, and which only read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.progress import Progress
from mpdoctor.project.asked_of_system import note_change
from mpdoctor.source.import_graph import Outlines
from mpdoctor.source_stage.file_texts import FileTexts
from mpdoctor.source_stage.pool import WorkerPool
from mpdoctor.source_stage.saved_files import users_of_files
from mpdoctor.source_stage.unchanged_files import IncrementalResults, reads_the_same_settings
from mpdoctor.source_stage.worker import Method

OF_POLICIES = ("mixed_", "dtype_policy")  # in the text of whatever may set a policy
_RUN = ('__name__ == "__main__"', "__name__ == '__main__'")


class WalkedFiles:
    """What is known of each file of a run, by absolute path.

    shown
        How each is shown; the files that a program imports are added.
    progress
        Is told how many of them have been looked at.
    facts
        Those of each file that was looked at, without their events, which stay where they were walked.
    walked
        The files that were to be walked, and not only read.
    mixed
        Those that show mixed precision.
    choosing
        Those whose text may set a policy for their caller.
    """

    def __init__(
        self,
        shown: dict[Path, str],
        texts: FileTexts,
        outlines: Outlines,
        memory: IncrementalResults,
        workers: WorkerPool,
        progress: Progress,
    ) -> None:
        self._shown, self._texts, self._outlines = shown, texts, outlines
        self._memory, self._workers, self._progress = memory, workers, progress
        self.facts: dict[Path, SourceFacts] = {}
        self.walked: set[Path] = set()
        self.mixed: set[Path] = set()
        self.choosing: set[Path] = set()

    @cached_property
    def imported(self) -> frozenset[Path]:
        """The files that others import, as far as the outlines tell."""
        return frozenset().union(*(outline.imports for outline in self._outlines.values()))

    def imports_of(self, path: Path) -> frozenset[Path]:
        return self._outlines[path].imports if path in self._outlines else frozenset()

    def size_of(self, path: Path) -> int:
        return self._outlines[path].size if path in self._outlines else 1

    def is_script(self, path: Path) -> bool:
        """Whether the file does something where it is run by itself, besides what it does where it is imported."""
        return self._holds(path, _RUN)

    def _holds(self, path: Path, words: tuple[str, ...]) -> bool:
        return any(word in self.facts[path].text for word in words)

    def walk_programs(self, files: Iterable[Path]) -> None:
        """Walk these files, and all that they import."""
        self._look("walk_with_imports", files)

    def walk_what_matters(self, files: Collection[Path], assume_mixed: bool) -> None:
        """Walk the files in which a finding could be, or that decide about findings in others; read the rest."""
        outlines = self._outlines
        if assume_mixed:
            self._look("walk", (path for path in files if outlines[path].may_speak or outlines[path].may_compute))
        else:
            self._look("walk", (path for path in files if outlines[path].may_speak))
            # files whose caller may switch on mixed precision, without a word of TensorFlow
            asked = self.imported.intersection(files) & self.walked - self.mixed
            self.choosing |= {path for path in asked if self._holds(path, OF_POLICIES)}
            self._look("walk", outlines.importers_of(self.choosing))
            mixed = self.mixed & set(files)
            importers = outlines.importers_of(mixed)
            begins = importers - self.imported  # a program, which may get what is mixed from a package's `__init__`
            with_package = {p for p in begins if not outlines[p].imports.isdisjoint(importers)}
            computing = {p for p in importers if outlines[p].may_compute or outlines[p].imports & self.mixed}
            self._look("walk", computing | with_package)
            mixed = self.mixed & set(files)
            reached = outlines.reached_from(mixed)
            self._look("walk", (p for p in reached if outlines[p].may_compute or outlines[p].imports & self.mixed))
            users = outlines.importers_of(reached & self.walked)  # which may make its layers in float32
            self._look("walk", (p for p in users if outlines[p].may_compute))
            self._look("walk", self._users_of_saved_files(files))
        self._look("read", files)

    def _users_of_saved_files(self, files: Collection[Path]) -> Iterator[Path]:
        """The files that may load or overwrite a model file which a program with mixed precision writes."""
        writers = [self.facts[path] for path in self.mixed.intersection(files)]
        shown = {path: self._shown[path] for path in files if self._outlines[path].names_framework}
        return users_of_files(writers, shown, self._bytes_of)

    def _bytes_of(self, path: Path) -> bytes:
        return self.facts[path].text.encode(errors="surrogatepass") if path in self.facts else self._texts.of(path)

    def _look(self, method: Method, paths: Iterable[Path]) -> None:
        """Walk or read these files of the run, except those that were already."""
        wanted = set(paths) - self.facts.keys()
        new = []
        if method == "walk":
            self.walked |= wanted
        for path in [path for path in self._shown if path in wanted]:
            known = self._memory.recall(path, walked=method == "walk")
            if known is not None:
                self._keep(path, *known)
            else:
                new.append(path)
        for path, (facts, is_mixed) in self._workers.all_do(method, new, self.size_of):
            self._keep(path, facts, is_mixed)
            self._memory.keep(path, facts, is_mixed, walked=method == "walk")
            if not reads_the_same_settings(facts):  # asked by another process, and again by this one, which may record
                note_change()
            if method != "walk_with_imports":  # how many files a program brings is known when they have been read
                self._progress.steps(len(self.facts), len(self._shown))

    def _keep(self, path: Path, facts: SourceFacts, is_mixed: bool) -> None:
        self._shown.setdefault(path, facts.path)
        self.facts[path] = facts
        self._texts.give_back(path)  # which the facts hold
        if is_mixed:
            self.mixed.add(path)
