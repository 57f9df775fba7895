"""Further ways in which a program could have been written, as `rewrites` has them: of names, classes and containers."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from rewrites import (
    BUILTINS,
    COMPREHENSIONS,
    LATER,
    PLAIN,
    SCOPES,
    SUPER,
    _at,
    _blocks,
    _from,
    _has,
    _imported,
    _names,
    _Replacing,
    _script,
    _start,
)


def under_a_manager(tree: ast.Module) -> bool:
    """What the script does stands under a context manager that does nothing."""
    head, done = _script(tree)
    if not done:
        return False
    managed = _from(done[0], "with contextlib.nullcontext(): pass")
    managed.body = done  # type: ignore[attr-defined]
    tree.body = [*head, *ast.parse("import contextlib").body, managed]
    return True


def annotated(tree: ast.Module) -> bool:
    """Names and attributes are given values with annotations."""
    changed = False
    for node, name, block in _blocks(tree):
        new: list[ast.stmt] = []
        for statement in block:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.Assign) and isinstance(target, (ast.Name, ast.Attribute)):
                is_name = isinstance(target, ast.Name)
                told = ast.AnnAssign(target, ast.Constant("Any"), statement.value, int(is_name))
                statement = _at(statement, told) if len(statement.targets) == 1 else statement
                changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed and not _has(tree, ast.Global, ast.Nonlocal)


def dispatched(tree: ast.Module) -> bool:
    """Classes of libraries come out of a table."""
    made = [call for call in ast.walk(tree) if isinstance(call, ast.Call) and _is_class_of(call.func, _imported(tree))]
    for call in made:
        call.func = _from(call, "{'it': VALUE}['it']", VALUE=call.func).value  # type: ignore[attr-defined]
    return bool(made)


def _is_class_of(callee: ast.expr, libraries: set[str]) -> bool:
    start = callee
    while isinstance(start, ast.Attribute):
        start = start.value
    is_class = isinstance(callee, ast.Attribute) and callee.attr[:1].isupper()
    return is_class and isinstance(start, ast.Name) and start.id in libraries


def starred(tree: ast.Module) -> bool:
    """Positional arguments are spread out of a tuple."""
    several = [call for call in ast.walk(tree) if isinstance(call, ast.Call) and len(call.args) > 1]
    several = [call for call in several if not _has(ast.Tuple(call.args), ast.Starred) and _may_change(call)]
    for call in several:
        call.args = [ast.Starred(_at_expression(call, ast.Tuple(call.args, ast.Load())), ast.Load())]
    return bool(several)


def _may_change(call: ast.Call) -> bool:
    return not _names(call.func) & (BUILTINS | SUPER)


def _at_expression(old: ast.AST, new: ast.expr) -> ast.expr:
    return _at(old, ast.Expr(new)).value  # type: ignore[attr-defined,no-any-return]


def in_a_table(tree: ast.Module) -> bool:
    """Constants that calls are given stand in a dict."""
    held = dict(_constants_taken(tree, "CONFIG['NAME']"))
    table = ast.Assign([ast.Name("CONFIG", ast.Store())], ast.Dict([*map(ast.Constant, held)], [*held.values()]))
    tree.body[_start(tree) : _start(tree)] = [table] if held else []
    return bool(held)


def in_class_attributes(tree: ast.Module) -> bool:
    """Constants that calls are given stand in the body of a class."""
    held = dict(_constants_taken(tree, "Config.NAME"))
    config = ast.parse("class Config: pass").body
    config[0].body = [_from(value, f"{name} = VALUE", VALUE=value) for name, value in held.items()]  # type: ignore[attr-defined]
    tree.body[_start(tree) : _start(tree)] = config if held else []
    return bool(held)


def _constants_taken(
    tree: ast.Module, place: str, kinds: type | tuple[type, ...] = (int, float, str)
) -> Iterator[tuple[str, ast.expr]]:
    """Each constant that a call is given is read from there instead; its name, and the constant."""
    number = itertools.count()
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call) and not _names(node.func) & BUILTINS]:
        for holder, key in (*((call.args, index) for index in range(len(call.args))), *_values(call)):
            value = holder[key] if isinstance(holder, list) else holder.value
            if isinstance(value, ast.Constant) and isinstance(value.value, kinds) and _is_of(value.value, kinds):
                name = f"option_{next(number)}"
                read = _from(value, place.replace("NAME", name)).value  # type: ignore[attr-defined]
                if isinstance(holder, list):
                    holder[key] = read
                else:
                    holder.value = read
                yield name, value


def _is_of(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Whether it is what is asked for: True is a number for Python."""
    return not isinstance(value, bool) or kinds is bool or (isinstance(kinds, tuple) and str in kinds)


def _values(call: ast.Call) -> list[tuple[ast.keyword, int]]:
    return [(keyword, 0) for keyword in call.keywords]


def subclassed(tree: ast.Module) -> bool:
    """What the program makes is of a class that adds nothing to the one that does it all."""
    classes: list[ast.stmt] = []
    for own in tree.body:
        classes.append(own)
        if isinstance(own, ast.ClassDef) and _may_have_a_subclass(own):
            classes.append(_from(own, f"class {own.name}({own.name}Base): pass"))
            own.name = f"{own.name}Base"
    is_changed = len(classes) > len(tree.body)
    tree.body = classes
    return is_changed


def _may_have_a_subclass(own: ast.ClassDef) -> bool:
    """Not an enumeration: Python derives no class from one that has members."""
    is_enumeration = any("Enum" in ast.unparse(base) for base in own.bases)
    names_itself = any(own.name in _names(inner) for inner in own.body)
    is_plain = len(own.bases) == 1 and not own.keywords and not own.decorator_list
    return is_plain and not is_enumeration and not names_itself


