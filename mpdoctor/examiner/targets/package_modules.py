"""Files of a package that import their neighbours relatively: Python runs such a script as `python -m package.script`
alone, and knows such a module by its full name alone."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Iterator, NamedTuple

from mpdoctor.examiner.targets.caught_exceptions import nodes_of
from mpdoctor.knowledge.python_idioms import is_main_test


class PackageModule(NamedTuple):
    """A file as a module of its package.

    root
        The folder that the outermost package lies in.
    name
        The full name, "package.script".
    """

    root: str
    name: str

    @property
    def package(self) -> str:
        return self.name.rpartition(".")[0]


def package_module(path: str, tree: ast.Module) -> PackageModule | None:
    """The module of a package that the file is. None for a file that runs by itself: one without a relative import in
    its top level, or that is prepared for its failure; and where the folders around it are no packages."""
    levels = [statement.level for statement in _always_run(tree) if isinstance(statement, ast.ImportFrom)]
    depth = max(levels, default=0)
    if not depth or any(_names_its_package(node) for node in nodes_of(tree)):
        return None
    folder, names = os.path.dirname(os.path.abspath(path)), [os.path.splitext(os.path.basename(path))[0]]
    while len(names) <= depth or _is_package(folder, path):
        folder, name = os.path.split(folder)
        if not name.isidentifier():
            return None
        names.insert(0, name)
    known = sys.modules.get(names[0])
    return None if known is not None else PackageModule(folder, ".".join(names))


def import_package(module: PackageModule) -> None:
    """Imports the packages around this module, the outermost one from its own folder, whatever is installed under its
    name. What lies beside that folder can be imported, but shadows nothing.

    Raises whatever the packages' own code raises."""
    top = module.name.partition(".")[0]
    folder = os.path.join(module.root, top)
    start = os.path.join(folder, "__init__.py")
    if os.path.isfile(start):
        spec = importlib.util.spec_from_file_location(top, start, submodule_search_locations=[folder])
    else:
        spec = ModuleSpec(top, None, is_package=True)
        spec.submodule_search_locations = [folder]
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[top] = package
    sys.path.append(module.root)
    if spec.loader is not None:
        spec.loader.exec_module(package)
    importlib.import_module(module.package)


def _always_run(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that a run as a program comes to, whatever holds."""
    for statement in tree.body:
        yield statement
        if isinstance(statement, ast.If) and is_main_test(statement.test):
            yield from statement.body


def _names_its_package(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__package__" and isinstance(node.ctx, ast.Store)


def _is_package(folder: str, path: str) -> bool:
    """Whether a folder is a package that belongs to the script's owner: code of others is not run for it."""
    try:
        return os.stat(os.path.join(folder, "__init__.py")).st_uid == os.stat(path).st_uid
    except OSError:
        return False
