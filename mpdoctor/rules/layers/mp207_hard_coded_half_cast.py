"""A layer or loss casts to a 16-bit dtype by name, so it works under one policy only.

## Why it matters
Under `mixed_float16` the cast does what `inputs.dtype` would do. With mixed precision switched off, or under
`mixed_bfloat16`, the same line raises where its result is combined with another tensor (`expected to be a float
tensor but is a half tensor`; Keras 3.15, tf_keras 2.21). Where both tensors are cast by name, nothing raises: a model
in float32 then computes that, or its loss, with float16's three digits, and nothing says so.

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
well, and so is a cast in a training step whose result meets an output of the model, if the program can be told
to set another policy. Not reported, because they are deliberate: a cast under an `if` about dtypes, a cast in a
layer that fixes its own dtype, and a cast whose result is cast back.

## Where users met it
leondgarse/keras_cv_attention_models#122, keras-team/keras-core#815.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF, HALF_POLICIES, SIXTEEN_BITS
from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.dtypes.result_dtypes import DEFAULTS
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named, policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import policies_set_by
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Value, agreed, options, walk
from mpdoctor.semantics.source.edits.casts import cast_to_dtype_instead, cast_to_float32_instead
from mpdoctor.semantics.source.edits.expressions import argument_replaced, safe_fix, unsafe_fix
from mpdoctor.semantics.source.layers.call_dtypes import NOT_CALLED, policies_of_instances
from mpdoctor.semantics.source.layers.model_layers import layer_name, policies_written
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.loops.gradients import is_tape
from mpdoctor.semantics.source.operands.casts import casts, is_cast, is_cast_to
from mpdoctor.semantics.source.operands.combined_values import (
    combined_ids,
    deciding_parts,
    meets_what_no_cast_decides,
    parts_that_meet_float32,
)
from mpdoctor.semantics.source.operands.mixed_operands import may_raise, mixed_operands
from mpdoctor.semantics.source.programs.own_losses import (
    ids_of_loss_functions,
    name_of_predictions,
    runs_in_a_loss,
    stands_in_a_loss,
)
from mpdoctor.semantics.source.programs.running_functions import method_around, surrounding
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.WARNING
FIXES = ("safe", "unsafe")
EXPLAINS = {"MP202": "line"}
MAKERS = tuple(name for name, (_, default) in DEFAULTS.items() if default == "float32" or default == "<first>")
SETTING_UP = ("__init__", "build")
HELP_IN_STEP = (
    "Cast to the `dtype` of the tensor that it meets; or cast the model's output to float32 first, and this too, which "
    "is best for a loss."
)
ORDINARY = ("training", "mask", "sample_weight")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    losses = ids_of_loss_functions(facts)
    casts_by_name = list(_casts_by_name(facts, losses))
    in_vain = parts_that_meet_float32(facts) if casts_by_name else set()
    for call, dtype, given, is_loss in casts_by_name:
        if id(call) in in_vain:
            continue
        together = [
            cast for cast, *_, in_loss in casts_by_name if in_loss and cast.context.function is call.context.function
        ]
        in_helper = is_loss and not stands_in_a_loss(facts, call, losses)
        fix = None if in_helper else _fix_in_loss(facts, together, losses) if is_loss else _fix(facts, call)
        instead = _help(facts, call, dtype, given, losses, is_loss=is_loss)
        yield _finding(dtype, is_cast(call), instead, call.location, fix, meets_what_no_cast_decides(facts, call))
    yield from _findings_in_steps(facts, {call.location for call, *_ in casts_by_name})


def _findings_in_steps(facts: SourceFacts, reported: set[Location]) -> Iterator[Finding]:
    """A finding for each cast at a place that has none yet: a loss that is followed from each of its calls holds the
    same cast many times."""
    met = {call.location: dtype for call, dtype in _casts_met_in_steps(facts)}
    for place, dtype in met.items():
        if place not in reported:
            yield _finding(dtype, of_cast=True, instead=HELP_IN_STEP, location=place, fix=None, raises=True)


def _casts_by_name(facts: SourceFacts, losses: set[int]) -> Iterator[tuple[Call, str, Value, bool]]:
    """(call, dtype, the value that names it, whether it is in a loss) for each call that casts or makes a tensor by
    name."""
    for call, dtype, given in (*_casts(facts), *_tensors_made(facts)):
        if dtype not in HALF or _is_of_a_tensor(given) or _is_conditional(call.context):
            continue
        is_loss = runs_in_a_loss(facts, call.context, losses)
        if not (is_loss and is_cast(call)) and not _is_in_a_layer_of_any_dtype(facts, call):
            continue
        if not is_cast_to(facts, call, (AUTOCAST, "float32", "float64", "int32", "int64")):
            yield call, dtype, given, is_loss


def _casts_met_in_steps(facts: SourceFacts) -> Iterator[tuple[Call, str]]:
    """The casts by name, under a tape, of what meets an output of the model there, which follows a policy that the
    program can be told to set or not."""
    by_id = {id(call): (call, dtype) for call, dtype in _unconditional_casts(facts)}
    if by_id and _can_be_switched(facts):
        for met in mixed_operands(facts):
            if _runs_under_a_tape(met[0].context) and may_raise(facts, met):
                beside = _cast_beside_an_output(facts, met[0].context, met[1])
                yield from (by_id[id(value)] for value in beside if id(value) in by_id)


def _unconditional_casts(facts: SourceFacts) -> Iterator[tuple[Call, str]]:
    for call, dtype, given in _casts(facts):
        if dtype in HALF and not _is_of_a_tensor(given) and not _is_conditional(call.context):
            yield call, dtype


def _runs_under_a_tape(context: Context) -> bool:
    return any(map(is_tape, context.withs)) and not _is_conditional(context)


def _cast_beside_an_output(facts: SourceFacts, context: Context, operands: tuple[Value, ...]) -> Iterator[Value]:
    """The values that give one operand its 16 bits by name, where another operand has them by the policy."""
    precision = precision_of(facts)
    behind = {operand: deciding_parts(operand) for operand in operands if precision.half(operand, context)}
    by_name = [parts for parts in behind.values() if any(facts.dtype_of(part) in HALF for part in parts)]
    if len(by_name) < len(behind) and not precision.runs_in_call(context):
        yield from (part for parts in by_name for part in parts)


def _can_be_switched(facts: SourceFacts) -> bool:
    """Whether the program sets its 16-bit policy on one path only, or by an argument, and gives none to layers."""
    layers = [call for call in facts.calls if layer_name(call) is not None or call.method == "__init__"]
    given = {name for layer in layers for name in policies_named(layer.keyword("dtype"))}
    return given.isdisjoint(SIXTEEN_BITS) and any(map(_sets_one_of_several, facts.policy_calls))


def _sets_one_of_several(call: Call) -> bool:
    is_certain = len(policies_written(call)) == 1 and all(branch.only for branch in call.context.branches)
    return not is_certain and not set(HALF_POLICIES).isdisjoint(policies_set_by(call))


def _casts(facts: SourceFacts) -> Iterator[tuple[Call, str, Value]]:
    for call, dtype in casts(facts):
        given = call.argument(1, "dtype")
        if given is not None:
            yield call, dtype, given


def _tensors_made(facts: SourceFacts) -> Iterator[tuple[Call, str, Value]]:
    """`tf.ones((4, 4), tf.float16)`, where it is combined with another tensor at once. Not a state that is passed to a
    layer: that may have to be float16."""
    for call in facts.calls_of(*MAKERS):
        given = call.argument(_dtype_position(call), "dtype")
        dtype = dtype_named(given, facts.keras) if given is not None else None
        if given is not None and dtype in HALF and id(call) in combined_ids(facts):
            yield call, dtype, given


def _dtype_position(call: Call) -> int | None:
    return DEFAULTS[call.callee.name][0] if isinstance(call.callee, Api) and call.callee.name in DEFAULTS else None


def _fix(facts: SourceFacts, call: Call) -> Fix | None:
    """The edit that writes the layer's compute dtype, which under this policy equals the dtype named."""
    function = call.context.function
    while function is not None and function.owner is None:
        function = function.enclosing
    if function is None or not function.self_name:
        return None
    dtype = f"{function.self_name}.compute_dtype"
    position = 1 if is_cast(call) else _dtype_position(call)
    edit = argument_replaced(facts, call.location, "dtype", position, dtype) if position is not None else None
    return safe_fix(f"{'Cast to' if is_cast(call) else 'Make it in'} `{dtype}`", edit)


