"""Draft: all files of a program with any subset of the edits made so far."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mpdoctor.facts.location import Location, location_in_cell
from mpdoctor.finding import Edit
from mpdoctor.fixes.choices import Sources
from mpdoctor.fixes.notebooks import cell_texts
from mpdoctor.fixes.rounds import CHANGED, NOTEBOOK, EditedFile, edited_bytes, is_text_of, read_source
from mpdoctor.fixes.texts import decoded, spans_of_edits, touch
from mpdoctor.mending.layered_text import LayeredText
from mpdoctor.program.source_record import Problem
from mpdoctor.project.regular_files import bytes_from_file

Kept = Collection[int]  # numbers of the proposals that stand in the text


@dataclass(frozen=True)
class Proposal:
    """Edits that are made together or not at all, because of a finding of this code ("" for what the user asked
    for).

    `needed`: whether a trial in place saw the program fail without it, with all else that it proposed.
    `own_code_of`: the class whose own code alone has to compute in float32, not the layers that it holds; or ""."""

    title: str
    safe: bool
    code: str
    edits: tuple[Edit, ...]
    needed: bool = False
    own_code_of: str = ""


class CannotEdit(Exception):
    """The text says why, in a clause."""


@dataclass
class _File:
    """`texts`: by cell; that of a file that is no notebook under 0. `originals`: what they began with."""

    path: Path
    data: bytes
    texts: dict[int, LayeredText]
    originals: dict[int, str]


@dataclass
class _Made:
    """A proposal that is made: its layers in each file, and the layers that they build on."""

    proposal: Proposal
    layers: frozenset[int]
    below: frozenset[int] = frozenset()


@dataclass
class Draft:
    """`content`: of standard input, by absolute path. Proposals have numbers from 0 on, in the order in which they
    were made."""

    content: Mapping[Path, bytes] = field(default_factory=dict)
    _files: dict[str, _File] = field(default_factory=dict)
    _made: list[_Made] = field(default_factory=list)
    _layers: int = 0

    @property
    def proposals(self) -> list[Proposal]:
        return [made.proposal for made in self._made]

    def make(self, proposals: Sequence[Proposal], kept: Kept, sources: Sources) -> dict[int, Proposal]:
        """Make these proposals, but none that touches an earlier one; those made, by number. Their places are places in
        the text with `kept`, whose facts are `sources`. An edit that two proposals share (an import) is made once.

        Raises CannotEdit where a file is not to be edited."""
        made: dict[int, Proposal] = {}
        layers: dict[Edit, int] = {}
        shown = self._layers_of(kept)
        for proposal in (_in_its_cells(proposal, sources) for proposal in proposals):
            new = [edit for edit in dict.fromkeys(proposal.edits) if edit not in layers]
            if any(touch(edit, other) for edit in new for other in layers):
                continue
            below: set[int] = set()
            for edit in new:
                layers[edit] = self._layers
                self._layers += 1
                below |= self._make_layer(layers[edit], edit, shown, sources)
            made[len(self._made)] = proposal
            self._made.append(_Made(proposal, frozenset(layers[edit] for edit in proposal.edits), frozenset(below)))
        return made

    def closed(self, kept: Kept) -> tuple[int, ...]:
        """These edits without those that build on an edit which is left out."""
        left = sorted(kept)
        while True:
            layers = self._layers_of(left)
            standing = [number for number in left if self._made[number].below <= layers]
            if standing == left:
                return tuple(left)
            left = standing

    def files(self, kept: Kept) -> list[EditedFile]:
        """The files that these edits change, sorted by path as shown."""
        layers = self._layers_of(kept)
        files = []
        for shown_as, file in sorted(self._files.items()):
            edits = list(_edits_of_file(shown_as, file, layers, layers))
            after = edited_bytes(file.data, shown_as, [edits]) if edits else file.data
            assert after is not None  # whether it can be written again was seen when it was read
            if after != file.data:
                files.append(EditedFile(file.path, shown_as, file.data, after))
        return files

    def contents(self, kept: Kept) -> dict[Path, bytes]:
        """What stands in the changed files, by their absolute paths."""
        return {file.path: file.after for file in self.files(kept)}

    def edits(self, kept: Kept) -> dict[int, tuple[Edit, ...]]:
        """What each of the kept proposals changes, in places of the files as they lie on the disk. An edit that two of
        them need alike is told of the first. They come in the order of the text: of two that put something in at one
        place, what the first one puts in stands first."""
        layers, counted = self._layers_of(kept), frozenset[int]()
        edits = {}
        for number in sorted(kept, key=self._beginning_of):
            own = self._made[number].layers - counted
            counted |= own
            files = sorted(self._files.items())
            edits[number] = tuple(edit for path, file in files for edit in _edits_of_file(path, file, layers, own))
        return edits

    def _beginning_of(self, number: int) -> tuple[str, int, int]:
        """The file, the cell, and the place in its text."""
        places = (
            (path, cell, begins)
            for path, file in sorted(self._files.items())
            for cell, text in sorted(file.texts.items())
            if (begins := text.beginning_of(self._made[number].layers)) is not None
        )
        return min(places, default=("", 0, 0))

    def _layers_of(self, kept: Kept) -> frozenset[int]:
        return frozenset().union(*(self._made[number].layers for number in kept))

    def _make_layer(self, layer: int, edit: Edit, shown: Collection[int], sources: Sources) -> frozenset[int]:
        place = edit.location
        file = self._file(place.path, sources)
        if place.cell not in file.texts:
            raise CannotEdit(f"there is no cell {place.cell} in {place.path}")
        text = file.texts[place.cell]
        return text.make(layer, spans_of_edits(text.text(shown), [edit]), shown)

    def _file(self, shown_as: str, sources: Sources) -> _File:
        file = self._files.get(shown_as)
        if file is None:
            file = self._files[shown_as] = _file_from_disk(shown_as, self.content)
            source = sources.get(shown_as)
            if source is not None and not is_text_of(file.data, shown_as, source.text):
                raise CannotEdit(f"{shown_as}: {CHANGED}")
        return file


def _in_its_cells(proposal: Proposal, sources: Sources) -> Proposal:
    """The proposal with the edits of notebooks placed in their cells."""
    edits = []
    for edit in proposal.edits:
        source = None if edit.location.cell else sources.get(edit.location.path)
        edits.append(replace(edit, location=location_in_cell(edit.location, source.cells if source else ())))
    return replace(proposal, edits=tuple(edits))


def _file_from_disk(shown_as: str, content: Mapping[Path, bytes]) -> _File:
    path = Path(shown_as).absolute()
    try:
        data = content[path] if path in content else bytes_from_file(path)
    except OSError as error:
        raise CannotEdit(f"{shown_as} can't be read: {error.strerror}") from error
    problem = read_source(data, shown_as)
    if isinstance(problem, Problem):
        raise CannotEdit(f"{shown_as}: {problem.message}")
    if shown_as.endswith(NOTEBOOK):
        originals = dict(enumerate(cell_texts(data.decode("utf-8-sig")), 1))
    else:
        text = decoded(data)
        if text is None:
            raise CannotEdit(f"{shown_as}: its encoding is one that it cannot be written in again as it is")
        originals = {0: text[0]}
    return _File(path, data, {cell: LayeredText(text) for cell, text in originals.items()}, originals)


def _edits_of_file(shown_as: str, file: _File, layers: Collection[int], of: Collection[int]) -> Iterator[Edit]:
    for cell, text in file.texts.items():
        for start, end, put_in in text.changes(layers, of):
            yield Edit(_location(shown_as, cell, file.originals[cell], start, end), put_in.replace("\r\n", "\n"))


def _location(path: str, cell: int, text: str, start: int, end: int) -> Location:
    (line, column), (end_line, end_column) = _line_and_column(text, start), _line_and_column(text, end)
    return Location(path, line, column, end_line, end_column, cell)


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and the column, from 1."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