def inlined(tree: ast.Module) -> bool:
    """What is named, and used once in the next statement, stands there itself."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in reversed(block) if isinstance(node, (ast.FunctionDef, ast.Module)) else ():
            after = new[0] if new else None
            if isinstance(statement, ast.Assign) and after is not None and _is_used_once(statement, after, node):
                target = statement.targets[0]
                assert isinstance(target, ast.Name)
                new[0] = _Replacing({target.id: statement.value}).visit(after)
                changed = True
            else:
                new.insert(0, statement)
        if new:
            setattr(node, name, new)
    return changed


def _is_used_once(statement: ast.Assign, after: ast.stmt, scope: ast.AST) -> bool:
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or isinstance(statement.value, ast.Lambda) or len(statement.targets) > 1:
        return False
    if not isinstance(after, PLAIN) or isinstance(after, ast.AugAssign) or _has(after, *SCOPES, *COMPREHENSIONS):
        return False
    uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == target.id]
    return len(uses) == 2 and target.id in _names(after, ast.Load)


def unpacked(tree: ast.Module) -> bool:
    """Two statements that give names values are one with two targets."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            before = new[-1] if new else None
            if isinstance(before, ast.Assign) and isinstance(statement, ast.Assign) and _are_apart(before, statement):
                targets, values = ([before.targets[0], statement.targets[0]], [before.value, statement.value])
                both = ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))
                new[-1], changed = _at(before, both), True
            else:
                new.append(statement)
        setattr(node, name, new)
    return changed


def _are_apart(first: ast.Assign, second: ast.Assign) -> bool:
    """Whether nothing changes if both values are computed before either name has one."""
    for statement in (first, second):
        if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
            return False
    return not _names(second.value) & _names(first.targets[0])


def methods_by_name(tree: ast.Module) -> bool:
    """A method gets a name of its own before it is called."""
    changed, number = False, itertools.count()
    libraries = _imported(tree)
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            call = getattr(statement, "value", None)
            is_plain = isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) and not _has(statement, *LATER)
            if is_plain and isinstance(call, ast.Call) and _is_method(call.func, libraries):
                method = f"method_{next(number)}"
                new.append(_from(statement, f"{method} = VALUE", VALUE=call.func))
                call.func = _from(statement, method).value  # type: ignore[attr-defined]
                changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed


def _is_method(callee: ast.expr, libraries: set[str]) -> bool:
    start = callee
    while isinstance(start, ast.Attribute):
        start = start.value
    is_dotted = isinstance(callee, ast.Attribute) and isinstance(start, ast.Name)
    return is_dotted and isinstance(start, ast.Name) and start.id not in {*libraries, *SUPER}


def static_methods(tree: ast.Module) -> bool:
    """Functions of the file are static methods of a class."""
    functions = _plain_functions(tree)
    for function in functions:
        function.decorator_list = [_from(function, "staticmethod").value]  # type: ignore[attr-defined]
    return _held_in(tree, functions, "Tools", lambda first: [_from(first, "class Tools: pass")])


def methods_of_an_object(tree: ast.Module) -> bool:
    """Functions of the file are methods of an object."""
    functions = _plain_functions(tree)
    for function in functions:
        function.args.args.insert(0, ast.arg("self"))
    made = ("class Tools: pass", "tools = Tools()")
    return _held_in(tree, functions, "tools", lambda first: [_from(first, text) for text in made])


def _plain_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.decorator_list]


def _held_in(
    tree: ast.Module, functions: list[ast.FunctionDef], holder: str, made: Callable[[ast.AST], list[ast.stmt]]
) -> bool:
    if not functions:
        return False
    names = {function.name for function in functions}
    methods: dict[str, ast.expr] = {n: ast.Attribute(ast.Name(holder, ast.Load()), n, ast.Load()) for n in names}
    for node in tree.body:
        _Replacing(methods).visit(node)
    place, statements = tree.body.index(functions[0]), made(functions[0])
    statements[0].body = functions  # type: ignore[attr-defined]
    tree.body[place:place] = statements
    tree.body = [node for node in tree.body if node not in functions]
    return True


def appended(tree: ast.Module) -> bool:
    """Lists that are written out are filled element by element."""
    changed, number = False, itertools.count()
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Assign) and isinstance(value, ast.List) and _is_plain_list(value):
                items = f"items_{next(number)}"
                new += _filled(items, value)
                statement.value = _from(statement, items).value  # type: ignore[attr-defined]
                changed = True
            elif isinstance(statement, PLAIN) and isinstance(value, ast.Call) and not _has(statement, *LATER):
                for place, given in enumerate(value.args):
                    if isinstance(given, ast.List) and _is_plain_list(given):
                        items = f"items_{next(number)}"
                        new += _filled(items, given)
                        value.args[place] = _from(statement, items).value  # type: ignore[attr-defined]
                        changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed


def _is_plain_list(value: ast.List) -> bool:
    return bool(value.elts) and not any(isinstance(element, ast.Starred) for element in value.elts)


def _filled(name: str, value: ast.List) -> list[ast.stmt]:
    adding = [_from(element, f"{name}.append(VALUE)", VALUE=element) for element in value.elts]
    return [_from(value, f"{name} = []"), *adding]


STYLES = (
    *(under_a_manager, annotated, dispatched, starred, in_a_table, in_class_attributes, subclassed, inlined),
    *(unpacked, methods_by_name, static_methods, methods_of_an_object, appended),
)
