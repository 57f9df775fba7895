"""Branches and loops of a graph that give a tensor in two dtypes: `tf.cond`, `tf.while_loop` and their like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Collection, Value, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.operands.mixed_operands import is_half
from mpdoctor.semantics.source.operands.numbers_first import runs_eagerly

# Measured in TensorFlow 2.4, 2.15 and 2.21 (those of Keras in 3.15): in a graph all raise; eagerly `tf.scan` does, and
# nothing is said there. With the positions of the functions, and of what is carried.
CONDITIONS = {
    "tensorflow.cond": ((1, "true_fn"), (2, "false_fn")),
    "keras.ops.cond": ((1, "true_fn"), (2, "false_fn")),
    "keras.backend.switch": ((1, "then_expression"), (2, "else_expression")),  # Keras 2; it takes tensors as well
}
CASES = {
    "tensorflow.case": (0, "pred_fn_pairs"),
    "tensorflow.switch_case": (1, "branch_fns"),
    "keras.ops.switch": (1, "branches"),
}
LOOPS = {
    "tensorflow.while_loop": ((1, "body"), (2, "loop_vars")),
    "keras.ops.while_loop": ((1, "body"), (2, "loop_vars")),
    "keras.ops.fori_loop": ((2, "body_fun"), (3, "init_val")),
    **dict.fromkeys(("tensorflow.scan", "tensorflow.foldl", "tensorflow.foldr"), ((0, "fn"), (2, "initializer"))),
}


class TwoDtypes(NamedTuple):
    """A call whose branches give float32 and 16 bits, or a loop that starts with float32 and goes on in 16 bits.

    wide, half
        The tensors.
    is_loop
        Whether it is a loop."""

    call: Call
    wide: Value
    half: Value
    is_loop: bool


def branches_in_two_dtypes(facts: SourceFacts) -> Iterator[TwoDtypes]:
    """The branches and loops of layers' `call()` that give a tensor in float32 and in 16 bits; none where the program
    runs no graphs."""
    calls = list(facts.calls_of(*CONDITIONS, *CASES, *LOOPS))
    if not calls or runs_eagerly(facts):
        return
    for call in calls:
        name = public_name(call.callee.name) if isinstance(call.callee, Api) else ""
        is_loop = name in LOOPS
        if call.open or asks_for_dtype(call.context):
            continue
        for choices in _carried(facts, call, name) if is_loop else _alternatives(facts, call, name):
            wide = next((given for given in choices if all(_is_wide(facts, call, value) for value in given)), ())
            half = next((given for given in choices if all(is_half(facts, v, call.context) for v in given)), ())
            if wide and half and (not is_loop or wide is choices[0]):
                yield TwoDtypes(call, wide[0], half[0], is_loop)
                break


def _is_wide(facts: SourceFacts, call: Call, value: Value) -> bool:
    return facts.dtype_at(value, call.context) == "float32" and not is_array(value) and not is_number(value)


Given = list[tuple[Value, ...]]
"""For each branch what it gives for one tensor: on each of its paths."""


def _alternatives(facts: SourceFacts, call: Call, name: str) -> Iterator[Given]:
    """For each tensor that the call gives, what each of its branches gives for it."""
    functions = _branches(call, name)
    results = [_results(facts, branch) or _tensors(branch, name) for branch in functions]
    if len(results) > 1 and all(results):
        yield from _by_place(results)


def _branches(call: Call, name: str) -> list[Value | None]:
    if name in CONDITIONS:
        return [call.argument(*place) for place in CONDITIONS[name]]
    given = call.argument(*CASES[name])
    held = given.items if isinstance(given, Collection) and not given.open else ()
    pairs = [item.items[-1] if isinstance(item, Collection) and item.items else item for item in held]
    default = call.argument(CASES[name][0] + 1, "default") if name.startswith("tensorflow.") else None
    return [*pairs, *([default] if default is not None else [])]


def _results(facts: SourceFacts, function: Value | None) -> tuple[Value, ...]:
    """What a function of the user's own returns, on each path; () where that is not known."""
    choices = options(function)
    own = choices[0].of if len(choices) == 1 and isinstance(choices[0], Defined) else None
    if not isinstance(own, FunctionFacts):
        return ()
    return tuple(value for event in facts.returns_of(own) for value in options(event.value))


def _tensors(branch: Value | None, name: str) -> tuple[Value, ...]:
    """What a branch of `K.switch` gives that is given as a tensor; () of other functions."""
    is_given = name == "keras.backend.switch" and not any(isinstance(option, Defined) for option in options(branch))
    return options(branch) if is_given else ()


def _carried(facts: SourceFacts, call: Call, name: str) -> Iterator[Given]:
    """For each variable of a loop, what it starts with and what the body makes of it."""
    body, start_place = LOOPS[name]
    start, after = call.argument(*start_place), _results(facts, call.argument(*body))
    if start is not None and after:
        is_single = not any(isinstance(value, Collection) for value in after)
        yield from _by_place([tuple(_only(value) if is_single else value for value in options(start)), after])


def _only(value: Value) -> Value:
    """The variable of a loop that has one, which may be given in a list."""
    return value.items[0] if isinstance(value, Collection) and len(value.items) == 1 and not value.open else value


def _by_place(results: list[tuple[Value, ...]]) -> Iterator[Given]:
    """The results tensor by tensor, where functions give several."""
    values = [value for given in results for value in given]
    if not any(isinstance(value, Collection) for value in values):
        yield results
        return
    held = [value for value in values if isinstance(value, Collection) and value.kind != "dict" and not value.open]
    count = len(held[0].items) if held else 0
    if len(held) < len(values) or any(len(each.items) != count for each in held):
        return
    for place in range(count):
        yield [tuple(v.items[place] for v in given if isinstance(v, Collection)) for given in results]
