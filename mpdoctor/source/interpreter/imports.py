"""`import` statements: a library's names become `Api`s, a first-party module is executed where it is first imported."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_history import is_private
from mpdoctor.program.breakdown import breakdown_from_error
from mpdoctor.program.source_record import Problem
from mpdoctor.program.values import Known, Unknown, Value
from mpdoctor.source.interpreter.dispatch import execute_block
from mpdoctor.source.interpreter.name_lookup import library_name
from mpdoctor.source.interpreter.state.events import Enough
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_use
from mpdoctor.source.interpreter.state.scopes import Frame, Import, Module
from mpdoctor.source.modules import package_of
from mpdoctor.source.names import LIBRARIES, api_from_name
from mpdoctor.source.reading import Source

MOST_MODULES = 120  # that one file may bring in
MOST_CHOSEN = 40  # of a package, where nobody knows which
_SAYS_GLOBAL = re.compile(r"^[ \t]+global\s+\w+\s*(?:,|#|;|\\|$)", re.M)


def new_module(state: State, source: Source, path: Path | None, name: str, importer: Module | None) -> Module:
    """A module that was not executed yet, known to the state by its path."""
    root, shown_root, top, package = state.root, Path(source.path).parent, None, ""
    if importer is not None:
        root, shown_root, top = importer.root, importer.shown_root, importer.top
        is_package = path is not None and path.name == "__init__.py"
        package = name if is_package else name.rpartition(".")[0]
    elif path is not None:
        root = path.parent
        top, package = package_of(path)
    module = Module(source.span(1, 0, 1, 0), name, package, root, shown_root, top, source=source)
    state.walk.side_effects.created(module.scope.names)
    state.walk.side_effects.created(module.imports)
    state.walk.side_effects.created(module.facts_of_nodes)
    return module


def execute_module(state: State, module: Module) -> None:
    """Execute the top level of a module with a scope and events of its own, and come back to the importer."""
    importer = state.position()
    state.module, state.scope, state.events = module, module.scope, module.events
    state.frame, state.qualified, state.owner = Frame(), [], None
    state.context = state.context.but(function=None, owner=None, guarded=state.context.guarded or state.walk.guarded)
    if "global" in module.source.text and _SAYS_GLOBAL.search(module.source.text):
        for node in ast.walk(module.source.tree):
            if isinstance(node, ast.Global):
                module.changed_globals.update(node.names)
    module.scope.names["__name__"] = Known(module.location, module.name)
    module.scope.names["__file__"] = Unknown(module.location)
    execute_block(state, module.source.tree.body)
    state.go_back_to(importer)


def execute_import(state: State, node: ast.Import) -> bool:
    for alias in node.names:
        _import_module(state, alias)
    return True


def execute_import_from(state: State, node: ast.ImportFrom) -> bool:
    module = _absolute(state, node)
    first_party = first_party_module(state, module) if module is not None else None
    for alias in node.names:
        location = _alias_place(state, alias)
        if first_party is not None:
            if alias.name == "*":
                _import_everything(state, first_party)
            else:
                value = name_in_module(state, first_party, alias.name, location)
                _bind_import(state, alias.asname or alias.name, value)
        elif (in_folder := _module_in_folder(state, module, alias.name)) is not None:
            _bind_import(state, alias.asname or alias.name, in_folder)
        elif module is None or node.level:
            state.bind(alias.asname or alias.name, Unknown(location))
        elif alias.name == "*":
            state.module.stars.append(module)
            record_use(state, api_from_name(module, location), location, is_import=True)
        else:
            api = api_from_name(f"{module}.{alias.name}", location)
            record_use(state, api, location, is_import=True)
            _note_own_library(state, module)
            _bind_import(state, alias.asname or alias.name, library_name(api.spelled, location))
    return True


def _module_in_folder(state: State, package: str | None, name: str) -> Module | None:
    """The module of this name in a first-party folder that has no `__init__`, which Python takes for a package."""
    if not package or name == "*" or package.partition(".")[0] in LIBRARIES:
        return None
    return first_party_module(state, f"{package}.{name}")


def _import_module(state: State, alias: ast.alias) -> None:
    location = _alias_place(state, alias)
    first = alias.name.partition(".")[0]
    module = first_party_module(state, alias.name)
    if module is not None:
        top = module if alias.asname else first_party_module(state, first)
        _bind_import(state, alias.asname or first, top or module)
        return
    api = api_from_name(alias.name, location)
    record_use(state, api, location, is_import=True)
    _note_own_library(state, alias.name)
    _bind_import(state, alias.asname or first, api if alias.asname else api_from_name(first, location))


def _note_own_library(state: State, module: str) -> None:
    """Note which library a private module is of, if the project holds that library itself."""
    root = state.module.root
    if root is not None and is_private(f"{module}.") and state.files.is_held_by_project(root, module):
        state.module.libraries_held.add(module.partition(".")[0])


def _import_everything(state: State, module: Module) -> None:
    for name, value in list(module.scope.names.items()):
        if not name.startswith("_"):
            _bind_import(state, name, value)
    state.module.stars.extend(module.stars)


def _bind_import(state: State, name: str, value: Value) -> None:
    state.imported.add(value)
    state.bind(name, value)


def _alias_place(state: State, alias: ast.alias) -> Location:
    end = alias.col_offset + len(alias.name.encode())
    return state.module.source.span(alias.lineno, alias.col_offset, alias.lineno, end)


def _absolute(state: State, node: ast.ImportFrom) -> str | None:
    """The module of `from … import`; None where a relative import leaves the package."""
    if not node.level:
        return node.module
    parts = state.module.package.split(".") if state.module.package else []
    if node.level - 1 > len(parts):
        return None
    kept = parts[: len(parts) - (node.level - 1)]
    return ".".join((*kept, node.module)) if node.module else ".".join(kept)


def first_party_module(state: State, dotted: str) -> Module | None:
    """A module of the program's own: below the script's directory, in the script's own package, or in a package of
    the project around it."""
    here = state.module
    path = None
    in_own_package = here.package and dotted.partition(".")[0] == here.package.partition(".")[0]
    if here.top is not None and in_own_package:
        path = state.files.find(here.top, dotted)
    if path is None and here.root is not None:
        path = state.files.find(here.root, dotted) or state.files.find_in_project(here.root, dotted)
    if path is None:
        return None
    if "." in dotted:  # Python runs a package's __init__ first
        first_party_module(state, dotted.rpartition(".")[0])
    return _imported_module(state, path, dotted)


def import_any_of(state: State, package: str, ending: str) -> None:
    """Import all given files that are modules of a package, and whose names end so: a program chooses one of them when
    it runs. A package may name itself as scripts do that lie above it, or by a dot."""
    here, folders = state.module, []
    is_itself = here.package and f".{here.package}".endswith(f".{package.lstrip('.')}")
    if here.top is not None and (not package or is_itself):
        folders.append(here.top.joinpath(*here.package.split(".")))
    if package and not package.startswith("."):
        folders += [root.joinpath(*package.split(".")) for root in (here.top, here.root) if root is not None]
    for folder in folders:
        beside = (path for path in state.shown if path.parent == folder and path.suffix == ".py")
        chosen = sorted(path for path in beside if path.stem.endswith(ending) and path.stem != "__init__")
        for path in chosen[:MOST_CHOSEN]:
            _imported_module(state, path, f"{package}.{path.stem}".lstrip("."))
        if chosen:
            return


def _imported_module(state: State, path: Path, dotted: str) -> Module | None:
    module = state.modules.get(path)
    if module is None:
        module = state.load_module(state, path, dotted)
    if module is not None and module is not state.module:
        _remember_import(state, module)
    return module


def _remember_import(state: State, module: Module) -> None:
    """Remember where the module in hand first imports another one, or first without a guard."""
    known = state.module.imports.get(id(module))
    if known is None or (known.context.guarded and not state.context.guarded):
        state.walk.side_effects.set(state.module.imports, id(module), Import(module, state.context, state.next_order()))


def load_module(state: State, path: Path, dotted: str) -> Module | None:
    """A module of a program: executed where the program first imports it."""
    return load_as(state, path, dotted, _execute_imported)


def load_as(
    state: State, path: Path, dotted: str, execute: Callable[[State, Source, Path, str], Module]
) -> Module | None:
    """The module in a file under this name. None where the file cannot be read, or where enough files were."""
    if state.walk.modules_read >= MOST_MODULES:
        return None
    try:
        source = state.files.source(path, _shown(state, path))
    except OSError:
        return None
    except Exception as error:
        return _broken_module(state, path, dotted, error)
    if isinstance(source, Problem):
        return None
    state.walk.modules_read += 1
    return execute(state, source, path, dotted)


def _execute_imported(state: State, source: Source, path: Path, dotted: str) -> Module:
    module = state.modules[path] = new_module(state, source, path, dotted, state.module)
    with _apart_from_importer(state, module):
        execute_module(state, module)
    return module


def _broken_module(state: State, path: Path, dotted: str, error: Exception) -> Module:
    """An empty module in the place of a file that mpdoctor broke on."""
    source = Source(_shown(state, path), "", ast.Module([], []))
    module = state.modules[path] = new_module(state, source, path, dotted, state.module)
    module.breakdowns.append(breakdown_from_error(source.path, error))
    return module


@contextmanager
def _apart_from_importer(state: State, module: Module) -> Iterator[None]:
    """Record an exception of ours while an imported module is executed, and let the execution of its importer go on."""
    importer, in_functions = state.position(), len(state.walk.call_stack)
    try:
        yield
    except (Enough, RecursionError):
        raise
    except Exception as error:
        module.breakdowns.append(breakdown_from_error(module.source.path, error))
        state.go_back_to(importer)
        del state.walk.call_stack[in_functions:]


def _shown(state: State, path: Path) -> str:
    """How an imported file is shown: as the script is, relative to the same directory."""
    if path in state.shown:
        return state.shown[path]
    here = state.module
    return str(path) if here.root is None else os.path.normpath(here.shown_root / os.path.relpath(path, here.root))


def name_in_module(state: State, module: Module, name: str, location: Location) -> Value:
    value = module.scope.names.get(name)
    if value is None and module.name:
        value = first_party_module(state, f"{module.name}.{name}")
    return value if value is not None else Unknown(location)
