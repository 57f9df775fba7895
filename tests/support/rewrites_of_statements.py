"""Further ways in which a program could have been written, as `rewrites` has them: of loops, imports and checks."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable

from rewrites import BUILTINS, COMPREHENSIONS, LATER, _assigned, _at, _blocks, _from, _has
from rewrites_of_style import _at_expression


def by_next(tree: ast.Module) -> bool:
    """Loops over data ask an iterator for the next batch."""
    return _loops(tree, _asked_for)


def _asked_for(loop: ast.For, number: int) -> list[ast.stmt]:
    callee = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    if (isinstance(callee, ast.Name) and callee.id in BUILTINS) or isinstance(loop.iter, (ast.List, ast.Tuple)):
        return []
    text = "while True:\n    try:\n        TARGET = next(NAME)\n    except StopIteration:\n        break"
    name = f"batches_{number}"
    again = _from(loop, text.replace("NAME", name))
    again.body[0].body[0].targets = [loop.target]  # type: ignore[attr-defined]
    again.body += loop.body  # type: ignore[attr-defined]
    return [_from(loop, f"{name} = iter(VALUE)", VALUE=loop.iter), again]


def by_while(tree: ast.Module) -> bool:
    """Loops that count are `while` loops."""
    return _loops(tree, _counted)


def _counted(loop: ast.For, _: int) -> list[ast.stmt]:
    counts = loop.iter
    is_range = isinstance(counts, ast.Call) and isinstance(counts.func, ast.Name) and counts.func.id == "range"
    if not is_range or len(counts.args) != 1 or not isinstance(loop.target, ast.Name):  # type: ignore[attr-defined]
        return []
    name = loop.target.id if loop.target.id != "_" else "rounds"
    again = _from(loop, f"while {name} < LIMIT: pass", LIMIT=counts.args[0])  # type: ignore[attr-defined]
    again.body = [*loop.body, _from(loop.body[-1], f"{name} += 1")]  # type: ignore[attr-defined]
    return [_from(loop, f"{name} = 0"), again]


def _loops(tree: ast.Module, written: Callable[[ast.For, int], list[ast.stmt]]) -> bool:
    changed, number = False, itertools.count()
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            is_plain = isinstance(statement, ast.For) and not statement.orelse and not _has(statement, ast.Continue)
            other = written(statement, next(number)) if is_plain else []  # type: ignore[arg-type]
            changed = changed or bool(other)
            new += other or [statement]
        setattr(node, name, new)
    return changed


def gathered(tree: ast.Module) -> bool:
    """A list that a loop fills is a comprehension."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            other = _comprehension(new[-1], statement) if new else None
            if other is not None:
                new[-1], changed = other, True
            else:
                new.append(statement)
        setattr(node, name, new)
    return changed


def _comprehension(before: ast.stmt, loop: ast.stmt) -> ast.stmt | None:
    if not isinstance(before, ast.Assign) or not isinstance(loop, ast.For) or len(loop.body) != 1 or loop.orelse:
        return None
    target, body = before.targets[0], loop.body[0]
    call = body.value if isinstance(body, ast.Expr) else None
    is_filled = isinstance(call, ast.Call) and ast.unparse(call.func) == f"{ast.unparse(target)}.append"
    if not is_filled or not isinstance(before.value, ast.List) or before.value.elts or _has(loop, *LATER):
        return None
    (element,) = call.args  # type: ignore[union-attr]
    made = ast.ListComp(element, [ast.comprehension(loop.target, loop.iter, [], 0)])
    return _at(body, ast.Assign([target], made))


def with_walrus(tree: ast.Module) -> bool:
    """A name that the next statement uses first is given its value there."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        if isinstance(node, ast.Lambda):
            continue
        new: list[ast.stmt] = []
        for statement in block:
            before = new[-1] if new else None
            if before is not None and (use := _first_use(before, statement)) is not None:
                value = ast.NamedExpr(ast.Name(use.id, ast.Store()), before.value)  # type: ignore[attr-defined]
                new[-1], changed = _Once(use, _at_expression(before, value)).visit(statement), True
            else:
                new.append(statement)
        setattr(node, name, new)
    return changed


def _first_use(before: ast.stmt, after: ast.stmt) -> ast.Name | None:
    if not isinstance(before, ast.Assign) or not isinstance(after, (ast.Assign, ast.Expr, ast.Return)):
        return None
    is_name = len(before.targets) == 1 and isinstance(before.targets[0], ast.Name)
    if not is_name or _has(after, *LATER, ast.Lambda, *COMPREHENSIONS) or _has(before.value, *LATER):
        return None
    loaded = [node for node in ast.walk(after) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    loaded.sort(key=lambda node: (node.lineno, node.col_offset))
    loaded = [node for node in loaded if node.id not in dir(builtins)]
    first = next((node for node in loaded if node.id == before.targets[0].id), None)  # type: ignore[attr-defined]
    assigned_too = isinstance(after, ast.Assign) and first is not None and first.id in _assigned([after])
    return first if first is not None and not assigned_too and isinstance(after.value, ast.Call) else None


class _Once(ast.NodeTransformer):
    def __init__(self, use: ast.Name, value: ast.expr) -> None:
        self.use, self.value = use, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node is self.use else node


def tried_imports(tree: ast.Module) -> bool:
    """Libraries are imported in a `try`."""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    imports = [node for node in imports if getattr(node, "module", "") != "__future__"]
    for node in imports:
        tried = _from(node, "try:\n    pass\nexcept ImportError as error:\n    raise SystemExit(error)")
        tried.body = [node]  # type: ignore[attr-defined]
        tree.body[tree.body.index(node)] = tried
    return bool(imports)


def checked(tree: ast.Module) -> bool:
    """What has been given a name is checked and printed."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            new.append(statement)
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name):
                new.append(_from(statement, f"assert {target.id} is not None, 'none'"))
                new.append(_from(statement, f"print('made', {target.id})"))
                changed = True
        setattr(node, name, new)
    return changed


STATEMENTS: tuple[Callable[[ast.Module], bool], ...] = (
    *(by_next, by_while, gathered, with_walrus, tried_imports, checked),
)
