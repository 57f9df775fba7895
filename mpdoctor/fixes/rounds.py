"""Fix, check again, fix again, in memory, until a round changes nothing."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpdoctor.diagnosis import diagnose_with_sources
from mpdoctor.finding import Diagnosis, Edit, Finding
from mpdoctor.fixes.choices import Choice, Sources
from mpdoctor.fixes.notebooks import edited_notebook
from mpdoctor.fixes.texts import chosen_together, decoded, edited
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.progress import Progress
from mpdoctor.project.project_folder import is_in_project
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings
from mpdoctor.source.notebooks import source_from_notebook
from mpdoctor.source.reading import Source, source_from_text

MOST_ROUNDS = 30
NOTEBOOK = ".ipynb"
OUTSIDE = "it lies outside of the project, and was only imported"
CHANGED = "it was changed by somebody else meanwhile"

# The edits for each finding of a diagnosis, by its number; none for those that are not among them.
EditsOf = Callable[[Diagnosis, Sources], Mapping[int, tuple[Edit, ...]]]


@dataclass
class EditedFile:
    """A file before and after. `path` is absolute, `shown_as` as in reports; `rounds`: for each round that changed the
    file, its text before that round, and the codes of the findings whose edits were made."""

    path: Path
    shown_as: str
    before: bytes
    after: bytes
    rounds: tuple[tuple[bytes, tuple[str, ...]], ...] = ()

    @property
    def is_changed(self) -> bool:
        return self.after != self.before

    def undoing(self) -> set[str]:
        """The codes of the rounds that led back to a text that it had before; none where they led to a new one."""
        began = next((number for number, (text, _) in enumerate(self.rounds) if text == self.after), len(self.rounds))
        return {code for _, codes in self.rounds[began:] for code in codes}


@dataclass
class Fixed:
    """What came of all rounds. `diagnosis`: what remains; `left`: files that were not touched though there is something
    to fix in them, and why; `undoing`: of files the codes whose edits undo each other, and were not made."""

    diagnosis: Diagnosis
    files: dict[str, EditedFile] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    undoing: dict[str, set[str]] = field(default_factory=dict)

    @property
    def changed(self) -> list[EditedFile]:
        return [file for _, file in sorted(self.files.items()) if file.is_changed]

    @property
    def counts(self) -> Counter[str]:
        """The edits made for each code."""
        return Counter(code for file in self.files.values() for _, codes in file.rounds for code in codes)


def fixes_of(unsafe: bool) -> EditsOf:
    """The rules' own edits: the safe ones, or all."""

    def edits_of(diagnosis: Diagnosis, sources: Sources) -> Mapping[int, tuple[Edit, ...]]:
        fixes = ((number, finding.fix) for number, finding in enumerate(diagnosis.findings) if not finding.what_if)
        return {number: fix.edits for number, fix in fixes if fix is not None and (fix.safe or unsafe)}

    return edits_of


def apply_fixes(settings: Settings, progress: Progress, edits_of: EditsOf, choice: Choice) -> Fixed:
    """Make all edits that the findings call for, and those that the findings afterwards call for. Of what a target only
    imports, that which lies in its project is edited."""
    outcome = None
    for _ in range(MOST_ROUNDS):
        diagnosis, sources = diagnose_with_sources(settings, progress)
        diagnosis = choice(diagnosis, sources)
        outcome = outcome or Fixed(diagnosis)
        outcome.diagnosis = diagnosis
        if not _edit(outcome, sources, edits_of, settings.targets):
            return outcome
        after = {file.path: file.after for file in outcome.files.values()}
        settings = dataclasses.replace(settings, unsaved={**settings.unsaved, **after})
    assert outcome is not None
    for file in outcome.changed:
        outcome.left[file.shown_as] = f"after {MOST_ROUNDS} rounds there was still something to fix"
        outcome.files[file.shown_as] = _as_before(file)
    return outcome


