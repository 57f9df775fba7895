"""The graph of first-party imports: which files a file reaches, which import it, and which belong together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.breakdown import Breakdown


@dataclass(frozen=True)
class Outline:
    """One file, not parsed.

    may_speak, names_framework, may_compute
        See `Glance`.
    imports
        The first-party files that it imports.
    in_programs
        Files that it imports as well where a script above its package runs it, because Python looks in the script's
        directory first.
    size
        Of its text, in bytes.
    digest
        Of its text.
    """

    may_speak: bool
    names_framework: bool
    may_compute: bool
    imports: frozenset[Path]
    size: int
    digest: bytes
    in_programs: frozenset[Path] = frozenset()


class Outlines(dict[Path, Outline]):
    """The outlines of the files to look at and of the first-party files that these import, by absolute path.

    `whole` is False where there are too many files, or where mpdoctor broke on one (`breakdowns`, by path).
    `passed_over`: links that lead out of the project, which imports would follow."""

    whole = True
    passed_over: tuple[Path, ...] = ()

    def __init__(self) -> None:
        self.breakdowns: dict[Path, Breakdown] = {}

    def reached_from(self, starts: Iterable[Path]) -> set[Path]:
        """The files that these import, directly or through others."""
        return set().union(*(self._reached[path] for path in starts))

    def importers_of(self, paths: Collection[Path]) -> set[Path]:
        """The files that import these, directly or through the `__init__` of a package."""
        importers: set[Path] = set()
        handing_on = set(paths)
        while handing_on:
            new = {path for path, outline in self.items() if not outline.imports.isdisjoint(handing_on)} - importers
            importers |= new
            handing_on = {path for path in new if path.name == "__init__.py"}
        return importers

    def imported_by(self, path: Path, without: Iterable[Path] = ()) -> list[Path]:
        """The files that a file imports, directly or through others, in an order that does not depend on who asks:
        before a module what it imports, and of modules that import one another the outermost package first. `without`:
        files that are left out."""
        imported = self.reached_from([path]) if path in self else set[Path]()
        return sorted(imported.difference(without), key=self._ranks.__getitem__)

    def groups(self, size: int) -> list[list[Path]]:
        """The files, in groups that import nothing of one another, of at most `size` bytes of source each, or of what
        hangs together. A single group where it is not known what all files import."""
        groups: list[list[Path]] = []
        room = 0
        for part in self._parts() if self.whole else [list(self)]:
            taken = sum(self[path].size for path in part)
            if taken > room or not groups:
                groups.append([])
                room = size
            groups[-1] += part
            room -= taken
        return groups

    def _parts(self) -> Iterable[list[Path]]:
        """What hangs together by imports, in whichever direction."""
        part_of = {path: [path] for path in self}
        for path, outline in self.items():
            for imported in outline.imports:
                smaller, larger = sorted((part_of[path], part_of[imported]), key=len)
                if larger is not smaller:
                    larger += smaller
                    part_of |= dict.fromkeys(smaller, larger)
        return {id(part): part for part in part_of.values()}.values()

    @cached_property
    def digests(self) -> dict[Path, bytes]:
        """A digest of each file's text and of all that it imports, directly or through others: while it is the same,
        all that is known of the file still holds."""
        digests: dict[Path, bytes] = {}
        for ring in self._rings:
            outside = {digests[imported] for path in ring for imported in self[path].imports if imported in digests}
            others = self._met_in_programs(ring)
            below = digest_of(*sorted(outside), *(self[path].digest for path in (*ring, *others)))
            digests |= {path: digest_of(bytes(path), self[path].digest, below) for path in ring}
        return digests

    def _met_in_programs(self, ring: Iterable[Path]) -> list[Path]:
        """What scripts above the packages of these files have them import besides, also through others."""
        met: set[Path] = set()
        waiting = [path for start in ring for path in self[start].in_programs]
        while waiting:
            path = waiting.pop()
            if path in self and path not in met:
                met.add(path)
                waiting += self[path].imports | self[path].in_programs
        return sorted(met)

    @cached_property
    def _ranks(self) -> dict[Path, int]:
        return {path: rank for rank, path in enumerate(path for ring in self._rings for path in ring)}

    @cached_property
    def _reached(self) -> dict[Path, frozenset[Path]]:
        """The files that each file imports, directly or through others. Files that import one another in a circle reach
        the same ones."""
        reached: dict[Path, frozenset[Path]] = {}
        for ring in self._rings:
            imports = frozenset().union(*(self[path].imports for path in ring))
            below = imports.union(*(reached[path] for path in imports if path in reached))
            reached |= dict.fromkeys(ring, below)
        return reached

    @cached_property
    def _rings(self) -> list[list[Path]]:
        return [sorted(ring, key=_depth) for ring in _rings(self)]


def _rings(outlines: Mapping[Path, Outline]) -> Iterator[list[Path]]:
    """The groups of files that import one another, each behind the groups that it imports."""
    paths = sorted(outlines)
    numbers = {path: number for number, path in enumerate(paths)}  # whose hashes Python takes at once
    graph = {numbers[path]: sorted(map(numbers.__getitem__, outline.imports)) for path, outline in outlines.items()}
    for ring in _strongly_connected(graph):
        yield [paths[number] for number in ring]


def _strongly_connected(graph: Mapping[int, list[int]]) -> Iterator[list[int]]:
    """The strongly connected parts of a graph, each behind those that it leads to (R. Tarjan, Depth-first search and
    linear graph algorithms, 1972; without recursion). `graph`: by node, those that it leads to."""
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    unfinished: list[int] = []
    for start in graph:
        way = [] if start in numbers else [(start, iter(graph[start]))]
        while way:
            node, further = way[-1]
            if node not in numbers:
                numbers[node] = lowest[node] = len(numbers)
                unfinished.append(node)
            following = next(further, None)
            if following is not None:
                if following not in numbers:
                    way.append((following, iter(graph[following])))
                else:
                    lowest[node] = min(lowest[node], lowest[following])
                continue
            way.pop()
            if way:
                lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[node])
            if lowest[node] == numbers[node]:
                ring = unfinished[unfinished.index(node) :]
                del unfinished[-len(ring) :]
                lowest |= dict.fromkeys(ring, len(graph))
                yield ring


def _depth(path: Path) -> tuple[int, str]:
    return len(path.parts), path.as_posix()


def digest_of(*parts: bytes) -> bytes:
    from hashlib import blake2b  # it brings OpenSSL, which a check of one program does without

    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()
