"""Further ways in which a program could have been written, as `rewrites` has them: of functions, classes and blocks."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from rewrites import (
    BUILTINS,
    COMPREHENSIONS,
    LATER,
    SCOPES,
    SUPER,
    _assigned,
    _blocks,
    _from,
    _has,
    _names,
    _parameters,
    _Replacing,
    _script,
    _start,
)
from rewrites_of_style import _held_in, _plain_functions


def methods_taken_from_functions(tree: ast.Module) -> bool:
    """Methods are functions of the file that the class's body takes."""
    body: list[ast.stmt] = []
    for own in tree.body:
        for number, method in enumerate(own.body if isinstance(own, ast.ClassDef) else ()):
            if isinstance(method, ast.FunctionDef) and not method.decorator_list and not _names(method) & SUPER:
                function = copy.copy(method)
                function.name = f"{own.name}_{method.name}".lower()  # type: ignore[attr-defined]
                own.body[number] = _from(method, f"{method.name} = {function.name}")  # type: ignore[attr-defined]
                body.append(function)
        body.append(own)
    changed = len(body) > len(tree.body)
    tree.body = body
    return changed


def in_a_factory(tree: ast.Module) -> bool:
    """Classes are made by functions that define them."""
    changed = False
    body: list[ast.stmt] = []
    for own in tree.body:
        if isinstance(own, ast.ClassDef) and own.bases:
            maker = _from(own, f"def make_{own.name.lower()}(): return {own.name}")
            maker.body.insert(0, own)  # type: ignore[attr-defined]
            body += [maker, _from(own, f"{own.name} = make_{own.name.lower()}()")]
            changed = True
        else:
            body.append(own)
    tree.body = body
    return changed


def functions_in_a_dict(tree: ast.Module) -> bool:
    """Functions of the file are taken out of a dict."""
    functions = _plain_functions(tree)
    if not functions:
        return False
    taken = {node.name: _from(node, f"FUNCTIONS[{node.name!r}]").value for node in functions}  # type: ignore[attr-defined]
    for node in tree.body:
        _Replacing(dict(taken)).visit(node)
    place = max(map(tree.body.index, functions)) + 1
    items = ", ".join(f"{node.name!r}: {node.name}" for node in functions)
    tree.body.insert(place, _from(functions[-1], f"FUNCTIONS = {{{items}}}"))
    early = {name for node in tree.body[:place] if not isinstance(node, SCOPES) for name in _names(node)}
    return "FUNCTIONS" not in early


def functions_by_name(tree: ast.Module) -> bool:
    """Functions of the file come out of a registry, into which a decorator has put them."""
    functions = _plain_functions(tree)
    taken = {node.name: _from(node, f"REGISTRY[{node.name!r}]").value for node in functions}  # type: ignore[attr-defined]
    for node in tree.body:
        _Replacing(dict(taken)).visit(node)
    for node in functions:
        node.decorator_list = [_from(node, f"register({node.name!r})").value]  # type: ignore[attr-defined]
    tree.body[_start(tree) : _start(tree)] = ast.parse(REGISTER).body if functions else []
    return bool(functions)


REGISTER = """\
REGISTRY = {}
def register(name):
    def registered(function):
        REGISTRY[name] = function
        return function
    return registered
"""


def as_callable_objects(tree: ast.Module) -> bool:
    """Functions of the file are objects that can be called."""
    changed = False
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef) and _may_be_an_object(node):
            own = _from(node, f"class {node.name.title().replace('_', '')}Function: pass")
            function = copy.copy(node)
            function.name, function.args = "__call__", copy.deepcopy(node.args)
            function.args.args.insert(0, ast.arg("self"))
            own.body = [function]  # type: ignore[attr-defined]
            made = _from(node, f"{node.name} = {own.name}()")  # type: ignore[attr-defined]
            tree.body[number] = ast.If(ast.Constant(True), [own, made], [])
            changed = True
    tree.body = [inner for node in tree.body for inner in (node.body if _is_true(node) else [node])]  # type: ignore[attr-defined]
    return changed


def _may_be_an_object(function: ast.FunctionDef) -> bool:
    is_other = function.decorator_list or _has(function, *LATER) or function.name.startswith("test")
    return not is_other and "self" not in _parameters(function)


