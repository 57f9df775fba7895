"""Other ways in which a program could have been written: rewrites of its syntax tree that leave what it does as it is.

Each takes a module's tree and tells whether it changed it. New nodes get the line of what they were made of, so that
`rewritten` can say which line of the old text each line of the new one comes from.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
from collections.abc import Callable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LATER = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
BUILTINS = frozenset(dir(builtins))
PLAIN = (ast.Assign, ast.Expr, ast.Return, ast.AugAssign)
SUPER = frozenset(("super", "__class__"))


def rewritten(text: str, rewrite: Callable[[ast.Module], bool]) -> tuple[str, dict[int, set[int]]] | None:
    """The other text, and for each of its lines those of the old text that it comes from; None where there is nothing
    to rewrite."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        node.origin = getattr(node, "lineno", None)  # type: ignore[attr-defined]
    if not rewrite(tree):
        return None
    changed = ast.unparse(ast.fix_missing_locations(tree))
    lines: dict[int, set[int]] = {}
    for old, new in zip(_in_order(tree), _in_order(ast.parse(changed)), strict=True):
        if getattr(old, "origin", None) and hasattr(new, "lineno"):
            lines.setdefault(new.lineno, set()).add(old.origin)  # type: ignore[attr-defined]
    return changed, lines


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)


def _from(old: ast.AST, text: str, **parts: ast.expr) -> ast.stmt:
    """A statement written as `text`, its names in `parts` replaced, on the old one's line."""
    (statement,) = ast.parse(text).body
    return _at(old, _Replacing(parts).visit(statement))


def _at(old: ast.AST, new: ast.stmt) -> ast.stmt:
    for node in ast.walk(new):
        if not hasattr(node, "origin"):
            node.origin = getattr(old, "origin", None)  # type: ignore[attr-defined]
    return new


class _Replacing(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.expr]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.parts:
            return node
        new = copy.copy(self.parts[node.id])
        if hasattr(new, "ctx"):
            new.ctx = node.ctx
        new.origin = getattr(new, "origin", None) or getattr(node, "origin", None)  # type: ignore[attr-defined]
        return new


def _blocks(tree: ast.AST) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    """Every list of statements that stands in a function or at the top, and where."""
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and not isinstance(node, (ast.ClassDef, ast.Match)):
                yield node, name, block


def _names(node: ast.AST, context: type[ast.expr_context] | None = None) -> set[str]:
    found = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {name.id for name in found if context is None or isinstance(name.ctx, context)}


def _parameters(node: ast.AST) -> set[str]:
    return {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}


def _assigned(block: list[ast.stmt]) -> set[str]:
    return _names(ast.Module(block, []), ast.Store)


def _imported(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}


