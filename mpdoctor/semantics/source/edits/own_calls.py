"""Edits of the `call` of a layer's class: what it returns cast, and what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import ADDING_WEIGHTS
from mpdoctor.knowledge.python_idioms import is_bare_constant
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.casts import cast, cast_around
from mpdoctor.semantics.source.edits.statements import line_before
from mpdoctor.semantics.source.texts.syntax_trees import called, class_around, location_of

TENSORS = (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp)
WEIGHTS = (*ADDING_WEIGHTS, "Variable")

Edits = tuple[Edit, ...]


@dataclass(frozen=True)
class OwnCall:
    """A layer's class and its one `call`. `returned`: what that returns, each a single tensor as far as is seen."""

    own: ast.ClassDef
    method: ast.FunctionDef
    returned: tuple[ast.expr, ...]

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [argument.arg for argument in self.method.args.args]


def cast_back(facts: SourceFacts, line: int) -> tuple[str, Edits] | None:
    """(a title, the edits): what the `call` of the class around this line returns, cast to its compute dtype. None
    where it returns several tensors, or nobody sees what."""
    call = _own_call(facts, line)
    edits = _results_cast(facts, call) if call is not None else None
    return (f"Cast what `{call.own.name}.call` returns", edits) if call is not None and edits else None


def computed_in_float32(facts: SourceFacts, line: int) -> tuple[str, Edits] | None:
    """(a title, the edits): the input of that `call` cast to float32 in its first line, and what it returns cast back.
    None where there is more than one input, and where weights and layers of its own have dtypes of their own."""
    call = _own_call(facts, line)
    around = cast_around(facts)
    if call is None or around is None or len(_inputs(call)) != 1 or _holds_others(call):
        return None
    (name,) = _inputs(call)
    edits, first = _results_cast(facts, call), next(one for one in call.method.body if not is_bare_constant(one))
    before = line_before(facts, location_of(facts, first), f"{name} = {name.join(around)}")
    if before is None or not edits or not call.method.lineno < first.lineno:
        return None
    return f"`{call.own.name}.call` computes in float32", (before, *edits)


def _own_call(facts: SourceFacts, line: int) -> OwnCall | None:
    own = class_around(facts, line)
    methods = [part for part in own.body if isinstance(part, ast.FunctionDef)] if own is not None else []
    calls = [method for method in methods if method.name == "call" and method.args.args and not method.decorator_list]
    if own is None or len(calls) != 1:
        return None
    returned = [node.value for node in _own_nodes(calls[0]) if isinstance(node, ast.Return)]
    tensors = [value for value in returned if isinstance(value, TENSORS)]
    return OwnCall(own, calls[0], tuple(tensors)) if tensors and len(tensors) == len(returned) else None


def _results_cast(facts: SourceFacts, call: OwnCall) -> Edits | None:
    edits = [cast(facts, location_of(facts, value), f"{call.names[0]}.compute_dtype") for value in call.returned]
    return tuple(edit for each in edits for edit in each or ()) if all(edits) else None


def _inputs(call: OwnCall) -> list[str]:
    return [name for name in call.names[1:] if name not in ("training", "mask")]


def _holds_others(call: OwnCall) -> bool:
    """Whether the class makes weights, or calls what it keeps as a layer or a function."""
    nodes = list(ast.walk(call.own))
    makes = any(isinstance(node, ast.Call) and called(node) in WEIGHTS for node in nodes)
    kept = (node.func for node in ast.walk(call.method) if isinstance(node, ast.Call))
    return makes or any(_is_of(function, call.names[0]) for function in kept)


def _is_of(function: ast.expr, owner: str) -> bool:
    """Whether the function is a method of `owner`, as `self.dense` is of `self`."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == owner


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    for node in waiting:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
