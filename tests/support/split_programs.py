"""A program in one file, as one in two: its classes move into `parts.py`, and every line keeps its number."""

from __future__ import annotations

import ast
import builtins

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign


def split_program(text: str) -> tuple[str, str] | None:
    """The script and its `parts.py`; None where the classes cannot move: there are none, they stand above an import, or
    use a name that is neither imported nor defined by a function, a class or a constant."""
    tree, lines = ast.parse(text), text.splitlines()
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    moved = _classes_with_what_they_use(tree, imports)
    if not moved or not imports or imports[-1].lineno > min(map(_first_line, moved)):
        return None
    inside = {line for node in moved for line in range(_first_line(node), (node.end_lineno or 0) + 1)}
    above = {line for node in imports for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    script = ["" if number in inside else line for number, line in enumerate(lines, 1)]
    parts = [line if number in inside | above else "" for number, line in enumerate(lines, 1)]
    end = (imports[-1].end_lineno or 0) - 1
    script[end] = f"{script[end].split('  #')[0]}; from parts import {', '.join(map(_name_of, moved))}"
    return "\n".join(script) + "\n", "\n".join(parts) + "\n"


def _classes_with_what_they_use(tree: ast.Module, imports: list[ast.Import | ast.ImportFrom]) -> list[Definition]:
    known = {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}
    known |= set(dir(builtins))
    defined = {_name_of(node): node for node in tree.body if _is_definition(node)}
    moved: list[Definition] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in moved:  # which grows
        for name in sorted(_names_used(node) - known):
            if name not in defined:
                return []
            if defined[name] not in moved:
                moved.append(defined[name])
    return moved


def _names_used(node: Definition) -> set[str]:
    nodes = list(ast.walk(node))
    names = [inner for inner in nodes if isinstance(inner, ast.Name)]
    own = {inner.arg for inner in nodes if isinstance(inner, ast.arg)}
    own |= {inner.name for inner in nodes if isinstance(inner, (ast.FunctionDef, ast.ClassDef))}
    return {name.id for name in names} - own - {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _is_definition(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and isinstance(node.value, (ast.Constant, ast.Tuple))
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def _name_of(node: ast.stmt) -> str:
    assert isinstance(node, Definition)
    if not isinstance(node, ast.Assign):
        return node.name
    (target,) = node.targets
    assert isinstance(target, ast.Name)
    return target.id


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
