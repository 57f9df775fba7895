"""A layer or loss casts to a 16-bit dtype by name, so it works under one policy only.

## Why it matters
Under `mixed_float16` the cast does what `inputs.dtype` would do. With mixed precision switched off, or under
`mixed_bfloat16`, the same line raises where its result is combined with another tensor (`expected to be a float
tensor but is a half tensor`; Keras 3.15, tf_keras 2.21), and a loss is needlessly computed with three digits.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Positions(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.cast(tf.range(4), tf.float16)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Positions(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.cast(tf.range(4), inputs.dtype)
```

## Versions
All. A tensor made in float16 by name, `tf.ones(…, tf.float16)`, and combined with the input is reported as
well. Not reported, because they are deliberate: a cast under an `if` about dtypes, a cast in a layer that fixes
its own dtype, and a cast whose result is cast back.

## Where users met it
leondgarse/keras_cv_attention_models#122, keras-team/keras-core#815.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.dtypes.result_dtypes import DEFAULTS, JOINING, KEEPING
from mpdoctor.knowledge.half_dtypes import HALF
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named, policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, options, walk
from mpdoctor.semantics.source.edits.expressions import argument_replaced, safe_fix, unsafe_fix
from mpdoctor.semantics.source.edits.names import cast_around
from mpdoctor.semantics.source.layers.call_dtypes import policies_of_instances, runs_in_call
from mpdoctor.semantics.source.layers.casts import casts, is_cast, is_cast_to
from mpdoctor.semantics.source.layers.output_layers import SIXTEEN_BITS
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.WARNING
FIXES = ("safe", "unsafe")
EXPLAINS = {"MP202": "line"}
MAKERS = tuple(name for name, (_, default) in DEFAULTS.items() if default == "float32")
ORDINARY = ("training", "mask", "sample_weight")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    losses = _loss_functions(facts)
    told = [(call, dtype, given, is_loss) for call, dtype, given, is_loss in _casts_by_name(facts, losses)]
    for call, dtype, given, is_loss in told:
        text = text_at(facts, given.location) or dtype
        together = [cast for cast, *_, in_loss in told if in_loss and cast.context.function is call.context.function]
        fix = _fix_in_loss(facts, together) if is_loss else _fix(facts, call)
        yield _finding(dtype, text, is_loss, is_cast(call), call.location, fix)


def _casts_by_name(facts: SourceFacts, losses: set[int]) -> Iterator[tuple[Call, str, Value, bool]]:
    """Each call that casts or makes a tensor by name: its dtype, the value that names it, and whether it is in a "
    "loss."""
    for call, dtype, given in (*_casts(facts), *_made(facts)):
        if dtype not in HALF or _is_of_a_tensor(given) or _is_conditional(call.context):
            continue
        is_loss = _is_in_a_loss(call.context, losses)
        if not (is_loss and is_cast(call)) and not _is_in_a_layer_of_any_dtype(facts, call):
            continue
        if not is_cast_to(facts, call, (AUTOCAST, "float32", "float64", "int32", "int64")):
            yield call, dtype, given, is_loss


def _casts(facts: SourceFacts) -> Iterator[tuple[Call, str, Value]]:
    for call, dtype in casts(facts):
        given = call.argument(1, "dtype")
        if given is not None:
            yield call, dtype, given


def _made(facts: SourceFacts) -> Iterator[tuple[Call, str, Value]]:
    """`tf.ones((4, 4), tf.float16)`, where it is combined with another tensor at once. Not a state that is passed to a
    layer: that may have to be float16."""
    for call in facts.calls_of(*MAKERS):
        given = call.argument(_dtype_position(call), "dtype")
        dtype = dtype_named(given, facts.keras) if given is not None else None
        if given is not None and dtype in HALF and id(call) in _combined(facts):
            yield call, dtype, given


@lru_cache(maxsize=1)
def _combined(facts: SourceFacts) -> frozenset[int]:
    """The ids of the values that are operands of an operation, directly or through a function that keeps their "
    "dtype."""
    joining = [call for call in facts.calls if isinstance(call.callee, Api) and call.method in JOINING]
    waiting = [operand for operation in facts.operations for operand in operation.operands]
    waiting += [operand for call in joining for operand in call.arguments(JOINING[call.method])]
    found: set[int] = set()
    for value in waiting:
        for option in options(value):
            if id(option) not in found:
                found.add(id(option))
                waiting += _kept(option)
    return frozenset(found)


