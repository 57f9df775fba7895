"""Inserts a line after the last statement under a GradientTape that changes a loss: `loss += sum(model.losses)`."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.statements import logical_line_at
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of

WITH = (ast.With, ast.AsyncWith)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Block = Sequence[ast.stmt]


def behind_last_under_tape(facts: SourceFacts, gradient: Location, name: str, text: str) -> Edit | None:
    """The edit that puts a line behind the last statement under the tape that gives `name` its value. `gradient`: the
    place of `tape.gradient(name, …)`. None where it is not certain that the line runs whenever that does."""
    tree, calls = _calls_by_place(facts)
    call = calls.get(gradient)
    if tree is None or call is None or not isinstance(call.func, ast.Attribute):
        return None
    tape = call.func.value
    made = _made_under(tree, call, tape.id) if isinstance(tape, ast.Name) else ()
    last = next((statement for statement in reversed(made) if _binds(statement, name)), None)
    if last is None or isinstance(last, SCOPES):
        return None
    place = location_of(facts, last)
    indent, line = facts.lines[place.line - 1][: place.column - 1], logical_line_at(facts, place.end_line)
    if indent.strip() or line is None or line.shared or reads_what_comes_later(facts, line.end, text):
        return None
    end = len(facts.lines[line.end - 1]) + 1
    return Edit(Location(place.path, line.end, end, line.end, end), f"\n{indent}{text}")


def reads_what_comes_later(facts: SourceFacts, behind: int, text: str) -> bool:
    """Whether a statement behind this line would read a name that its function, or the file beside its functions, gives
    a value only further down."""
    around = [node for node in _functions(facts) if node.lineno <= behind <= (node.end_lineno or node.lineno)]
    innermost, known = max(around, key=lambda node: node.lineno, default=None), _first_lines_known(facts)
    first = known.get(innermost) or known.setdefault(innermost, _first_lines(facts, innermost))
    names = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
    return any(isinstance(name.ctx, ast.Load) and first.get(name.id, 0) > behind for name in names)


@lru_cache(maxsize=1)
def _first_lines_known(_facts: SourceFacts) -> dict[FunctionNode | None, dict[str, int]]:
    """Cache of one program, by function: each training step may ask about the same one, or about the file (None)."""
    return {}


def _first_lines(facts: SourceFacts, function: FunctionNode | None) -> dict[str, int]:
    """The line on which a function, or for None the file beside its functions, first gives each name a value: those
    of parameters are not among them."""
    inside = ast.walk(function) if function is not None else _beside_functions(tree_of(facts) or ast.Module([], []))
    given = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)} if function else set()
    first: dict[str, int] = {}
    for node in inside:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in given:
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
    return first


def _beside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    for node in waiting:  # which grows
        yield node
        waiting += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, SCOPES)]


@lru_cache(maxsize=1)
def _functions(facts: SourceFacts) -> list[FunctionNode]:
    return [node for node in ast.walk(tree_of(facts) or ast.Module([], [])) if isinstance(node, FUNCTIONS)]


@lru_cache(maxsize=1)
def _calls_by_place(facts: SourceFacts) -> tuple[ast.Module | None, dict[Location, ast.Call]]:
    """The tree, and its calls: of two at one place the outer one."""
    tree = tree_of(facts)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    return tree, {location_of(facts, call): call for call in reversed(calls)}


def _made_under(tree: ast.Module, call: ast.Call, tape: str) -> Block:
    """The statements under the tape that the call is of, before it; () where it may be one of several tapes."""
    for block, number in reversed(list(_blocks_around(tree, call))):
        holder = block[number]
        if isinstance(holder, WITH) and _opens(holder, tape):
            last = _number_of_holder(holder.body, call)
            return holder.body[:last] if last is not None else ()
        for statement in reversed(block[:number]):
            if isinstance(statement, WITH) and _opens(statement, tape):
                return statement.body
            if any(isinstance(node, WITH) and _opens(node, tape) for node in ast.walk(statement)):
                return ()  # in a branch, or in a function
    return ()


def _blocks_around(tree: ast.Module, call: ast.Call) -> Iterator[tuple[Block, int]]:
    """The blocks around a call within its innermost function, outermost first, each with the index of the statement
    that contains the call."""
    around: list[tuple[Block, int]] = []
    blocks: list[Block] = [tree.body]
    while blocks:
        block = blocks.pop()
        number = _number_of_holder(block, call)
        if number is None:
            continue
        holder = block[number]
        around = [] if isinstance(holder, SCOPES) else [*around, (block, number)]
        blocks = [inner for inner in _blocks_of(holder) if inner]
    yield from around


def _blocks_of(statement: ast.stmt) -> Iterator[Block]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def _number_of_holder(block: Block, call: ast.Call) -> int | None:
    """Which statement of a block holds the call. They stand in order: the last that begins before it does, or none."""
    number = bisect_right(block, _start(call), key=_start) - 1
    return number if number >= 0 and _end(call) <= _end(block[number]) else None


def _start(node: ast.stmt | ast.expr) -> tuple[int, int]:
    first = next(iter(getattr(node, "decorator_list", ())), node)
    return first.lineno, first.col_offset


def _end(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _opens(statement: ast.AST, tape: str) -> bool:
    items = statement.items if isinstance(statement, WITH) else ()
    return any(isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == tape for item in items)


def _binds(statement: ast.stmt, name: str) -> bool:
    names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return any(node.id == name and isinstance(node.ctx, ast.Store) for node in names)
