"""Further ways in which a program could have been written, as `rewrites` has them: of where constants are kept."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from rewrites import SCOPES, SUPER, _from, _has, _names, _script, _start
from rewrites_of_settings import METHODS_OF_KERAS, _Named
from rewrites_of_style import _constants_taken

Kinds = tuple[type, ...]
ALL: Kinds = (int, float, str)


def _constants_used(tree: ast.Module, place: str, kinds: Kinds = ALL) -> dict[str, ast.Constant]:
    """Constants that calls are given, and numbers with a point that something is computed with: each is read from the
    place instead."""
    held = dict(_constants_taken(tree, place, kinds))
    number = itertools.count(len(held))
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.BinOp)] if float in kinds else ():
        for side in ("left", "right"):
            value = getattr(node, side)
            if isinstance(value, ast.Constant) and isinstance(value.value, float):
                name = f"option_{next(number)}"
                setattr(node, side, _from(value, place.replace("NAME", name)).value)  # type: ignore[attr-defined]
                held[name] = value
    return held  # type: ignore[return-value]


def _put(tree: ast.Module, held: dict[str, ast.Constant], above: str, line: str, below: str = "") -> bool:
    """The constants stand behind the imports: each on a line, with its name and itself, between what stands above and
    below."""
    if not held:
        return False
    lines = [line.format(name, repr(value.value)) for name, value in held.items()]
    added = ast.parse("\n".join([*above.splitlines(), *lines, *below.splitlines()])).body
    numbers = {above.count("\n") + 2 + place: value for place, value in enumerate(held.values())}
    for node in [inner for statement in added for inner in ast.walk(statement)]:
        if getattr(node, "lineno", None) in numbers and not isinstance(node, SCOPES):
            node.origin = getattr(numbers[node.lineno], "origin", None)  # type: ignore[attr-defined]
    tree.body[_start(tree) : _start(tree)] = added
    return True


def in_fields(tree: ast.Module) -> bool:
    """Constants are what fields of a dataclass are by default."""
    above = "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Config:"
    held = _constants_used(tree, "config.NAME")
    return _put(tree, held, above, "    {}: object = dataclasses.field(default={})", "config = Config()")


def in_an_enumeration(tree: ast.Module) -> bool:
    """Constants are values of an enumeration."""
    above = "import enum\nclass Config(enum.Enum):"
    return _put(tree, _constants_used(tree, "Config.NAME.value"), above, "    {} = {}")


def in_an_attribute_dict(tree: ast.Module) -> bool:
    """Constants are items of a dict, read as its attributes."""
    above = "class AttrDict(dict):\n    def __getattr__(self, name): return self[name]\nconfig = AttrDict("
    return _put(tree, _constants_used(tree, "config.NAME"), above, "    {}={},", ")")


def in_a_config_dict(tree: ast.Module) -> bool:
    """Constants are attributes of a part of an `ml_collections.ConfigDict`."""
    above = "import ml_collections\nconfig = ml_collections.ConfigDict()\nconfig.train = ml_collections.ConfigDict()"
    return _put(tree, _constants_used(tree, "config.train.NAME"), above, "config.train.{} = {}")


def asked_of_a_dict(tree: ast.Module) -> bool:
    """Constants are what a dict without them is asked for by default."""
    held = _constants_used(tree, "settings.get('NAME', NAME_)")
    defaults = {f"{name}_": value for name, value in held.items()}
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.Call)]:
        if len(node.args) == 2 and isinstance(node.args[1], ast.Name) and node.args[1].id in defaults:
            node.args[1] = defaults[node.args[1].id]
    tree.body[_start(tree) : _start(tree)] = ast.parse("settings = {}").body
    return bool(held)


def put_together(tree: ast.Module) -> bool:
    """Texts are put together, in each of the ways of Python."""
    ways = itertools.cycle(('f"{{{0!r}}}_{1}"', "'{{}}_{1}'.format({0!r})", "'%s_{1}' % {0!r}", "{0!r} + '_{1}'"))
    changed = False
    for call in [inner for inner in ast.walk(tree) if isinstance(inner, ast.Call) and not _names(inner.func) & SUPER]:
        for place in (*(("args", number) for number in range(len(call.args))), *call.keywords):
            value = place.value if isinstance(place, ast.keyword) else call.args[place[1]]
            text = value.value if isinstance(value, ast.Constant) else None
            if not isinstance(text, str) or "_" not in text or not text.replace("_", "").isalnum():
                continue
            first, last = text.split("_", 1)
            new, changed = _from(value, next(ways).format(first, last)).value, True  # type: ignore[attr-defined]
            if isinstance(place, ast.keyword):
                place.value = new
            else:
                call.args[place[1]] = new
    return changed


def from_absl(tree: ast.Module) -> bool:
    """Constants are flags of absl."""
    held = _constants_used(tree, "FLAGS.NAME")
    kinds = {int: "integer", float: "float", str: "string", bool: "bool"}
    changed = False
    for kind, name in kinds.items():
        some = {option: value for option, value in held.items() if type(value.value) is kind}
        line = f"flags.DEFINE_{name}('{{}}', {{}}, 'help')"
        changed |= _put(tree, some, "from absl import flags\nFLAGS = flags.FLAGS", line)
    return changed


def arguments_of_fire(tree: ast.Module) -> bool:
    """What the script does is a function for fire, and its constants are what its arguments are by default."""
    head, done = _script(tree)
    if not done:
        return False
    script = ast.Module(done, [])
    held = _constants_used(script, "NAME")
    main = _from(done[0], f"def main({', '.join(f'{name}={value.value!r}' for name, value in held.items())}): pass")
    for parameter, value in zip(main.args.defaults, held.values(), strict=False):  # type: ignore[attr-defined]
        parameter.origin = getattr(value, "origin", None)
    main.body = script.body  # type: ignore[attr-defined]
    tree.body = [*head, *ast.parse("import fire").body, main, _from(done[-1], "fire.Fire(main)")]
    return bool(held)


def by_none(tree: ast.Module) -> bool:
    """Numbers in a function's body are what its parameters stand for that are None by default."""
    changed = False
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.FunctionDef)]:
        is_other = node.args.kwarg or node.args.vararg or node.args.kwonlyargs
        if is_other or any(_has(inner, *SCOPES) for inner in node.body) or node.name in METHODS_OF_KERAS[1:]:
            continue
        numbers = [inner for inner in _inside(node) if isinstance(inner, ast.Constant) and type(inner.value) is float]
        given = {id(number): f"number_{position}" for position, number in enumerate(numbers)}
        node.body = [_Named(given).visit(statement) for statement in node.body]
        checks = []
        for number in numbers:
            name = given[id(number)]
            node.args.args.append(ast.arg(name))
            node.args.defaults.append(ast.Constant(None))
            checks.append(_from(number, f"if {name} is None: {name} = {number.value!r}"))
        node.body[:0] = checks
        changed |= bool(numbers)
    return changed


