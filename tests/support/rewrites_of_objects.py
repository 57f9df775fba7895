"""Further ways in which a program could have been written, as `rewrites` has them: of where its values are kept."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from rewrites import (
    BUILTINS,
    LATER,
    SUPER,
    _assigned,
    _blocks,
    _defined,
    _from,
    _has,
    _imported,
    _names,
    _parameters,
    _Replacing,
    _script,
    _start,
)
from rewrites_of_calls import _attribute_of_self
from rewrites_of_style import _at_expression


def attributes_set_by_name(tree: ast.Module) -> bool:
    """What a method keeps in an attribute is set by `setattr`."""
    changed = False
    for node, name, block in _blocks(tree):
        new: list[ast.stmt] = []
        for statement in block:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and _attribute_of_self(target):  # type: ignore[arg-type]
                statement = _from(
                    statement,
                    f"setattr(self, {_attribute_of_self(target)!r}, VALUE)",
                    VALUE=statement.value,  # type: ignore[arg-type]
                )
                changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed


def attributes_in_a_dict(tree: ast.Module) -> bool:
    """What `__init__` keeps in attributes is kept in a dict of the object."""
    changed = False
    for own in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        init = next((node for node in own.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)
        stored = Counter(node.attr for node in ast.walk(tree) if _is_attribute(node, ast.Store))
        read_elsewhere = {
            node.attr
            for node in ast.walk(tree)
            if _is_attribute(node) and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
        names = {
            name
            for statement in (init.body if init is not None else ())
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1
            if (name := _attribute_of_self(statement.targets[0])) and stored[name] == 1 and name not in read_elsewhere
        }
        if init is None or not names or len(own.bases) != 1:
            continue
        first = next(
            number
            for number, statement in enumerate(init.body)
            if isinstance(statement, ast.Assign) and _attribute_of_self(statement.targets[0]) in names
        )
        _InADict(names).visit(own)
        init.body.insert(first, _from(init.body[first], "self.parts = {}"))
        changed = True
    return changed


def _is_attribute(node: ast.AST, context: type[ast.expr_context] | None = None) -> bool:
    return isinstance(node, ast.Attribute) and (context is None or isinstance(node.ctx, context))


class _InADict(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if _attribute_of_self(node) not in self.names:
            return node
        kept = _from(node, f"self.parts[{node.attr!r}]").value  # type: ignore[attr-defined]
        kept.ctx = node.ctx
        return kept  # type: ignore[no-any-return]


def _times_stored(tree: ast.AST) -> Counter[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Counter(name.id for name in names if isinstance(name.ctx, ast.Store))


def in_a_namespace(tree: ast.Module) -> bool:
    """What the script makes is kept in a namespace, from which its functions read it."""
    start = _start(tree)
    plain = [node for node in tree.body[start:] if isinstance(node, ast.Assign) and len(node.targets) == 1]
    stored = _times_stored(tree)
    names = {node.targets[0].id for node in plain if isinstance(node.targets[0], ast.Name)}
    names = {name for name in names if stored[name] == 1} - _parameters(tree) - _defined(tree) - _imported(tree)
    names -= {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    if not names or _has(tree, ast.Delete):
        return False
    kept = {name: ast.Attribute(ast.Name("state", ast.Load()), name, ast.Load()) for name in names}
    tree.body = [_Replacing(dict(kept)).visit(node) for node in tree.body]
    tree.body[start:start] = ast.parse("import types\nstate = types.SimpleNamespace()").body
    return True


def made_together(tree: ast.Module) -> bool:
    """What the script makes in its first half comes out of a function, all at once."""
    return _made_in_a_function(tree, "return ({})", "({}) = make()")


def made_in_a_dict(tree: ast.Module) -> bool:
    """What the script makes in its first half comes out of a function, in a dict."""
    start, names = _first_half(tree)
    if not _made_in_a_function(tree, "return dict({})", "made = make()", "{0}={0}"):
        return False
    kept = {name: _from(tree.body[start], f"made[{name!r}]").value for name in names}  # type: ignore[attr-defined]
    place = next(n for n, node in enumerate(tree.body) if ast.unparse(node) == "made = make()") + 1
    tree.body[place:] = [_Replacing(dict(kept)).visit(node) for node in tree.body[place:]]
    return True


def _first_half(tree: ast.Module) -> tuple[int, list[str]]:
    head, done = _script(tree)
    if len(done) < 2:
        return 0, []
    first, rest = done[: len(done) // 2], done[len(done) // 2 :]
    names = sorted(_assigned(first) & _names(ast.Module(rest, [])) - _imported(ast.Module(first, [])))
    if set(names) & _assigned(rest):
        return 0, []
    return len(head), names


def _made_in_a_function(tree: ast.Module, given_back: str, taken: str, item: str = "{0},") -> bool:
    head, done = _script(tree)
    _, names = _first_half(tree)
    if not names or any(_has(node, ast.Global, *LATER) for node in done):
        return False
    first, rest = done[: len(done) // 2], done[len(done) // 2 :]
    separator = " " if item.endswith(",") else ", "
    items = separator.join(item.format(name) for name in names)
    make = _from(first[0], "def make(): pass")
    make.body = [*first, _from(first[-1], given_back.format(items))]  # type: ignore[attr-defined]
    tree.body = [*head, make, _from(rest[0], taken.format(items)), *rest]
    return True


def in_closures(tree: ast.Module) -> bool:
    """A function of the file that uses what the script has made is made by a function that is given it."""
    made: set[str] = set()
    stored = _times_stored(tree)
    body: list[ast.stmt] = []
    changed = False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not _has(node, ast.Global, ast.Nonlocal):
            own = _parameters(node) | _assigned(node.body)
            used = sorted(name for name in (_names(node) & made) - own if stored[name] == 1)
            if used and _names(node) - own - BUILTINS - _imported(tree) - _defined(tree) <= set(used):
                maker = _from(node, f"def make_{node.name}({', '.join(used)}): return {node.name}")
                maker.body.insert(0, node)  # type: ignore[attr-defined]
                body.append(maker)
                node = _from(node, f"{node.name} = make_{node.name}({', '.join(used)})")  # type: ignore[assignment]
                changed = True
        elif isinstance(node, ast.Assign):
            made |= _assigned([node])
        body.append(node)
    tree.body = body
    return changed


def returned_named(tree: ast.Module) -> bool:
    """Functions that give back several values give back a named tuple."""
    changed: set[int] = set()
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.Return)]:
        value = node.value
        if isinstance(value, ast.Tuple) and len(value.elts) > 1 and not _has(value, ast.Starred):
            changed.add(len(value.elts))
            callee = ast.Name(f"Result{len(value.elts)}", ast.Load())
            node.value = _at_expression(value, ast.Call(callee, value.elts, []))
    classes = []
    for count in sorted(changed):
        fields = "\n".join(f"    part_{number}: object" for number in range(count))
        classes += ast.parse(f"class Result{count}(typing.NamedTuple):\n{fields}").body
    start = _start(tree)
    tree.body[start:start] = [*ast.parse("import typing").body, *classes] if changed else []
    return bool(changed)


def made_in_build(tree: ast.Module) -> bool:
    """What `__init__` makes of Keras' classes is made in `build`."""
    changed = False
    for own in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        methods = {node.name: node for node in own.body if isinstance(node, ast.FunctionDef)}
        init = methods.get("__init__")
        if init is None or "build" in methods or "call" not in methods or not _names(init) & SUPER:
            continue
        given = _parameters(init.args) - {"self"} | (_assigned(init.body))
        moved = [
            node
            for node in init.body
            if isinstance(node, ast.Assign)
            and _attribute_of_self(node.targets[0])
            and isinstance(node.value, ast.Call)
            and not _names(node.value) & given
        ]
        later = [node for node in init.body if node not in moved]
        read = {inner.attr for node in later for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
        if not moved or read & {_attribute_of_self(node.targets[0]) for node in moved}:
            continue
        build = _from(moved[0], "def build(self, input_shape):\n    super().build(input_shape)")
        build.body[:0] = moved  # type: ignore[attr-defined]
        init.body = later
        own.body.insert(own.body.index(init) + 1, build)
        changed = True
    return changed


OBJECTS: tuple[Callable[[ast.Module], bool], ...] = (
    *(attributes_set_by_name, attributes_in_a_dict, in_a_namespace, made_together, made_in_a_dict, in_closures),
    *(returned_named, made_in_build),
)
