"""The backend other than TensorFlow on which Keras 3 runs a file, as the files of its program or the project say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mpdoctor.knowledge.keras_backends import backend_of_imports, backends_in_program, other_than_tensorflow
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.project.declared_versions.keras_backend import backend_around

_IMPORTS_KERAS = re.compile(r"^[^\S\n]*(?:import|from)\s+keras\b", re.MULTILINE)


class KerasBackends:
    """The backends of a project's files: what a file names, else what a file that imports it names, else what a file
    names that it imports, else what the environment and the files around it say."""

    def __init__(self, project: Iterable[SourceFacts]) -> None:
        files = list(project)
        self._around: dict[Path, str] = {}
        self._own = {facts.path: named for facts in files if (named := backends_in_program(facts.text))}
        self._of_importers: dict[str, frozenset[str]] = {}
        for facts in files if self._own else ():
            named = self._own.get(facts.path) or self._named_by_imports(facts)
            for path in facts.imports if named else ():
                self._of_importers[path] = self._of_importers.get(path, frozenset()) | named

    def other_than_tensorflow(self, facts: SourceFacts) -> str:
        """The backend on which a file of Keras 3 runs, "jax" for one; "" where that may be TensorFlow."""
        if not _IMPORTS_KERAS.search(facts.text):
            return ""
        named = self._own.get(facts.path) or self._of_importers.get(facts.path) or self._named_by_imports(facts)
        if not named and (imported := backend_of_imports(facts.text)):
            return imported
        return other_than_tensorflow(named or self._named_around(Path(facts.path).parent))

    def _named_by_imports(self, facts: SourceFacts) -> frozenset[str]:
        return frozenset(name for path in facts.imports for name in self._own.get(path, ()))

    def _named_around(self, folder: Path) -> frozenset[str]:
        if folder not in self._around:
            self._around[folder] = backend_around(folder)
        return frozenset((self._around[folder],)) if self._around[folder] else frozenset()