def _is_true(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and node.test.value is True


def class_methods(tree: ast.Module) -> bool:
    """Functions of the file are class methods."""
    functions = _plain_functions(tree)
    for function in functions:
        function.decorator_list = [_from(function, "classmethod").value]  # type: ignore[attr-defined]
        function.args.args.insert(0, ast.arg("cls"))
    return _held_in(tree, functions, "Tools", lambda first: [_from(first, "class Tools: pass")])


def in_name_scopes(tree: ast.Module) -> bool:
    """What functions do stands in a name scope."""
    libraries = {"tf"} & {alias.asname for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    functions = [node for node in functions if libraries and not _has(node, ast.Global, ast.Nonlocal)]
    for node in functions:
        scope = _from(node.body[0], "with tf.name_scope('part'): pass")
        scope.body = node.body  # type: ignore[attr-defined]
        node.body = [scope]
    return bool(functions)


def keywords_made_before(tree: ast.Module) -> bool:
    """Keywords of calls are items of a dict that is made before."""
    changed = False
    for node, name, block in _blocks(tree):
        new: list[ast.stmt] = []
        for statement in block:
            call = getattr(statement, "value", None)
            plain = isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) and isinstance(call, ast.Call)
            if plain and call.keywords and all(keyword.arg for keyword in call.keywords):  # type: ignore[union-attr]
                made = f"options_{len(new)}"
                new.append(_from(statement, f"{made} = dict()"))
                for keyword in call.keywords:  # type: ignore[union-attr]
                    new.append(_from(keyword.value, f"{made}[{keyword.arg!r}] = VALUE", VALUE=keyword.value))
                call.keywords = [ast.keyword(None, _from(statement, made).value)]  # type: ignore[attr-defined,union-attr]
                changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed


def by_generators(tree: ast.Module) -> bool:
    """Loops of the script run in a generator, which stops after each round."""
    head, done = _script(tree)
    changed = False
    for number, loop in enumerate(done):
        later = {name for node in done[number + 1 :] for name in _names(node)}
        if not isinstance(loop, ast.For) or _has(loop, *LATER, ast.Break, *COMPREHENSIONS) or _assigned([loop]) & later:
            continue
        if _assigned(loop.body) & {name for node in done[:number] for name in _assigned([node])}:
            continue
        steps = _from(loop, f"def steps_{number}(): pass")
        loop.body.append(_from(loop.body[-1], "yield"))
        steps.body = [loop]  # type: ignore[attr-defined]
        head.append(steps)
        done[number] = _from(loop, f"for _ in steps_{number}(): pass")
        changed = True
    tree.body = [*head, *done] if changed else tree.body
    return changed


def layers_in_a_loop(tree: ast.Module) -> bool:
    """Layers that are called on each other's results are called in a loop over them."""
    changed = False
    for node, name, block in _blocks(tree):
        new: list[ast.stmt] = []
        for statement in block:
            before = new[-1] if new else None
            made = _layer_on(statement)
            if made is None:
                new.append(statement)
            elif isinstance(before, ast.For) and getattr(before, "carried", "") == made[0]:
                before.iter.elts.append(made[1])  # type: ignore[attr-defined]
                changed = True
            else:
                loop = _from(statement, f"for layer in [VALUE]: {made[0]} = layer({made[0]})", VALUE=made[1])
                loop.carried = made[0]  # type: ignore[attr-defined]
                new.append(loop)
        setattr(node, name, new)
    return changed


def _layer_on(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The name and the layer of `x = Layer(…)(x)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name, call = statement.targets[0].id, statement.value
    is_made = isinstance(call, ast.Call) and isinstance(call.func, ast.Call) and not call.keywords
    if is_made and len(call.args) == 1 and ast.unparse(call.args[0]) == name:  # type: ignore[attr-defined]
        return (name, call.func) if name not in _names(call.func) else None  # type: ignore[attr-defined]
    return None


def augmented(tree: ast.Module) -> bool:
    """A name that gets its own value times or plus something is changed in place."""
    changed = False
    for node, name, block in _blocks(tree):
        new: list[ast.stmt] = []
        for statement in block:
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Assign) and isinstance(value, ast.BinOp) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name) and ast.unparse(value.left) == target.id:
                    text = ast.unparse(ast.AugAssign(target, value.op, ast.Name("VALUE", ast.Load())))
                    statement, changed = _from(statement, text, VALUE=value.right), True
            new.append(statement)
        setattr(node, name, new)
    return changed


def negated(tree: ast.Module) -> bool:
    """Questions are asked the other way round."""
    changed = False
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.If) and inner.orelse]:
        if not _has(node.test, ast.NamedExpr) and "__name__" not in _names(node.test):
            node.test = _from(node, "not VALUE", VALUE=node.test).value  # type: ignore[attr-defined]
            node.body, node.orelse, changed = node.orelse, node.body, True
    return changed


def matched(tree: ast.Module) -> bool:
    """What a text is compared with is matched."""
    changed = False
    for node, name, block in _blocks(tree):
        for number, statement in enumerate(block):
            test = statement.test if isinstance(statement, ast.If) else None
            if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or "__name__" in _names(test):
                continue
            other = test.comparators[0]
            if isinstance(other, ast.Constant) and isinstance(other.value, str):
                new = _from(
                    statement, f"match VALUE:\n    case {other.value!r}: pass\n    case _: pass", VALUE=test.left
                )
                new.cases[0].body = statement.body  # type: ignore[attr-defined,union-attr]
                new.cases[1].body = statement.orelse or new.cases[1].body  # type: ignore[attr-defined,union-attr]
                block[number], changed = new, True
        setattr(node, name, block)
    return changed


def imported_late(tree: ast.Module) -> bool:
    """Functions import what they need themselves."""
    start = _start(tree)
    imports = [node for node in tree.body[:start] if isinstance(node, (ast.Import, ast.ImportFrom))]
    imports = [node for node in imports if getattr(node, "module", "") != "__future__"]
    changed = False
    for node in tree.body[start:]:
        if isinstance(node, ast.FunctionDef):
            own = _parameters(node.args) | _assigned(node.body)
            for statement in imports:
                bound = {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
                if bound & _names(node) - own:
                    node.body.insert(0, copy.copy(statement))
                    changed = True
    return changed


def run_by_absl(tree: ast.Module) -> bool:
    """What the script does stands in a function that absl's `app.run` calls."""
    head, done = _script(tree)
    if not done or BUILTINS & _assigned(done):
        return False
    main = _from(done[0], "def main(argv): del argv")
    main.body += done  # type: ignore[attr-defined]
    run = _from(done[-1], "if __name__ == '__main__': app.run(main)")
    tree.body = [*head, *ast.parse("from absl import app").body, main, run]
    return True


DEFINITIONS: tuple[Callable[[ast.Module], bool], ...] = (
    *(methods_taken_from_functions, in_a_factory, functions_in_a_dict, functions_by_name, as_callable_objects),
    *(class_methods, in_name_scopes, keywords_made_before, by_generators, layers_in_a_loop, augmented),
    *(negated, matched, imported_late, run_by_absl),
)
