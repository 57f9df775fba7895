"""Random mutations of Python programs: fixtures and tests' texts with tokens dropped, doubled, swapped and inserted."""

from __future__ import annotations

import ast
import copy
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeVar

from mpdoctor.knowledge.api_parameters import PARAMETERS

Node = TypeVar("Node", bound=ast.AST)
TESTS = Path(__file__).parents[1]
RULES = TESTS.parent / "fixtures" / "rules"
TOKEN = re.compile(r"\w+|[ \t]+|\n|[^\w\s]+")
NAMES = sorted({name for names in PARAMETERS.values() for name in names} | {"dtype", "policy", "name", "self", "_"})
# fmt: off
ODD = (
    "None", "...", "*", "**", "*x", "**x", "()", "[]", "{}", "f()", "tf()", "keras", "tf", "self", "super()",
    "lambda: 0", "1e400", "-0.0", "9" * 5000, "1j", "b''", "f'{x!r:{y}}'", "'\\ud800'", "x[:]", "x[...]", "x[1:2, ::3]",
    "(yield)", "await x", "(x := 1)", "not x", "x if y else z", "[x for x in y]", "{**x}", "print(*x)", "global x\n",
    "del x\n", "return\n", "async ", "@f\n", "try:\n", "else:\n", "finally:\n", "except* E:\n", "while 1:\n",
    "match x:\n case [*b]: 0\n",
    "'mixed_float16'", "tf.float16", "# mpdoctor: ignore[", "from . import x\n", "from .. import *\n", "import x.y.z\n",
    "\\\n", "\t", "\f", "\0", "\ufeff", "é", "\u2028", ";", ":", "=", "->", "!", "?", "`", "$", "#", "\'\'\'", '"""',
)
# fmt: on


