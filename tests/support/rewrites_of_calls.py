"""Further ways in which a program could have been written, as `rewrites` has them: of imports, calls and branches."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from rewrites import (
    LATER,
    _assigned,
    _at,
    _blocks,
    _defined,
    _from,
    _has,
    _imported,
    _names,
    _parameters,
    _script,
    _start,
)

LIBRARIES = ("tensorflow", "keras", "tf_keras")


def _dotted(node: ast.expr) -> str:
    """`a.b.c` as it is written, "" for anything else."""
    if isinstance(node, ast.Attribute):
        outer = _dotted(node.value)
        return f"{outer}.{node.attr}" if outer else ""
    return node.id if isinstance(node, ast.Name) else ""


def _modules_imported(tree: ast.Module) -> dict[str, str]:
    """The module of a library behind each name that is bound at the top of the file."""
    modules: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module in ("tensorflow", "tensorflow.keras", "keras"):
            named = ((alias.asname or alias.name, alias.name) for alias in node.names)
            modules.update((name, f"{node.module}.{of}") for name, of in named if of.islower())
    return {
        name: module for name, module in modules.items() if module.split(".")[0] in ("tensorflow", "keras", "tf_keras")
    }


def _library_classes(tree: ast.Module) -> Iterator[tuple[ast.Attribute, str]]:
    """Each place where a class of a library is named, as in `tf.keras.layers.Dense`, with the module that holds it."""
    modules, rebound = _modules_imported(tree), {name for node in ast.walk(tree) for name in _parameters(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr[:1].isupper() or not isinstance(node.ctx, ast.Load):
            continue
        start, _, inner = _dotted(node.value).partition(".")
        if start in modules and start not in rebound and inner.islower() and "keras" in f"{modules[start]}.{inner}":
            yield node, f"{modules[start]}.{inner}"


def _replace(tree: ast.AST, new: dict[ast.AST, ast.expr]) -> None:
    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return _at(node, ast.Expr(new[node])).value if node in new else self.generic_visit(node)  # type: ignore[attr-defined]

    Replacing().visit(tree)


def directly_imported(tree: ast.Module) -> bool:
    """Classes of Keras are imported by their names."""
    taken = _defined(tree) | _assigned(tree.body) | _imported(tree)
    classes = [(node, module) for node, module in _library_classes(tree) if node.attr not in taken]
    homes = {node.attr: (module, node) for node, module in reversed(classes)}
    classes = [(node, module) for node, module in classes if homes[node.attr][0] == module]
    imports = [_from(node, f"from {module} import {name}") for name, (module, node) in homes.items()]
    _replace(tree, {node: ast.Name(node.attr, ast.Load()) for node, _ in classes})
    tree.body[_start(tree) : _start(tree)] = imports
    return bool(classes)


def aliased(tree: ast.Module) -> bool:
    """Classes of Keras have names of the program's own."""
    classes = list(_library_classes(tree))
    written = {ast.unparse(node): node for node, _ in reversed(classes)}
    names = {dotted: f"{dotted.rpartition('.')[2]}_{number}" for number, dotted in enumerate(written)}
    lines = [_from(written[dotted], f"{name} = {dotted}") for dotted, name in names.items()]
    _replace(tree, {node: ast.Name(names[ast.unparse(node)], ast.Load()) for node, _ in classes})
    tree.body[_start(tree) : _start(tree)] = lines
    return bool(classes)


def by_getattr(tree: ast.Module) -> bool:
    """Classes of Keras come by their names, as texts."""
    classes = [node for node, _ in _library_classes(tree)]
    calls = (ast.Call(ast.Name("getattr", ast.Load()), [node.value, ast.Constant(node.attr)], []) for node in classes)
    _replace(tree, dict(zip(classes, calls, strict=True)))
    return bool(classes)


def partially_applied(tree: ast.Module) -> bool:
    """Keywords are bound to classes of Keras before these are called."""
    classes = {id(node) for node, _ in _library_classes(tree)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node.func) in classes]
    calls = [call for call in calls if call.keywords and not any(isinstance(given, ast.Starred) for given in call.args)]
    for call in calls:
        partial = ast.Call(_from(call, "functools.partial").value, [call.func], call.keywords)  # type: ignore[attr-defined]
        call.func, call.keywords = _at(call, ast.Expr(partial)).value, []  # type: ignore[attr-defined]
    tree.body[_start(tree) : _start(tree)] = ast.parse("import functools").body if calls else []
    return bool(calls)


