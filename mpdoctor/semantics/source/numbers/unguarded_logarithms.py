"""Logarithms of a softmax in 16 bits, or of what is picked out of one, that nothing keeps away from 0."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Item, Value, options, walk
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.numbers.differentiated_values import is_stopped_behind
from mpdoctor.semantics.source.numbers.late_casts import Rounded, probabilities_behind

PICKING = ("gather", "gather_nd", "take", "take_along_axis", "boolean_mask")
PASSING = ("cast", "squeeze", "reshape", "expand_dims", "identity")
SUMMING = ("reduce_sum", "sum")
SAMPLING = ("tensorflow.random.categorical", "keras.random.categorical", "tensorflow.compat.v1.multinomial")
DEEPEST = 8


def unguarded_logarithms(facts: SourceFacts) -> Iterator[tuple[Call, Rounded]]:
    """The logarithms in a loss that a tape differentiates, and the 16-bit softmax that each is taken of. Not those that
    an action is drawn by, where -inf is as good as any small number."""
    logarithms = [call for call, name in functions_called(facts) if name == "log" and not asks_for_dtype(call.context)]
    if not logarithms:
        return
    in_losses = _parts(call.argument(0, "target") for call in facts.method_calls("gradient"))
    sampled = _parts(call.argument(0, "logits") for call in facts.calls_of(*SAMPLING))
    for call in logarithms:
        if id(call) in in_losses and id(call) not in sampled and not is_stopped_behind(facts, call):
            softmax = _softmax(facts, call.argument(0, "x"))
            if softmax is not None:
                yield call, softmax


def _parts(values: Iterator[Value | None]) -> set[int]:
    return {id(part) for value in values if value is not None for part in walk(value)}


def _softmax(facts: SourceFacts, value: Value | None, depth: int = 0) -> Rounded | None:
    """The softmax that a value is, or is picked out of."""
    choices = options(value)
    if len(choices) != 1 or depth > DEEPEST:
        return None
    (only,) = choices
    probabilities = probabilities_behind(facts, only)
    if probabilities is not None:
        return probabilities if probabilities.activation == "softmax" else None
    inner = _picked_out_of(only)
    return _softmax(facts, inner, depth + 1) if inner is not None else None


def _picked_out_of(value: Value) -> Value | None:
    """`p` of `p[:, action]`, of `tf.gather(p, action)` and of `tf.reduce_sum(p * tf.one_hot(action, n), 1)`."""
    if isinstance(value, Item):
        return value.of
    if not isinstance(value, Call):
        return None
    name = function_named(value)
    first = value.argument(0, "x") or value.keyword("params") or value.keyword("input_tensor")
    if name in SUMMING:
        return _beside_one_hot(first)
    return first if name in PICKING + PASSING else None


def _beside_one_hot(product: Value | None) -> Value | None:
    """`p` of `p * tf.one_hot(…)`."""
    factors: tuple[Value, ...] = ()
    for option in options(product):
        if isinstance(option, Operation) and option.operator == "*":
            factors = option.operands
        elif function_named(option) == "multiply" and isinstance(option, Call):
            factors = option.args
    others = [factor for factor in factors if not _is_one_hot(factor)]
    return others[0] if len(others) == 1 and len(factors) == 2 else None


def _is_one_hot(value: Value) -> bool:
    choices = [
        option.argument(0, "x") if isinstance(option, Call) and function_named(option) == "cast" else option
        for option in options(value)
    ]
    return bool(choices) and all(
        function_named(option) == "one_hot" for choice in choices for option in options(choice)
    )