def _defined(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _has(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(inner, kinds) for inner in ast.walk(node))


def _start(tree: ast.Module) -> int:
    """Behind the docstring and the imports."""
    for number, node in enumerate(tree.body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not isinstance(node, (ast.Import, ast.ImportFrom, ast.Try)):
            return number
    return len(tree.body)


def _script(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Imports, functions and classes; and what the script does, where no function and no class reads what it sets."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    start = _start(tree)
    head = [node for number, node in enumerate(tree.body) if number < start or isinstance(node, kinds)]
    done = [node for node in tree.body if node not in head]
    read = {name for node in head if isinstance(node, SCOPES) for name in _names(node)}
    is_guarded = any(isinstance(node, ast.If) and "__name__" in _names(node.test) for node in done)
    return (tree.body, []) if is_guarded or _assigned(done) & read or _has(tree, ast.Global) else (head, done)


def renamed(tree: ast.Module) -> bool:
    """No name says anything."""
    said = _imported(tree) | _defined(tree) | _parameters(tree) | BUILTINS | {"_"}
    said |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            said |= _assigned([inner for inner in node.body if not isinstance(inner, SCOPES)])
    new = {name: f"v{number}" for number, name in enumerate(sorted(_names(tree, ast.Store) - said))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
    return bool(new)


def in_parts(tree: ast.Module) -> bool:
    """What is computed on the way gets names."""
    parts = _Parts()
    for node, name, block in _blocks(tree):
        setattr(node, name, [new for statement in block for new in parts.named(statement)])
    return parts.number > 0


class _Parts:
    number = 0

    def named(self, statement: ast.stmt) -> list[ast.stmt]:
        self.before: list[ast.stmt] = []
        if isinstance(statement, PLAIN) and statement.value is not None and not _has(statement, *LATER):
            statement.value = self._whole(statement.value)
        return [*self.before, statement]

    def _whole(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Call) and not _names(value.func) & {"super", "print", "isinstance", "hasattr"}:
            value.args = [self._part(argument) for argument in value.args]
            for keyword in value.keywords:
                keyword.value = self._part(keyword.value)
        elif isinstance(value, ast.BinOp):
            value.left, value.right = self._part(value.left), self._part(value.right)
        elif isinstance(value, (ast.List, ast.Tuple)):
            value.elts = [self._part(element) for element in value.elts]
        return value

    def _part(self, value: ast.expr) -> ast.expr:
        is_computed = isinstance(value, (ast.BinOp, ast.Call, ast.List, ast.Tuple, ast.Dict, ast.Subscript))
        if not is_computed or (isinstance(value, ast.Call) and _names(value.func) & {*SUPER, "zip", "range"}):
            return value
        self.number += 1
        name = f"part{self.number}"
        self.before.append(_from(value, f"{name} = VALUE", VALUE=self._whole(value)))
        return _from(value, name).value  # type: ignore[attr-defined,no-any-return]


def in_main(tree: ast.Module) -> bool:
    """What the script does stands in a `main()`."""
    head, done = _script(tree)
    if not done:
        return False
    main = _from(done[0], "def main(): pass")
    main.body = done  # type: ignore[attr-defined]
    tree.body = [*head, main, _from(done[-1], "if __name__ == '__main__': main()")]
    return True


def in_a_class(tree: ast.Module) -> bool:
    """What the script does stands in two methods, and its names are attributes."""
    head, done = _script(tree)
    outer = (ast.NamedExpr, ast.ExceptHandler, ast.alias, ast.Lambda, *COMPREHENSIONS)
    if not done or any(_has(node, *outer) for node in done):
        return False
    attributes = {name: ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load()) for name in _assigned(done)}
    done = [_Replacing(dict(attributes)).visit(node) for node in done]
    made = _from(done[0], "class Experiment:\n    def __init__(self): pass\n    def run(self): pass")
    setting_up, running = made.body  # type: ignore[attr-defined]
    setting_up.body = done[: len(done) // 2] or setting_up.body
    running.body = done[len(done) // 2 :]
    tree.body = [*head, made, _from(done[-1], "Experiment().run()")]
    return True


def configured(tree: ast.Module) -> bool:
    """Constants that calls are given are fields of a dataclass."""
    fields = list(_constants_given(tree, "config"))
    config = ast.parse("import dataclasses\n@dataclasses.dataclass\nclass Config: pass\nconfig = Config()").body
    config[1].body = [  # type: ignore[attr-defined]
        _from(value, f"{name}: object = VALUE", VALUE=value) for name, value in fields
    ]
    tree.body[_start(tree) : _start(tree)] = config if fields else []
    return bool(fields)


def _constants_given(tree: ast.Module, holder: str) -> Iterator[tuple[str, ast.expr]]:
    """Each constant that a call is given is replaced by a field of the holder."""
    number = itertools.count()
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        if _names(call.func) & BUILTINS:
            continue
        for place in (*((call.args, number) for number in range(len(call.args))), *call.keywords):
            value = place.value if isinstance(place, ast.keyword) else place[0][place[1]]
            if not isinstance(value, ast.Constant) or not isinstance(value.value, (int, float, str)):
                continue
            name = f"option_{next(number)}"
            field = _from(value, f"{holder}.{name}").value  # type: ignore[attr-defined]
            if isinstance(place, ast.keyword):
                place.value = field
            else:
                place[0][place[1]] = field
            yield name, value


def by_options(tree: ast.Module) -> bool:
    """Keywords are handed over in dicts."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
    calls = [call for call in calls if all(keyword.arg for keyword in call.keywords)]
    for call in calls:
        keys: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in call.keywords]
        call.keywords = [ast.keyword(None, ast.Dict(keys, [keyword.value for keyword in call.keywords]))]
    return bool(calls)


def in_inner_functions(tree: ast.Module) -> bool:
    """Each function's body stands in a function inside it."""
    changed = False
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.FunctionDef)]:
        own = _parameters(node.args)
        outer = any(_has(inner, *LATER, ast.Global, ast.Nonlocal) or _names(inner) & SUPER for inner in node.body)
        if outer or own & _assigned(node.body):
            continue
        inner = _from(node.body[0], "def inner(): pass")
        inner.body = node.body  # type: ignore[attr-defined]
        node.body = [inner, _from(node.body[-1], "return inner()")]
        changed = True
    return changed


def in_helpers(tree: ast.Module) -> bool:
    """Each value is computed by a function of its own, which is given what the value is computed from."""
    outer = _imported(tree) | {node.name for node in tree.body if isinstance(node, (Function, ast.ClassDef))} | BUILTINS
    helpers: list[ast.stmt] = []
    for _, _, block in _blocks(tree):
        for statement in block:
            value = getattr(statement, "value", None)
            if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) or not _can_be_computed_apart(value):
                continue
            name, given = f"compute_{len(helpers)}", sorted(_names(value) - outer)
            helper = _from(value, f"def {name}({', '.join(given)}): return VALUE", VALUE=value)
            statement.value = _from(value, f"{name}({', '.join(given)})").value  # type: ignore[attr-defined]
            helpers.append(helper)
    start = next((number for number, node in enumerate(tree.body) if isinstance(node, ast.Try)), _start(tree))
    tree.body[min(start, _start(tree)) : min(start, _start(tree))] = helpers
    return bool(helpers)


def _can_be_computed_apart(value: ast.expr | None) -> bool:
    if not isinstance(value, (ast.Call, ast.BinOp)) or _has(value, *LATER, *COMPREHENSIONS, ast.Lambda):
        return False
    return not _names(value) & {*SUPER, "locals"} and not (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
    )


def kept_in_self(tree: ast.Module) -> bool:
    """What a method computes on the way is kept in attributes."""
    changed = False
    methods = [node for own in ast.walk(tree) if isinstance(own, ast.ClassDef) for node in own.body]
    for method in methods:
        if not isinstance(method, ast.FunctionDef) or not method.args.args or method.args.args[0].arg != "self":
            continue
        if any(_has(node, *SCOPES, *COMPREHENSIONS, ast.Nonlocal, ast.Global, *LATER) for node in method.body):
            continue
        own = _assigned(method.body) - _parameters(method.args)
        kept = {name: ast.Attribute(ast.Name("self", ast.Load()), f"{name}_now", ast.Load()) for name in own}
        method.body = [_Replacing(dict(kept)).visit(node) for node in method.body]
        changed = changed or bool(kept)
    return changed


def decorated(tree: ast.Module) -> bool:
    """Functions and methods have a decorator of the program's own that hands on what it is given."""
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    plain = [node for node in plain if not node.name.startswith("__")]
    for node in plain:
        node.decorator_list = [_from(node, "logged").value]  # type: ignore[attr-defined]
    tree.body[_start(tree) : _start(tree)] = ast.parse(LOGGED).body if plain else []
    return bool(plain)


LOGGED = """\
import functools
def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print(function.__name__)
        return function(*args, **kwargs)
    return wrapper
"""


def mixed_in(tree: ast.Module) -> bool:
    """Methods stand in a class that is mixed into their own."""
    classes: list[ast.stmt] = []
    for own in tree.body:
        if isinstance(own, ast.ClassDef) and len(own.bases) == 1:
            moved = [node for node in own.body if isinstance(node, ast.FunctionDef) and _can_be_mixed_in(node)]
            if moved:
                mixin = _from(own, f"class {own.name}Mixin: pass")
                mixin.body = moved  # type: ignore[attr-defined]
                own.bases.insert(0, _from(own, f"{own.name}Mixin").value)  # type: ignore[attr-defined]
                own.body = [node for node in own.body if node not in moved] or [ast.Pass()]
                classes.append(mixin)
        classes.append(own)
    is_changed = len(classes) > len(tree.body)
    tree.body = classes
    return is_changed


def _can_be_mixed_in(method: ast.FunctionDef) -> bool:
    is_special = method.name.startswith("__") or method.name in ("build", "get_config", "compute_output_shape")
    return not is_special and not _names(method) & SUPER


REWRITES = (
    *(renamed, in_parts, in_main, in_a_class, configured, by_options, in_inner_functions, in_helpers),
    *(kept_in_self, decorated, mixed_in),
)