def registered(tree: ast.Module) -> bool:
    """Classes of the program come out of a registry, into which a decorator has put them."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.keywords]
    names = {node.name for node in classes}
    uses = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]
    if not uses:
        return False
    for own in classes:
        own.decorator_list.insert(0, _from(own, f"register('{own.name}')").value)  # type: ignore[attr-defined]
    new = {use: _from(use, f"REGISTRY['{use.id}']").value for use in uses}  # type: ignore[attr-defined]
    _replace(tree, dict(new))
    tree.body[_start(tree) : _start(tree)] = ast.parse(REGISTRY).body
    return True


REGISTRY = """\
REGISTRY = {}
def register(name):
    def keep(cls):
        REGISTRY[name] = cls
        return cls
    return keep
"""


def made_in_functions(tree: ast.Module) -> bool:
    """Classes of the program are made by functions."""
    changed = False
    body: list[ast.stmt] = []
    for own in tree.body:
        if isinstance(own, ast.ClassDef) and not any(own.name in _names(inner) for inner in own.body):
            made = _from(own, f"def make_{own.name.lower()}(): pass")
            made.body = [own, _from(own, f"return {own.name}")]  # type: ignore[attr-defined]
            body += [made, _from(own, f"{own.name} = make_{own.name.lower()}()")]
            changed = True
        else:
            body.append(own)
    tree.body = body
    return changed


def keyworded(tree: ast.Module) -> bool:
    """Functions of the program are given keywords."""
    functions = {
        node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }
    changed = False
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]:
        own = functions.get(call.func.id)  # type: ignore[attr-defined]
        if own is None or own.posonlyargs or own.vararg or len(call.args) > len(own.args) or _has(call, ast.Starred):
            continue
        given = [ast.keyword(own.args[number].arg, value) for number, value in enumerate(call.args)]
        changed, call.args, call.keywords = changed or bool(given), [], [*given, *call.keywords]
    return changed


def as_properties(tree: ast.Module) -> bool:
    """What `__init__` keeps in an attribute is read through a property."""
    changed = False
    for own in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        init = next((node for node in own.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)
        if init is None:
            continue
        kept = [node for node in init.body if isinstance(node, ast.Assign) and _attribute_of_self(node.targets[0])]
        names = [_attribute_of_self(node.targets[0]) for node in kept if len(node.targets) == 1]
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        stored = [node.attr for node in attributes if isinstance(node.ctx, ast.Store)]
        for name, node in zip(names, kept, strict=False):
            if stored.count(name) == 1 and not name.startswith("_"):
                node.targets[0].attr = f"_{name}_kept"  # type: ignore[attr-defined]
                (read,) = ast.parse(f"@property\ndef {name}(self):\n    return self._{name}_kept").body
                own.body.append(_at(node, read))
                changed = True
    return changed


def _attribute_of_self(target: ast.expr) -> str:
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return target.attr if is_own else ""  # type: ignore[attr-defined]


def by_lambda(tree: ast.Module) -> bool:
    """Functions that only return something are lambdas."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            if isinstance(statement, ast.FunctionDef) and _may_be_a_lambda(statement):
                given = ast.Lambda(statement.args, statement.body[-1].value)  # type: ignore[attr-defined]
                statement = _at(statement.body[-1], ast.Assign([ast.Name(statement.name, ast.Store())], given))
                changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed


def _may_be_a_lambda(function: ast.FunctionDef) -> bool:
    (last, *more) = function.body
    is_plain = isinstance(last, ast.Return) and last.value is not None and not more
    arguments = [*function.args.args, *function.args.kwonlyargs]
    is_annotated = any(argument.annotation is not None for argument in arguments)
    return is_plain and not function.decorator_list and not is_annotated and not _has(last, *LATER)


