"""`import`: a library's names become `Api`s, first-party modules are walked when the program first imports
them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.breakdown import breakdown_from_error
from mpdoctor.facts.location import Location
from mpdoctor.program.source_facts import Problem
from mpdoctor.program.values import Known, Unknown, Value
from mpdoctor.source.modules import Files, package_of
from mpdoctor.source.names import api_from_name
from mpdoctor.source.reading import Source
from mpdoctor.source.recording import Enough
from mpdoctor.source.scopes import Frame, Import, Module
from mpdoctor.source.statements import Statements

MOST_MODULES = 60  # that one file may bring in
_OF_THE_IMPORTER = ("module", "scope", "frame", "context", "events", "_qualified", "_owner", "depth")
_SAYS_GLOBAL = re.compile(r"^[ \t]+global\s+\w+\s*(?:,|#|;|\\|$)", re.M)


class Importing(Statements):
    def __init__(
        self,
        files: Files | None = None,
        root: Path | None = None,
        given: Mapping[Path, str] = MappingProxyType({}),
    ) -> None:
        """`given`: how the files that were asked about are shown, by absolute path."""
        super().__init__()
        self.files = files or Files()
        self._given = given
        self.root = root
        self.modules: dict[Path, Module] = {}
        self.brought_in = 0
        self.guarded = False  # the whole of what is walked: `SourceFacts.is_guarded`

    def new_module(self, source: Source, path: Path | None, name: str, importer: Module | None) -> Module:
        root, shown_root, top, package = self.root, Path(source.path).parent, None, ""
        if importer is not None:
            root, shown_root, top = importer.root, importer.shown_root, importer.top
            is_package = path is not None and path.name == "__init__.py"
            package = name if is_package else name.rpartition(".")[0]
        elif path is not None:
            root = path.parent
            top, package = package_of(path)
        module = Module(source.span(1, 0, 1, 0), name, package, root, shown_root, top, source=source)
        for names in (module.scope.names, module.imports, module.facts_of_nodes):
            self.changes.created(names)
        return module

    def walk_module(self, module: Module) -> None:
        outer = self.module, self.scope, self.frame, self.context, self.events, self._qualified, self._owner
        self.module, self.scope, self.events = module, module.scope, module.events
        self.frame, self._qualified, self._owner = Frame(), [], None
        self.change_context(function=None, owner=None, guarded=self.context.guarded or self.guarded)
        if _SAYS_GLOBAL.search(module.source.text):
            for node in ast.walk(module.source.tree):
                if isinstance(node, ast.Global):
                    module.changed_globals.update(node.names)
        module.scope.names["__name__"] = Known(module.location, module.name)
        module.scope.names["__file__"] = Unknown(module.location)
        self.block(module.source.tree.body)
        self.module, self.scope, self.frame, self.context, self.events, self._qualified, self._owner = outer

    def import_names(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._import_module(alias)
            return
        module = self._absolute(node)
        first_party = self._first_party(module) if module is not None else None
        for alias in node.names:
            location = self._alias_place(alias)
            if first_party is not None:
                if alias.name == "*":
                    self._import_everything(first_party)
                else:
                    value = self.name_in_module(first_party, alias.name, location)
                    self._bind_import(alias.asname or alias.name, value)
            elif module is None or node.level:
                self.bind(alias.asname or alias.name, Unknown(location))
            elif alias.name == "*":
                self.module.stars.append(module)
                self.record_use(api_from_name(module, location), location, is_import=True)
            else:
                api = api_from_name(f"{module}.{alias.name}", location)
                self.record_use(api, location, is_import=True)
                self._bind_import(alias.asname or alias.name, self.api(api.spelled, location))

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

    def _import_everything(self, module: Module) -> None:
        for name, value in list(module.scope.names.items()):
            if not name.startswith("_"):
                self._bind_import(name, value)
        self.module.stars.extend(module.stars)

    def _bind_import(self, name: str, value: Value) -> None:
        self.imported[id(value)] = value
        self.bind(name, value)

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
        here = self.module
        path = None
        in_own_package = here.package and dotted.partition(".")[0] == here.package.partition(".")[0]
        if here.top is not None and in_own_package:
            path = self.files.find(here.top, dotted)
        if path is None and here.root is not None:
            path = self.files.find(here.root, dotted)
        if path is None:
            return None
        if "." in dotted:  # Python runs a package's __init__ first
            self._first_party(dotted.rpartition(".")[0])
        return self._imported_module(path, dotted)

    def _imported_module(self, path: Path, dotted: str) -> Module | None:
        module = self.modules.get(path)
        if module is None:
            module = self.load(path, dotted)
        if module is not None and module is not self.module:
            self._remember_import(module)
        return module

    def _remember_import(self, module: Module) -> None:
        """The first one, or the first that is not guarded."""
        known = self.module.imports.get(id(module))
        if known is None or (known.context.guarded and not self.context.guarded):
            self.changes.set(self.module.imports, id(module), Import(module, self.context, self.next_order()))

    def load(self, path: Path, dotted: str) -> Module | None:
        if self.brought_in >= MOST_MODULES:
            return None
        try:
            source = self.files.source(path, self.shown(path))
        except OSError:
            return None
        except Exception as error:
            return self._broken_module(path, dotted, error)
        if isinstance(source, Problem):
            return None
        self.brought_in += 1
        return self.walk_imported(source, path, dotted)

    def walk_imported(self, source: Source, path: Path, dotted: str) -> Module:
        module = self.modules[path] = self.new_module(source, path, dotted, self.module)
        with self._apart_from_importer(module):
            self.walk_module(module)
        return module

    def _broken_module(self, path: Path, dotted: str, error: Exception) -> Module:
        """In place of a file that we broke on: nothing is known of it."""
        source = Source(self.shown(path), "", ast.Module([], []))
        module = self.modules[path] = self.new_module(source, path, dotted, self.module)
        module.breakdowns.append(breakdown_from_error(source.path, error))
        return module

    @contextmanager
    def _apart_from_importer(self, module: Module) -> Iterator[None]:
        """Where we break on what is imported, the walk of what imports it goes on."""
        outer, in_functions = {name: vars(self)[name] for name in _OF_THE_IMPORTER}, len(self.stack)
        try:
            yield
        except (Enough, RecursionError):
            raise
        except Exception as error:
            module.breakdowns.append(breakdown_from_error(module.source.path, error))
            vars(self).update(outer)
            del self.stack[in_functions:]

    def shown(self, path: Path) -> str:
        """An imported file is shown the way that the script is: relative to the same directory."""
        if path in self._given:
            return self._given[path]
        here = self.module
        return str(path) if here.root is None else os.path.normpath(here.shown_root / os.path.relpath(path, here.root))

    def name_in_module(self, module: Module, name: str, location: Location) -> Value:
        value = module.scope.names.get(name)
        if value is None and module.name:
            value = self._first_party(f"{module.name}.{name}")
        return value if value is not None else Unknown(location)