def _edit(outcome: Fixed, sources: Sources, edits_of: EditsOf, targets: Iterable[Target]) -> bool:
    """Make the edits of one round. Whether it has changed anything."""
    content = {t.path.absolute(): t.content for t in targets if t.path is not None and t.content is not None}
    wanted: dict[str, list[tuple[Finding, tuple[Edit, ...]]]] = {}
    for number, edits in edits_of(outcome.diagnosis, sources).items():
        finding = outcome.diagnosis.findings[number]
        paths = {edit.location.path for edit in edits}
        if len(paths) == 1:  # no rule has edits of several files
            path = paths.pop()
            if finding.code not in outcome.undoing.get(path, ()):
                wanted.setdefault(path, []).append((finding, edits))
    changed = False
    for shown_as, fixes in wanted.items():
        if not any(_is_in_reach(shown_as, target) for target in targets):
            outcome.left[shown_as] = OUTSIDE
        elif shown_as not in outcome.left and shown_as in sources:
            changed = _edit_file(outcome, shown_as, sources[shown_as], fixes, content) or changed
    return changed


def _is_in_reach(shown_as: str, target: Target) -> bool:
    """Whether a file is a target, or of its project."""
    path, named = (Path(os.path.abspath(place)) for place in (shown_as, target.path or "."))  # noqa: PTH100 - links stay
    is_folder = target.path is None or target.kind == "directory"
    return path == named or is_in_project(str(path), str(named if is_folder else named.parent))


def _edit_file(
    outcome: Fixed,
    shown_as: str,
    source: SourceFacts,
    fixes: list[tuple[Finding, tuple[Edit, ...]]],
    content: Mapping[Path, bytes],
) -> bool:
    file = outcome.files.get(shown_as)
    try:
        if file is None:
            path = Path(shown_as).absolute()
            data = content[path] if path in content else bytes_from_file(path)
            file = EditedFile(path, shown_as, data, data)
        if not is_text_of(file.after, shown_as, source.text):
            outcome.left[shown_as] = CHANGED
            return False
        chosen = chosen_together([edits for _, edits in fixes])
        after = edited_bytes(file.after, shown_as, chosen)
    except (OSError, ValueError) as error:
        outcome.left[shown_as] = getattr(error, "strerror", None) or str(error)
        return False
    if after is None:
        outcome.left[shown_as] = "its encoding is one that it cannot be written in again as it is"
        return False
    if isinstance(read_source(after, shown_as), Problem):
        outcome.left[shown_as] = "with the edits it is no Python any more, which is a defect of mpdoctor's"
        return False
    if after == file.after:
        return False
    codes = tuple(finding.code for finding, edits in fixes if edits in chosen)
    file = dataclasses.replace(file, after=after, rounds=(*file.rounds, (file.after, codes)))
    undoing = file.undoing()
    if undoing:
        outcome.undoing.setdefault(shown_as, set()).update(undoing)
        file = _as_before(file)  # what the others do is done once more
    outcome.files[shown_as] = file
    return True


def _as_before(file: EditedFile) -> EditedFile:
    return dataclasses.replace(file, after=file.before, rounds=())


def edited_bytes(data: bytes, path: str, fixes: Iterable[Iterable[Edit]]) -> bytes | None:
    """A file's bytes with these edits in them; None where its encoding can't be written again.

    Raises ValueError where a notebook is not laid out as notebooks are, or a character has no place in the encoding."""
    edits = list(dict.fromkeys(edit for fix in fixes for edit in fix))
    if path.endswith(NOTEBOOK):
        mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        text = data[len(mark) :].decode("utf-8")
        return mark + edited_notebook(text, edits).encode("utf-8")
    read = decoded(data)
    if read is None:
        return None
    text, encoding = read
    return edited(text, edits).encode(encoding)


def is_text_of(data: bytes, path: str, text: str) -> bool:
    """Whether these bytes are the text that was examined."""
    source = read_source(data, path)
    return not isinstance(source, Problem) and source.text == text


def read_source(data: bytes, path: str) -> Source | Problem:
    return source_from_notebook(data, path) if path.endswith(NOTEBOOK) else source_from_text(data, path)
