"""Further ways in which a program could have been written, as `rewrites` has them: of where its constants come from."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

from rewrites import SCOPES, _at, _has, _start
from rewrites_of_style import _at_expression, _constants_taken

METHODS_OF_KERAS = ("__init__", "build", "call", "get_config", "from_config", "compute_output_shape")


def texts_of_the_command_line(tree: ast.Module) -> bool:
    """Texts that calls are given are options of the command line."""
    return _asked(tree, str)


def numbers_of_the_command_line(tree: ast.Module) -> bool:
    """Numbers that calls are given are options of the command line."""
    return _asked(tree, (int, float))


def flags_of_the_command_line(tree: ast.Module) -> bool:
    """True and False that calls are given are options of the command line."""
    return _asked(tree, bool)


def _asked(tree: ast.Module, kinds: type | tuple[type, ...]) -> bool:
    held = dict(_constants_taken(tree, "args.NAME", kinds))
    lines = ["import argparse", "parser = argparse.ArgumentParser()"]
    lines += [f"parser.add_argument('--{name}', {_option(value.value)})" for name, value in held.items()]  # type: ignore[attr-defined]
    added = ast.parse("\n".join([*lines, "args = parser.parse_args()"])).body
    for statement, value in zip(added[2:], held.values(), strict=False):
        _at(value, statement)
    tree.body[_start(tree) : _start(tree)] = added if held else []
    return bool(held)


def _option(value: object) -> str:
    if isinstance(value, bool):
        return f"action='store_{str(not value).lower()}'"
    return f"type={type(value).__name__}, default={value!r}"


def read_as_json(tree: ast.Module) -> bool:
    """Constants that calls are given stand in a text of JSON."""
    held = dict(_constants_taken(tree, "CONFIG['NAME']"))
    if any(value.value in (float("inf"), float("-inf")) for value in held.values()):  # type: ignore[attr-defined]
        return False
    text = json.dumps({name: value.value for name, value in held.items()})  # type: ignore[attr-defined]
    added = ast.parse(f"import json\nCONFIG = json.loads({text!r})").body
    tree.body[_start(tree) : _start(tree)] = added if held else []
    return bool(held)


def as_defaults(tree: ast.Module) -> bool:
    """Numbers in a function's body are what its parameters are by default."""
    changed = False
    for node in [inner for inner in ast.walk(tree) if isinstance(inner, ast.FunctionDef)]:
        if (
            node.args.kwarg
            or node.args.vararg
            or node.args.kwonlyargs
            or any(_has(inner, *SCOPES) for inner in node.body)
        ):
            continue
        numbers = [
            inner
            for statement in node.body
            for inner in ast.walk(statement)
            if isinstance(inner, ast.Constant) and isinstance(inner.value, float)
        ]
        if not numbers or (node.name in METHODS_OF_KERAS and node.name not in ("__init__", "call")):
            continue
        given = {id(number): f"number_{position}" for position, number in enumerate(numbers)}
        for number in numbers:
            node.args.args.append(ast.arg(given[id(number)]))
            node.args.defaults.append(ast.Constant(number.value))
        node.body = [_Named(given).visit(statement) for statement in node.body]
        changed = True
    return changed


class _Named(ast.NodeTransformer):
    def __init__(self, given: dict[int, str]) -> None:
        self.given = given

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        name = self.given.get(id(node))
        return node if name is None else _at_expression(node, ast.Name(name, ast.Load()))


def as_powers(tree: ast.Module) -> bool:
    """Powers of ten are written as such."""
    powers = {10.0**exponent: exponent for exponent in range(-12, 13) if abs(exponent) > 1}

    class Powers(ast.NodeTransformer):
        changed = False

        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            if not isinstance(node.value, float) or node.value not in powers:
                return node
            self.changed = True
            return _at_expression(node, ast.parse(f"10.0 ** {powers[node.value]}", mode="eval").body)

    rewriting = Powers()
    rewriting.visit(tree)
    return rewriting.changed


SETTINGS: tuple[Callable[[ast.Module], bool], ...] = (
    *(texts_of_the_command_line, numbers_of_the_command_line, flags_of_the_command_line),
    *(read_as_json, as_defaults, as_powers),
)
