"""What the examiner imports: never a neighbour of the program's, nor what the program has put into sys.modules.

A program's folder is first on sys.path, as in a plain run: a file json.py there is what the program and its libraries
get. The examiner has imported before what it needs of the standard library, and its own modules find that again,
whenever they are imported. What they had is hidden from the program where the program has a neighbour of that name.
"""

from __future__ import annotations

# What Python itself has loaded when it starts: another import here would come before imports are noted.
import builtins
import os
import sys
from _frozen_importlib_external import PathFinder
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Sequence

# What is first needed when TensorFlow is there already, by modules of ours or inside of what they use.
NEEDED_LATER = (
    "collections",
    "contextlib",
    "ctypes",
    "gzip",
    "importlib.metadata",
    "importlib.util",
    "inspect",
    "io",
    "linecache",
    "math",
    "pickle",
    "platform",
    "random",
    "subprocess",
    "tokenize",
    "traceback",
    "unicodedata",
    "weakref",
    "zipfile",
)
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_import = builtins.__import__


class OwnImports:
    """`known`: the names in sys.modules when Python had started, which a plain run begins with as well."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known
        self._importers: dict[str, set[str]] = {}
        self._own: dict[str, ModuleType] = {}
        self._hidden: dict[str, ModuleType] = {}
        self._path: list[str] = []
        self._turn = RLock()
        self._is_importing = False
        self._builtins = {**vars(builtins), "__import__": self._import_own}
        self._finder = _OwnModules(self._builtins)

    def begin(self) -> None:
        """Begin to record which module imports which."""
        sys.meta_path.insert(0, self._finder)
        builtins.__import__ = self._note_import

    def hand_over(self, folder: str | None) -> None:
        """The program comes next, whose modules lie in `folder`; None where there is no program.

        What a neighbour shadows, and what has imported that, the program is to import anew, as in a plain run."""
        for name in NEEDED_LATER:
            self._note_import(name)
        builtins.__import__ = _import
        self._path = list(sys.path)
        self._own.update((name, module) for name, module in sys.modules.items() if name != "__main__")
        new = {name for name in self._own if name not in self._known}
        roots = _shadowed_roots({name.partition(".")[0] for name in new}, folder) if folder else set()
        shadowed = {name for name in new if name.partition(".")[0] in roots}
        self._hidden = {name: self._own[name] for name in self._with_importers(shadowed, new)}
        for name in self._hidden:
            del sys.modules[name]

    def in_place(self) -> InPlace:
        """A context in which imports find mpdoctor's own modules, as if there were no program; also for what the
        standard library imports only when it is called."""
        return InPlace(self._turn, self._path, self._hidden)

    # --- imports ------------------------------------------------------------------------------------------------
    def _import_own(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0
    ) -> ModuleType:
        """`import` as the examiner's own modules know it."""
        root = name.partition(".")[0]
        module = None if level else self._own.get(name)
        if module is not None and all(hasattr(module, attribute) for attribute in fromlist or ()):
            return module if fromlist else self._own[root]
        if root != "mpdoctor" or "mpdoctor" not in self._hidden:
            return _import(name, globals, locals, fromlist, level)
        return self._import_hidden(name, fromlist)

    def _import_hidden(self, name: str, fromlist: Sequence[str]) -> ModuleType:
        """Another module of ours, while the program has an mpdoctor of its own. The modules that it imports in its turn
        stay in sys.modules until it is complete."""
        with self._turn:
            if self._is_importing:
                return _import(name, None, None, fromlist)
            self._is_importing = True
            try:
                with self.in_place():
                    module = _import(name, None, None, fromlist)
                    ours = {
                        key: imported for key, imported in sys.modules.items() if key.partition(".")[0] == "mpdoctor"
                    }
                    for key in set(ours) - set(self._hidden):
                        del sys.modules[key]
            finally:
                self._is_importing = False
        self._own.update(ours)
        self._hidden.update(ours)
        return module

    def _note_import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        module = _import(name, globals, locals, fromlist, level)
        importer = globals or {}
        package = str(importer.get("__package__") or "").split(".")
        absolute = ".".join([*package[: len(package) - level + 1], *([name] if name else [])]) if level else name
        for imported in (absolute, *(f"{absolute}.{attribute}" for attribute in fromlist or ())):
            self._importers.setdefault(imported, set()).add(str(importer.get("__name__")))
        return module

    # --- what is hidden -----------------------------------------------------------------------------------------
    def _with_importers(self, shadowed: set[str], new: set[str]) -> set[str]:
        """Names of modules. What is compiled stays, and inspect: another copy would have other types."""
        names: set[str] = set()
        waiting = list(shadowed)
        while waiting:
            name = waiting.pop()
            if name in names or (name not in shadowed and not (name in new and self._may_be_hidden(name))):
                continue
            names.add(name)
            waiting += self._importers.get(name, ())
            waiting += (module for module in new if module.startswith(f"{name}."))
        return names

    def _may_be_hidden(self, name: str) -> bool:
        file = getattr(self._own[name], "__file__", None) or ""
        return name != "inspect" and name.partition(".")[0] != "mpdoctor" and file.endswith((".py", ".pyc"))


class InPlace:
    """A context in which `hidden` modules are those that everybody finds, and `path` is where others are looked for."""

    def __init__(self, turn: RLock, path: list[str], hidden: dict[str, ModuleType]) -> None:
        self._turn, self._path, self._hidden = turn, path, hidden

    def __enter__(self) -> None:
        self._turn.acquire()
        self._programs = {name: sys.modules.get(name) for name in self._hidden}
        self._programs_path = list(sys.path)
        sys.path[:] = self._path or sys.path
        sys.modules.update(self._hidden)

    def __exit__(self, *error: object) -> None:
        sys.path[:] = self._programs_path
        for name, module in self._programs.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
        self._turn.release()


class _OwnModules:
    """Finds what lies in our own package, and gives it our own `import`."""

    def __init__(self, own_builtins: dict[str, Any]) -> None:
        self._builtins = own_builtins

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if not name.startswith("mpdoctor.") or not path or not str(next(iter(path))).startswith(PACKAGE):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._give_import(spec.loader)
        return spec

    def _give_import(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(module)["__builtins__"] = self._builtins
            execute(module)

        loader.exec_module = exec_module


def _shadowed_roots(roots: set[str], folder: str) -> set[str]:
    """Those of these top-level modules that `folder` has a module for. A folder without __init__ takes no
    precedence."""
    try:
        entries = {entry.partition(".")[0] for entry in os.listdir(folder)}
    except OSError:  # which Python passes over as well
        return set()
    shadowed = set()
    for root in roots & entries:
        spec = PathFinder.find_spec(root, [folder])
        if spec is not None and spec.loader is not None:
            shadowed.add(root)
    return shadowed