def _fix_in_loss(facts: SourceFacts, together: list[Call], losses: set[int]) -> Fix | None:
    """The edits that make all casts of the loss float32, since with only one of them the dtypes would not match; where
    they meet predictions that are 16-bit by the policy, those that ask these for their dtype."""
    places = [call.location for call in together]
    if not any(meets_what_no_cast_decides(facts, call) for call in together):
        return unsafe_fix("Cast to float32", cast_to_float32_instead(facts, places))
    name = agreed(name_of_predictions(facts, call, losses) for call in together)
    cast = [value for call in together for value in options(call.argument(0, "x")) if isinstance(value, Parameter)]
    if not name or name in (parameter.name for parameter in cast):
        return None
    return safe_fix(f"Cast to `{name}.dtype`", cast_to_dtype_instead(facts, places, f"{name}.dtype"))


def _finding(dtype: str, of_cast: bool, instead: str, location: Location, fix: Fix | None, raises: bool) -> Finding:
    other = "bfloat16" if dtype == "float16" else "float16"
    return Finding(
        f"This {'cast' if of_cast else 'tensor'} names {dtype}: "
        + (
            f"it works under one policy only, and raises as soon as the model runs in float32 or {other}."
            if raises
            else f"where the model runs in float32 or {other}, this is still computed in {dtype}."
        ),
        instead,
        location,
        fix=fix,
    )


def _help(facts: SourceFacts, call: Call, dtype: str, given: Value, losses: set[int], *, is_loss: bool) -> str:
    text = text_at(facts, given.location) or dtype
    if is_loss:
        predictions = name_of_predictions(facts, call, losses)
        other = f", `{predictions}.dtype`" if predictions else ""
        return (
            f"Cast to the dtype of the other operand{other} instead of `{text}`, or to float32, which is best for a "
            "loss."
        )
    method = method_around(facts, call.context)
    own = f"{method.self_name or 'self'}.compute_dtype" if method is not None else "self.compute_dtype"
    made = "Cast to" if is_cast(call) else "Make it in"
    return f"{made} the dtype in which the layer computes: `{own}` instead of `{text}`."


def _is_in_a_layer_of_any_dtype(facts: SourceFacts, call: Call) -> bool:
    """Whether it runs in the `call()` of a user's layer that follows the global policy, or makes a tensor for it."""
    method = method_around(facts, call.context)
    owner = None if method is None else method.owner
    if method is None or owner is None or not owner.is_layer:
        return False
    if method.name in NOT_CALLED and (method.name not in SETTING_UP or is_cast(call)):
        return False
    is_helper = method not in surrounding(facts, call.context.function)
    if is_helper and id(call) not in combined_ids(facts):
        return False  # a mask, say, that is handed on to a layer which casts it
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