def _kept(value: Value) -> tuple[Value, ...]:
    if isinstance(value, (Item, Collection)):
        return value.parts
    keeps = isinstance(value, Call) and isinstance(value.callee, Api) and value.method in KEEPING
    return value.arguments(slice(1)) if keeps and isinstance(value, Call) else ()


def _dtype_position(call: Call) -> int | None:
    return DEFAULTS[call.callee.name][0] if isinstance(call.callee, Api) and call.callee.name in DEFAULTS else None


def _fix(facts: SourceFacts, call: Call) -> Fix | None:
    """The edit that writes the layer's compute dtype, which under this policy equals the dtype named."""
    function = call.context.function
    while function is not None and function.owner is None:
        function = function.enclosing
    if function is None or not function.parameters:
        return None
    dtype = f"{function.parameters[0]}.compute_dtype"
    position = 1 if is_cast(call) else _dtype_position(call)
    edit = argument_replaced(facts, call.location, "dtype", position, dtype) if position is not None else None
    return safe_fix(f"{'Cast to' if is_cast(call) else 'Make it in'} `{dtype}`", edit)


def _fix_in_loss(facts: SourceFacts, together: list[Call]) -> Fix | None:
    """The edits that make all casts of the loss float32: with only one of them the dtypes would not match."""
    around = cast_around(facts)
    wide = around[1].removeprefix(", ").removesuffix(")") if around is not None else ""
    edits = (argument_replaced(facts, call.location, "dtype", 1, wide) for call in together)
    return unsafe_fix("Cast to float32", *edits) if wide else None


def _finding(dtype: str, text: str, is_loss: bool, of_cast: bool, location: Location, fix: Fix | None) -> Finding:
    return Finding(
        f"This {'cast' if of_cast else 'tensor'} names {dtype}: it works under one policy only, and raises as soon as "
        f"the model runs in float32 or {'bfloat16' if dtype == 'float16' else 'float16'}.",
        f"Cast to the dtype of the other operand, `y_pred.dtype` instead of `{text}`, or to float32, which is best for "
        "a loss."
        if is_loss
        else f"{'Cast to' if of_cast else 'Make it in'} the dtype of the other operand: `inputs.dtype` or "
        "`self.compute_dtype` instead of "
        f"`{text}`.",
        location,
        fix=fix,
    )


def _is_in_a_loss(context: Context, losses: set[int]) -> bool:
    """Whether the call runs in a loss; `losses` are the ids of the loss functions."""
    in_class = context.owner is not None and context.owner.kind == "loss"
    return in_class or (context.function is not None and id(context.function) in losses)


def _is_in_a_layer_of_any_dtype(facts: SourceFacts, call: Call) -> bool:
    """Whether it runs in the `call()` of a user's layer that follows the global policy."""
    owner = call.context.owner
    if owner is None or owner.kind is None or not runs_in_call(call.context):
        return False
    fixed = policies_named(owner.base_argument("dtype"))
    return not fixed and any(policy in SIXTEEN_BITS for policy in policies_of_instances(facts, owner))


def _is_of_a_tensor(given: object) -> bool:
    """Whether it is written as `other.dtype`, even where that is certainly float16."""
    return isinstance(given, Attribute)


def _is_conditional(context: Context) -> bool:
    """Whether it is under an `if` about anything other than training and masks."""
    return any(
        not any(isinstance(value, Parameter) and value.name in ORDINARY for value in walk(branch.test))
        for branch in context.branches
    )


def _loss_functions(facts: SourceFacts) -> set[int]:
    """Ids of the functions that are handed to compile() as losses."""
    given = [call.argument(1, "loss") for call in facts.method_calls("compile")]
    return {
        id(inner.of)
        for value in given
        for option in options(value)
        for inner in walk(option)
        if isinstance(inner, Defined) and isinstance(inner.of, FunctionFacts)
    }
