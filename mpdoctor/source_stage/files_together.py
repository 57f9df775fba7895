"""What the files that are judged together say of each other: which one imports which, under what policies, and what it
makes and saves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import FromOutside
from mpdoctor.source_stage.made_layers import float32_classes
from mpdoctor.source_stage.saved_files import SavedFiles
from mpdoctor.source_stage.walked_files import WalkedFiles

if TYPE_CHECKING:
    from mpdoctor.source_stage.keras_backends import KerasBackends

FLOAT16 = ("mixed_float16", "float16", None)


class FilesTogether:
    """The files of a run, or of a part of one, that are judged together.

    seen
        All files of the run that were looked at.
    own
        Those that are judged together.
    shown
        How each is shown, by absolute path.
    is_program
        They are one program, of which nobody asks which of its files stand behind a question for a version.
    facts
        Those of each file, by path as shown.
    paths
        Absolute paths, by path as shown.
    """

    def __init__(
        self,
        seen: WalkedFiles,
        own: Collection[Path],
        shown: Mapping[Path, str],
        *,
        is_program: bool,
        assume_mixed: bool,
    ) -> None:
        facts = [seen.facts[path] for path in own]
        together = set(own)
        self.facts = {file.path: file for file in facts}
        self.paths = {seen.facts[path].path: path for path in own}
        self._assume_mixed = assume_mixed
        self._all_mixed = seen.mixed
        self._imported = {path for of_file in facts for path in of_file.imports}
        self._imported |= {shown[imported] for path in own for imported in seen.imports_of(path) & together}
        self._guarded = set() if is_program else _guarded_files(facts)
        self._policies = _policies_by_importers(facts)
        self._float16 = {path for path, names in self._policies.items() if any(name in FLOAT16 for name in names)}
        self._saved_files = SavedFiles(facts, self._policies)
        mixed = set() if _only_rewrites_graphs(facts) else seen.mixed & together
        self._reached = {imported for path in mixed for imported in seen.facts[path].imports}
        decided = [seen.facts[path] for path in own if path not in seen.choosing]
        self._float32_classes = float32_classes(decided, assume_mixed)
        self._backends: KerasBackends | None = None

    def said_of(self, shown_as: str, keras: Keras) -> FromOutside:
        """What the other files say of this one, which is judged by that Keras."""
        facts = self.facts[shown_as]
        return {
            "keras": keras,
            "assume_mixed": self._assume_mixed,
            "is_imported": shown_as in self._imported,
            "is_guarded": shown_as in self._guarded,
            "mixed_elsewhere": shown_as in self._reached,
            "policies_elsewhere": self._policies.get(shown_as, ()),
            "other_backend": self._other_backend(facts),
            "float16_elsewhere": self._float16_elsewhere(facts),
            "files_saved_elsewhere": self._saved_files.written_beside(facts),
            "float32_classes": self._float32_classes_seen_by(facts),
        }

    def _other_backend(self, facts: SourceFacts) -> str:
        """The backend of Keras 3 other than TensorFlow that runs a file."""
        names_keras = "import keras" in facts.text or "from keras" in facts.text
        if not (names_keras and (self._all_mixed or self._assume_mixed)):
            return ""
        from mpdoctor.source_stage.keras_backends import KerasBackends

        self._backends = self._backends or KerasBackends(self.facts.values())
        return self._backends.other_than_tensorflow(facts)

    def _float16_elsewhere(self, facts: SourceFacts) -> tuple[str, ...]:
        """The files that this one imports and that may compute in float16 in another program."""
        return tuple(sorted(self._float16.intersection(facts.imports)))

    def _float32_classes_seen_by(self, facts: SourceFacts) -> tuple[Location, ...]:
        seen = {facts.path, *facts.imports} if self._float32_classes else set()
        return tuple(
            sorted(place for path in seen & self._float32_classes.keys() for place in self._float32_classes[path])
        )


def _guarded_files(sources: Iterable[SourceFacts]) -> set[str]:
    """The files, by path as shown, that are imported, and only where the program asks first whether that works, or from
    other such files: `try: from .keras3 import …` `except ImportError: …`."""
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


def _policies_by_importers(project: Iterable[SourceFacts]) -> dict[str, tuple[str | None, ...]]:
    """For each path as shown, what the files that import it say of the global policy (`SourceFacts.policies_set`)."""
    policies: dict[str, dict[str | None, None]] = {}
    for facts in project:
        for path in facts.imports if facts.policies_set else ():
            policies.setdefault(path, {}).update(dict.fromkeys(facts.policies_set))
    return {path: tuple(names) for path, names in policies.items()}


def _only_rewrites_graphs(sources: Iterable[SourceFacts]) -> bool:
    """Whether mixed precision is TensorFlow's rewriting of graphs in these files, and no policy is ever set: a wrapped
    optimizer goes with that, and layers compute in float32 as far as their code can tell."""
    facts = list(sources)
    return any(of_file.rewrites_graphs for of_file in facts) and not any(of_file.shows_16_bits for of_file in facts)
