"""Names of mpdoctor that tests, tools and benchmarks import: a slow test that misses one may not run for days."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]


@cache
def names_of(module: Path) -> frozenset[str]:
    """The names that a module binds, in whatever place, and the modules inside a package."""
    path = module.with_suffix(".py") if not module.is_dir() else module / "__init__.py"
    inside = {entry.stem for entry in module.iterdir()} if module.is_dir() else set()
    bound = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path.exists() else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name)
    return frozenset(bound | inside)


@pytest.mark.parametrize("folder", ["tests", "tools", "benchmarks"])
def test_every_imported_name_is_there(folder: str) -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}.{alias.name}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mpdoctor"
        for alias in node.names
        if alias.name not in names_of(ROOT / (node.module or "").replace(".", "/"))
    ]
    assert missing == []
