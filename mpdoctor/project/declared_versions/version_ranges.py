"""Requirements as most projects write them: `tensorflow>=2.16`, and neither extras, markers nor wildcards. `packaging`
reads all, and a check of one file would wait 25 ms for its import."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from mpdoctor.facts.frozen import dataclass

_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*?[A-Za-z0-9]|[A-Za-z0-9])\s*((?:[<>=!]=?[\s\d.,<>=!]*)?)")
_COMPARES: dict[str, Callable[[Any, Any], bool]] = {">=": ge, "<=": le, "==": eq, "!=": ne, "<": lt, ">": gt}


@dataclass(frozen=True)
class Clause:
    """`>=2.16`: its parts are named as `packaging` names them."""

    operator: str
    version: str


@dataclass(frozen=True)
class PlainRange:
    """A `packaging.specifiers.SpecifierSet` for clauses of numbers alone."""

    clauses: tuple[Clause, ...]

    def __len__(self) -> int:
        return len(self.clauses)

    def __iter__(self) -> Iterator[Clause]:
        return iter(self.clauses)

    def contains(self, version: str, prereleases: bool | None = None) -> bool:
        """Whether the range contains a version. All but plain releases are left to `packaging`."""
        if not _RELEASE.fullmatch(version):
            from packaging.specifiers import SpecifierSet

            together = ",".join(clause.operator + clause.version for clause in self.clauses)
            return SpecifierSet(together).contains(version, prereleases=prereleases)
        release = _release(version)
        return all(_COMPARES[clause.operator](release, _release(clause.version)) for clause in self.clauses)


def plain_requirement(text: str) -> tuple[str, PlainRange] | None:
    """The name of a distribution as it is written, and the releases that are allowed; None where it says more."""
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        return None
    parts = [part.strip() for part in match[2].split(",")] if match[2].strip() else []
    clauses = [_CLAUSE.fullmatch(part) for part in parts]
    read = tuple(Clause(clause[1], clause[2]) for clause in clauses if clause is not None)
    return (match[1], PlainRange(read)) if len(read) == len(parts) else None


def _release(version: str) -> tuple[int, ...]:
    """2.16 and 2.16.0 are the same."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
