"""Files for one of several library versions, as their importer says: `try: from .keras3 import …` `except ImportError:
…`."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.program.source_facts import SourceFacts


def guarded_files(sources: Iterable[SourceFacts]) -> set[str]:
    """The files, by path as shown, that are imported, and only where the program asks first whether that works, or from
    other such files."""
    facts = {source.path: source for source in sources}
    guarded: set[str] = set()
    while True:
        certain = {path for file in facts.values() if file.path not in guarded for path in file.certain_imports}
        asked = {path for file in facts.values() for path in file.guarded_imports}
        asked |= {
            path
            for guarded_path in guarded
            for path in facts[guarded_path].certain_imports
            if not _imports(facts, path, guarded_path)
        }
        behind_guards = (asked & facts.keys()) - certain
        if behind_guards <= guarded:
            return guarded
        guarded |= behind_guards


def _imports(facts: dict[str, SourceFacts], path: str, other: str) -> bool:
    """Whether it brings the other one in: a package whose `__init__` asks is not what it asks about."""
    return path in facts and other in facts[path].imports
