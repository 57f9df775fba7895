"""One program: the file it starts in, the first-party modules that it imports, and the walk through them
all."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.facts.source import Problem, SourceFacts
from mpdoctor.facts.values import Context, Known, Unknown, Value
from mpdoctor.source.declared import declared_keras
from mpdoctor.source.modules import Files, package_of
from mpdoctor.source.names import api_from_name
from mpdoctor.source.reading import Source
from mpdoctor.source.recording import Enough
from mpdoctor.source.scopes import Frame, Module
from mpdoctor.source.statements import Statements

MOST_MODULES = 60
_FRAMES = (
    6000  # Python frames that the deepest walk needs: DEEPEST levels of DEEPEST_CALL functions, some 3 each
)


class Program(Statements):
    """Walks one program. `path` is None for text that is no file."""

    def __init__(self, source: Source, path: Path | None = None, files: Files | None = None) -> None:
        super().__init__()
        self.files = files or Files()
        self.root = None if path is None else path.parent
        self.top: Path | None = None
        self.package = ""
        if path is not None:
            self.top, self.package = package_of(path)
        self.modules: dict[Path, Module] = {}
        self.shown_modules: list[tuple[Path, str]] = []
        self.start = self.module = Module(source.span(1, 0, 1, 0), "__main__", self.package, source=source)
        if path is not None:
            self.modules[path] = self.start
        self.incomplete = False

    def facts(self) -> SourceFacts:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _FRAMES))
        try:
            self._walk_program()
        except (Enough, RecursionError):
            self.incomplete = True
        finally:
            sys.setrecursionlimit(limit)
        self.withs.sort(key=lambda one: one.order)
        return SourceFacts(
            self.start.source.path,
            self.start.source.text,
            tuple(self.uses),
            tuple(self.calls),
            tuple(self.reads),
            tuple(self.writes),
            tuple(self.operations),
            tuple(self.withs),
            tuple(self.returns),
            tuple(self.start.classes),
            tuple(self.start.functions),
            tuple(shown for _, shown in self.shown_modules),
            declared_keras=declared_keras(self.uses, self.calls, self.writes),
            incomplete=self.incomplete,
        )

    def _walk_program(self) -> None:
        self._walk_module(self.start)
        done = 0
        while done < len(self.pending):
            closure = self.pending[done]
            done += 1
            if closure.followed or closure.module is not self.start:
                continue
            owner = closure.facts.owner
            reached = owner is not None and owner.kind is not None and id(owner) in self.instantiated
            self.runs += 1
            self.context = Context(reached=reached, run=self.runs)
            self.walk_alone(closure)

    def _walk_module(self, module: Module) -> None:
        outer = self.module, self.scope, self.frame, self.context, self._qualified, self._owner
        self.module, self.scope = module, module.scope
        self.frame, self._qualified, self._owner = Frame(), [], None
        self.change_context(function=None, owner=None)
        if "global " in module.source.text:
            self.changed_globals |= {
                name
                for node in ast.walk(module.source.tree)
                if isinstance(node, ast.Global)
                for name in node.names
            }
        module.scope.names["__name__"] = Known(module.location, module.name)
        module.scope.names["__file__"] = Unknown(module.location)
        self.block(module.source.tree.body)
        self.module, self.scope, self.frame, self.context, self._qualified, self._owner = outer

    def import_names(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._import_module(alias)
            return
        module = self._absolute(node)
        first_party = self._first_party(module) if module is not None else None
        for alias in node.names:
            location = self._alias_place(alias)
            value: Value
            if first_party is not None:
                value = self._from_module(first_party, module or "", alias, location)
            elif module is None or node.level:
                value = Unknown(location)
            elif alias.name == "*":
                self.module.stars.append(module)
                self.record_use(api_from_name(module, location), location, is_import=True)
                continue
            else:
                api = api_from_name(f"{module}.{alias.name}", location)
                self.record_use(api, location, is_import=True)
                value = self.api(api.spelled, location)
            if alias.name != "*":
                self._bind_import(alias.asname or alias.name, value)

    def _import_module(self, alias: ast.alias) -> None:
        location = self._alias_place(alias)
        first = alias.name.partition(".")[0]
        module = self._first_party(alias.name)
        if module is not None:
            top = module if alias.asname else self._first_party(first)
            self._bind_import(alias.asname or first, top or module)
            return
        api = api_from_name(alias.name, location)
        self.record_use(api, location, is_import=True)
        self._bind_import(alias.asname or first, api if alias.asname else api_from_name(first, location))

    def _bind_import(self, name: str, value: Value) -> None:
        self.imported.add(id(value))
        self.scope.bind(name, value)

    def _alias_place(self, alias: ast.alias) -> Location:
        end = alias.col_offset + len(alias.name.encode())
        return self.module.source.span(alias.lineno, alias.col_offset, alias.lineno, end)

    def _absolute(self, node: ast.ImportFrom) -> str | None:
        """The module of `from … import`; None where a relative import leaves the package."""
        if not node.level:
            return node.module
        parts = self.module.package.split(".") if self.module.package else []
        if node.level - 1 > len(parts):
            return None
        kept = parts[: len(parts) - (node.level - 1)]
        return ".".join((*kept, node.module)) if node.module else ".".join(kept)

    def _first_party(self, dotted: str) -> Module | None:
        """A module of the program's own: below the script's directory, or in the script's own package."""
        path = None
        if (
            self.top is not None
            and self.package
            and dotted.partition(".")[0] == self.package.partition(".")[0]
        ):
            path = self.files.find(self.top, dotted)
        if path is None and self.root is not None:
            path = self.files.find(self.root, dotted) if dotted else None
        return None if path is None else self._module(path, dotted)

    def _module(self, path: Path, dotted: str) -> Module | None:
        known_module = self.modules.get(path)
        if known_module is not None:
            return known_module
        if len(self.modules) >= MOST_MODULES:
            return None
        shown = self._shown(path)
        try:
            source = self.files.source(path, shown)
        except OSError:
            return None
        if isinstance(source, Problem):
            return None
        package = dotted if path.name == "__init__.py" else dotted.rpartition(".")[0]
        module = Module(source.span(1, 0, 1, 0), dotted, package, source=source)
        self.modules[path] = module
        self.shown_modules.append((path, source.path))
        self._walk_module(module)
        return module

    def _shown(self, path: Path) -> str:
        """Imported files are shown the way that the start file is: relative to the same directory where they
        can be."""
        start = Path(self.start.source.path)
        if self.root is None or start.is_absolute():
            return str(path)
        try:
            return str(start.parent / path.relative_to(self.root))
        except ValueError:
            return str(path)

    def _from_module(self, module: Module, dotted: str, alias: ast.alias, location: Location) -> Value:
        if alias.name == "*":
            for name, value in list(module.scope.names.items()):
                if not name.startswith("_"):
                    self._bind_import(name, value)
            self.module.stars.extend(module.stars)
            return Unknown(location)
        return self.name_in_module(module, alias.name, location)

    def name_in_module(self, module: Module, name: str, location: Location) -> Value:
        value = module.scope.names.get(name)
        if value is None:
            value = self._first_party(f"{module.name}.{name}") if module.name else None
        return value if value is not None else Unknown(location)