@cache
def seeds() -> tuple[str, ...]:
    """The fixtures of all rules, and the programs that stand in the tests."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(RULES.rglob("*.py"))]
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and re.search(r"tf\.|keras\.", node.value)
            ):
                texts.append(node.value)
    return tuple(texts)


def mutated(random: Random) -> bytes:
    """A program that was changed in one to three ways. Most can still be parsed: behind a syntax error nothing is
    looked at."""
    text = random.choice(seeds())
    for _ in range(random.randint(1, 3)):
        changed = random.choice(CHANGES)(random, text)
        if random.random() < 0.2 or _tree(changed) is not None:
            text = changed
    data = text.encode(errors="surrogatepass")
    return with_other_bytes(random, data) if random.random() < 0.05 else data


def with_other_tokens(random: Random, text: str) -> str:
    tokens, others = TOKEN.findall(text) or [""], TOKEN.findall(random.choice(seeds())) or [""]
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(tokens))
        kind = random.randrange(5)
        if kind == 0:
            tokens[at] = ""
        elif kind == 1:
            tokens[at] *= 2
        elif kind == 2:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = random.choice(others) if kind == 3 else random.choice(ODD)
    return "".join(tokens)


def spliced(random: Random, text: str) -> str:
    """Some lines of another program among those of this one, at any depth."""
    lines, others = text.splitlines(keepends=True), random.choice(seeds()).splitlines(keepends=True)
    start = random.randrange(len(others) + 1)
    indent = " " * random.choice((0, 0, 4, 8))
    taken = [indent + line for line in others[start : start + random.randint(1, 12)]]
    at = random.randrange(len(lines) + 1)
    lines[at : at + random.choice((0, 0, 1, 5))] = taken
    return "".join(lines)


def with_other_bytes(random: Random, data: bytes) -> bytes:
    changed = bytearray(data or b" ")
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(changed) + 1)
        changed[at : at + random.randrange(3)] = random.randbytes(random.randrange(4))
    return bytes(changed)


def with_other_arguments(random: Random, text: str) -> str:
    """Arguments by name instead of by position, the other way round, dropped, doubled, spread."""
    tree = _tree(text)
    if tree is None:
        return with_other_tokens(random, text)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        kind = random.randrange(10)
        if kind == 0 and call.args:
            names = _parameters(call) or random.sample(NAMES, len(call.args))
            moved = call.args if random.random() < 0.5 else call.args[-1:]
            call.keywords += [ast.keyword(name, value) for name, value in zip(names, moved, strict=False)]
            call.args = call.args[: len(call.args) - len(moved)]
        elif kind == 1 and call.keywords:
            call.args.append(call.keywords.pop(random.randrange(len(call.keywords))).value)
        elif kind == 2:
            call.args, call.keywords = [], random.choice(([], call.keywords))
        elif kind == 3 and call.args:
            del call.args[random.randrange(len(call.args))]
        elif kind == 4 and call.args:
            at = random.randrange(len(call.args))
            call.args[at] = ast.Starred(call.args[at], ast.Load())
        elif kind == 5 and call.keywords:
            random.choice(call.keywords).arg = random.choice((None, *NAMES))
        elif kind == 6:
            call.args = [*call.args[:1], ast.Constant(random.choice((None, 0, -1e9, "float16", 10**400, ...)))]
    return _text(tree, text)


def with_other_tree(random: Random, text: str) -> str:
    """Expressions and statements in the place of others."""
    tree, other = _tree(text), _tree(random.choice(seeds()))
    if tree is None or other is None:
        return spliced(random, text)
    foreign = [node for node in ast.walk(other) if isinstance(node, ast.expr)] or [ast.Constant(0)]
    for _ in range(random.randint(1, 5)):
        node = random.choice([*ast.walk(tree)])
        for name, value in [*ast.iter_fields(node)]:
            if isinstance(value, ast.expr) and random.random() < 0.5:
                setattr(node, name, _around(random, copied(random.choice(foreign)), value))
            elif isinstance(value, list) and value and random.random() < 0.5:
                at = random.randrange(len(value))
                if isinstance(value[at], ast.stmt):
                    value[at : at + 1] = random.choice(
                        ([ast.Pass()], [value[at], copied(value[at])], [ast.Pass(), value[at]])
                    )
                elif isinstance(value[at], ast.expr):
                    value[at] = _around(random, copied(random.choice(foreign)), value[at])
    return _text(tree, text)


def nested(random: Random, text: str) -> str:
    """Something in it as deep, or as long, as a generated program has it."""
    depth = random.choice((30, 90, 150, 400, 3000))
    made = random.choice(
        (
            "x = " + "(" * depth + "1" + ")" * depth,
            "x = " + "[" * depth + "]" * depth,
            "x = x" + ".a" * depth,
            "x = x" + "(0)" * depth,
            "x = x" + "[0]" * depth,
            "x = " + "-" * depth + "1",
            "x = " + "1 + " * depth + "1",
            "x = " + "f(" * depth + ")" * depth,
            "x = " + "lambda: " * depth + "0",
            "x = y\n" + "x = x + tf.cast(x, tf.float16)\n" * depth,
            "x = y\n" + "x = (x, x)\n" * depth,
            "if x: pass\n" + "elif x: x = keras.layers.Dense(x)(x)\n" * depth,
            "".join(" " * level + "if x:\n" for level in range(min(depth, 400))) + " " * 400 + "x = 1",
            "".join(" " * level + f"def f{level}(x):\n" for level in range(min(depth, 90))) + " " * 90 + "return f0(x)",
            "".join(f"class A{level}(A{level - 1}): pass\n" for level in range(depth)),
            "".join(f"def f{level}(x): return f{level + 1}(f{level + 1}(x))\n" for level in range(min(depth, 90)))
            + "f0(1)",
            "x = '" + "x" * depth * 100 + "'",
            "x = [" + "0, " * depth + "]",
            "x = 2 ** " * min(depth, 90) + "2",
            "x = 'ab' * 10 ** 9; y = [0] * 10 ** 9; z = 1 << 10 ** 9; x = x * 10 ** 9; '%1000000000d' % 1",
            "x = f'{" * min(depth, 30) + "x" + "}'" * min(depth, 30),
            "global x, " * 3 + "x",
        )
    )
    lines = text.splitlines(keepends=True)
    lines.insert(random.randrange(len(lines) + 1), made + "\n")
    return "".join(lines)


def _around(random: Random, new: ast.expr, old: ast.expr) -> ast.expr:
    """One expression in the place of another, perhaps with that in it."""
    return random.choice(
        (
            new,
            new,
            ast.Call(old, [], []),
            ast.Call(new, [old], []),
            ast.Attribute(old, random.choice(NAMES), ast.Load()),
            ast.Subscript(old, new, ast.Load()),
            ast.BinOp(old, random.choice((ast.Mult(), ast.Div(), ast.Pow(), ast.MatMult())), new),
            ast.IfExp(new, old, ast.Constant(0)),
            ast.Lambda(ast.arguments([], [], None, [], [], None, []), old),
            ast.Tuple([old, new], ast.Load()),
            ast.Starred(old, ast.Load()),
            ast.NamedExpr(ast.Name("x", ast.Store()), old),
        )
    )


DOUBLING = (
    "{0} = ({0}, {0})", "{0} = [{0}, {0}]", "{0} = {{'a': {0}, 'b': {0}}}", "{0} = [*{0}, *{0}]",
    "{0} = dict(**{0}, **{0})", "{0} = {0} + {0}", "{0} = {0} * {0}", "{0} += {0}", "{0}.extend({0})",
    "{0} = {0} or ({0} and {0})", "{0} = ({0}, {0}) if some else [{0}, {0}]", "{0} = some({0}, {0})",
    "{0} = (lambda q: (q, q))({0})", "{0} = {0}({0})", "{0} = [q for q in ({0}, {0})]", "{0} = f'{{{0}}}{{{0}}}'",
    "{0} = tf.concat([{0}, {0}], 0)", "{0} = tf.keras.layers.Add()([{0}, {0}])", "{0}.update(a={0}, b={0})",
    "{0} = ({0}[0], {0}[1], {0})", "{0}.left = {0}.right = {0}", "{0} = tf.where({0} > 0, {0}, {0})",
)  # fmt: skip


def doubled(random: Random, text: str) -> str:
    """A variable or parameter holds itself twice over, forty lines in a row."""
    tree = _tree(text)
    spots: list[tuple[int, int, str]] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            spots.append((node.end_lineno or node.lineno, node.col_offset, node.targets[0].id))
        elif isinstance(node, ast.FunctionDef):
            spots += [(node.body[0].lineno - 1, node.body[0].col_offset, each.arg) for each in node.args.args]
    if not spots:
        return text
    line, column, name = random.choice(spots)
    return with_lines(text, line, column, [random.choice(DOUBLING).format(name)] * 40)


def with_lines(text: str, line: int, column: int, put_in: list[str]) -> str:
    """Behind a line, indented like this column."""
    lines = text.split("\n")
    lines[line:line] = [" " * column + each for each in put_in]
    return "\n".join(lines)


CHANGES = (
    *(
        with_other_tokens,
        with_other_tokens,
        with_other_tree,
        with_other_tree,
        with_other_arguments,
        with_other_arguments,
    ),
    *(with_other_arguments, spliced, spliced, nested, doubled),
)


def copied(node: Node) -> Node:
    """A node that stands in a tree twice makes it grow with each further change."""
    try:
        return copy.deepcopy(node)
    except RecursionError:
        return node


def _parameters(call: ast.Call) -> list[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return [
        *next(
            (PARAMETERS[f"{place}.{name}"] for place in ("tensorflow", "keras.ops") if f"{place}.{name}" in PARAMETERS),
            (),
        )
    ]


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _text(tree: ast.Module, before: str) -> str:
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, RecursionError, AttributeError, TypeError):  # a tree that no program has
        return before