def _inside(node: ast.FunctionDef) -> Iterator[ast.AST]:
    return (inner for statement in node.body for inner in ast.walk(statement))


def in_properties_of_the_class(tree: ast.Module) -> bool:
    """Numbers in a class's methods are its properties."""
    changed = False
    for own, methods in _classes_with_methods(tree):
        held = _numbers_read(own, methods, "self.{}")
        text = "@property\ndef {}(self): return VALUE"
        own.body[:0] = [_from(value, text.format(name), VALUE=value) for name, value in held.items()]
        changed |= bool(held)
    return changed


def in_settings_of_the_object(tree: ast.Module) -> bool:
    """Numbers in a class's methods are read from settings that its objects are given by default."""
    config = "types.SimpleNamespace({})"
    changed = False
    for own, methods in _classes_with_methods(tree):
        init = next((node for node in methods if node.name == "__init__"), None)
        if init is None:
            continue
        held = _numbers_read(own, [node for node in methods if node is not init], "self.numbers.{}")
        place = next((n for n, node in enumerate(init.body, 1) if _names(node) & SUPER), 0)
        made = config.format(", ".join(f"{name}={value.value!r}" for name, value in held.items()))
        init.body[place:place] = [_from(init, f"self.numbers = {made}")] if held else []
        changed |= bool(held)
    tree.body[_start(tree) : _start(tree)] = ast.parse("import types").body if changed else []
    return changed


def _classes_with_methods(tree: ast.Module) -> Iterator[tuple[ast.ClassDef, list[ast.FunctionDef]]]:
    for own in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.bases]:
        methods = [node for node in own.body if isinstance(node, ast.FunctionDef) and not node.decorator_list]
        yield own, [node for node in methods if node.args.args and node.args.args[0].arg == "self"]


def _numbers_read(own: ast.ClassDef, methods: list[ast.FunctionDef], place: str) -> dict[str, ast.Constant]:
    """The numbers with a point in the methods, each of which is read from the place instead."""
    values = [inner for node in methods for inner in _inside(node) if isinstance(inner, ast.Constant)]
    held = {f"number_{place}": value for place, value in enumerate(values) if type(value.value) is float}
    reading = _Read({id(value): place.format(name) for name, value in held.items()})
    for node in methods:
        node.body = [reading.visit(statement) for statement in node.body]
    return held


class _Read(ast.NodeTransformer):
    def __init__(self, places: dict[int, str]) -> None:
        self.places = places

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        place = self.places.get(id(node))
        return node if place is None else _from(node, place).value  # type: ignore[attr-defined,no-any-return]


CONSTANTS: tuple[Callable[[ast.Module], bool], ...] = (
    *(in_fields, in_an_enumeration, in_an_attribute_dict, in_a_config_dict, asked_of_a_dict),
    *(put_together, from_absl, arguments_of_fire, by_none),
    *(in_properties_of_the_class, in_settings_of_the_object),
)