def with_if_statements(tree: ast.Module) -> bool:
    """Conditional expressions are statements."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            value = getattr(statement, "value", None)
            if isinstance(statement, (ast.Assign, ast.Return)) and isinstance(value, ast.IfExp):
                choice = _from(statement, "if TEST: pass\nelse: pass", TEST=value.test)
                for arm, chosen in (("body", value.body), ("orelse", value.orelse)):
                    again = (
                        ast.Assign(statement.targets, chosen)
                        if isinstance(statement, ast.Assign)
                        else ast.Return(chosen)
                    )
                    setattr(choice, arm, [_at(statement, again)])
                statement, changed = choice, True
            new.append(statement)
        setattr(node, name, new)
    return changed


def with_conditional_expressions(tree: ast.Module) -> bool:
    """Arms that give one name its value are one expression."""
    changed = False
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            arms = (statement.body, statement.orelse) if isinstance(statement, ast.If) else ()
            first, second = ((arm[0] if len(arm) == 1 else None) for arm in arms) if arms else (None, None)
            if isinstance(first, ast.Assign) and isinstance(second, ast.Assign) and _set_the_same(first, second):
                chosen = ast.IfExp(statement.test, first.value, second.value)  # type: ignore[attr-defined]
                statement, changed = _at(statement, ast.Assign(first.targets, chosen)), True
            new.append(statement)
        setattr(node, name, new)
    return changed


def _set_the_same(first: ast.Assign, second: ast.Assign) -> bool:
    targets = [ast.unparse(target) for statement in (first, second) for target in statement.targets]
    return len(targets) == 2 and targets[0] == targets[1]


def enumerated(tree: ast.Module) -> bool:
    """Loops count their rounds."""
    number, changed = itertools.count(), False
    for loop in [node for node in ast.walk(tree) if isinstance(node, ast.For)]:
        counted = ast.Tuple([ast.Name(f"round_{next(number)}", ast.Store()), loop.target], ast.Store())
        loop.target = _at(loop.target, ast.Expr(counted)).value  # type: ignore[attr-defined]
        loop.iter = _from(loop.iter, "enumerate(VALUE)", VALUE=loop.iter).value  # type: ignore[attr-defined]
        changed = True
    return changed


def under_try(tree: ast.Module) -> bool:
    """What the script does is tried, and something is done at its end."""
    head, done = _script(tree)
    if not done:
        return False
    tried = _from(done[0], "try: pass\nfinally: print('the end')")
    tried.body = done  # type: ignore[attr-defined]
    tree.body = [*head, tried]
    return True


KEYWORDS = {"compile": ("optimizer", "loss"), "fit": ("x", "y")}


def named_arguments(tree: ast.Module) -> bool:
    """compile() and fit() are given keywords."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    calls = [call for call in calls if call.func.attr in KEYWORDS and not _has(call, ast.Starred)]  # type: ignore[attr-defined]
    changed = False
    for call in calls:
        names = KEYWORDS[call.func.attr]  # type: ignore[attr-defined]
        if 0 < len(call.args) <= len(names) and ast.unparse(call.func.value) not in ("self", "super()", "re", "tf"):  # type: ignore[attr-defined]
            given = [ast.keyword(name, value) for name, value in zip(names, call.args, strict=False)]
            call.args, call.keywords, changed = [], [*given, *call.keywords], True
    return changed


def added_one_by_one(tree: ast.Module) -> bool:
    """A Sequential gets its layers by `add`."""
    changed, number = False, itertools.count()
    for node, name, block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            made = getattr(statement, "value", None)
            is_plain = isinstance(statement, (ast.Assign, ast.Return)) and isinstance(made, ast.Call)
            if is_plain and _dotted(made.func).endswith("Sequential") and _is_list_of_layers(made):  # type: ignore[union-attr]
                filled = f"stack_{next(number)}"
                layers = made.args.pop().elts  # type: ignore[union-attr]
                new.append(_from(statement, f"{filled} = VALUE", VALUE=made))  # type: ignore[arg-type]
                new += [_from(layer, f"{filled}.add(VALUE)", VALUE=layer) for layer in layers]
                statement.value = _from(statement, filled).value  # type: ignore[attr-defined]
                changed = True
            new.append(statement)
        setattr(node, name, new)
    return changed


def _is_list_of_layers(made: ast.Call) -> bool:
    is_list = len(made.args) == 1 and isinstance(made.args[0], ast.List)
    return is_list and bool(made.args[0].elts) and not _has(made.args[0], ast.Starred)  # type: ignore[attr-defined]


def policies_as_objects(tree: ast.Module) -> bool:
    """A global policy is set as an object, where it was by its name."""
    changed = False
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 1]:
        name = _dotted(call.func)
        if name.endswith("mixed_precision.set_global_policy") and isinstance(call.args[0], ast.Constant):
            policy = ast.Call(ast.Attribute(call.func.value, "Policy", ast.Load()), call.args, [])  # type: ignore[attr-defined]
            call.args, changed = [_at(call.args[0], ast.Expr(policy)).value], True  # type: ignore[attr-defined]
    return changed


CALLS = (
    *(
        directly_imported,
        aliased,
        by_getattr,
        partially_applied,
        registered,
        made_in_functions,
        keyworded,
        as_properties,
    ),
    *(by_lambda, with_if_statements, with_conditional_expressions, enumerated, under_try, named_arguments),
    *(added_one_by_one, policies_as_objects),
)
