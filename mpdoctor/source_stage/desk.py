"""One process' share of the source stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpdoctor.facts.source import SourceFacts
from mpdoctor.finding import Crashed, Finding
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.source.portions import Portions
from mpdoctor.source.program import without_garbage_collection

Judged = list[Finding | Crashed]
Order = tuple[Path, dict[str, Any]]  # a file, and what the facts of it are to say besides


class Desk:
    """Walks some of the files, keeps their facts, and judges them."""

    def __init__(self, unsaved: Mapping[Path, bytes]) -> None:
        self._portions = Portions(unsaved)
        self._facts: dict[Path, SourceFacts] = {}

    @without_garbage_collection()
    def read(self, files: Mapping[Path, str]) -> dict[Path, tuple[SourceFacts, bool]]:
        self._facts |= (found := {path: self._portions.unwalked(path, shown) for path, shown in files.items()})
        return {path: (facts, False) for path, facts in found.items()}

    def walk(self, files: Mapping[Path, str], with_imports: bool = False) -> dict[Path, tuple[SourceFacts, bool]]:
        """The facts without their events, and whether these show mixed precision."""
        self._facts |= (found := self._portions.walked(files, with_imports))
        return {path: (_without_events(facts), bool(facts.mixed_precision_signs)) for path, facts in found.items()}

    def walk_with_imports(self, files: Mapping[Path, str]) -> dict[Path, tuple[SourceFacts, bool]]:
        return self.walk(files, with_imports=True)

    @without_garbage_collection()
    def judge(self, orders: list[Order], codes: frozenset[str]) -> dict[Path, Judged]:
        return {path: self._judged(path, changes, codes) for path, changes in orders}

    def _judged(self, path: Path, changes: dict[str, Any], codes: frozenset[str]) -> Judged:
        if self._facts[path].is_blank:
            return []
        facts = dataclasses.replace(self._facts[path], **changes)
        return list(findings_from_facts("in_source", facts, facts.keras, lambda rule: rule.code in codes))


def _without_events(facts: SourceFacts) -> SourceFacts:
    return dataclasses.replace(
        facts, uses=(), calls=(), reads=(), writes=(), operations=(), withs=(), returns=(), classes=(), functions=()
    )
