"""In `call()`, a tensor made in float32 is combined with the layer's input, which mixed precision casts to 16 bits.

## Why it matters
TensorFlow does not mix dtypes. `inputs + tf.constant([1.0])` works under float32 and raises under mixed
precision, in Keras 3 and Keras 2 alike: `cannot compute AddV2 as input #1(zero-based) was expected to be a half
tensor but is a float tensor`. `tf.image.crop_and_resize` always returns float32, and so does `tf.image.resize`
unless its method is "nearest". NumPy arrays and Python numbers take the dtype of the other operand and are
fine, but for a float, a list of floats or a float32 array that stands first in a function of TensorFlow: in a
graph `tf.maximum(0.0, inputs)` and `tf.where(mask, -1e4, inputs)` make it float32, and raise; `tf.maximum(inputs,
0.0)` does not. A function that is given floats alone, such as `tf.stack([0.5, 1.0])` or `tf.exp(2.0)`, returns float32
(TensorFlow 2.10, 2.15 and 2.21). In a graph the branches of `tf.cond` and `keras.ops.cond` have to give one dtype, and
`tf.while_loop`, `tf.scan` and `keras.ops.fori_loop` end with the dtype that they start with (TensorFlow 2.4 to 2.21,
Keras 3.15). A Python loop that carries float32 on raises in its second round. Between the layers of a functional model
of Keras 2 no layer casts what an operation of TensorFlow is given: `tf.concat([fine, tf.image.resize(coarse, size)],
axis=-1)` raises there as well. A distribution of TensorFlow Probability takes one dtype:
`tfd.Normal(mean, tf.ones(3))`, `tfd.kl_divergence(posterior, tfd.Normal(0.0, 1.0))` and
`tfd.Normal(0.0, 1.0).log_prob(inputs)` raise (0.23 and 0.25).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Noise(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Noise(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs), dtype=inputs.dtype)
```

## Versions
All. In Keras 3 a weight on the left of an operator (`self.w + tf.ones(4)`) and the functions of `keras.ops`
promote to float32 instead of raising; this rule does not report that, but the line where the float32 result meets the
layer's input. TensorFlow computes products of a bfloat16 and a float32 matrix (`@`, `tf.matmul`, `tf.tensordot`)
itself, in float32 (2.4 to 2.21): the rule is silent about them. On JAX and PyTorch operators promote as well:
where the program or its project names that backend (`KERAS_BACKEND`, `keras.json`, requirements without TensorFlow),
the rule is silent.

## Where users met it
tensorflow/tensorflow#33077, tensorflow/tensorflow#41614, tensorflow/tensorflow#38850,
huggingface/transformers#3320, huggingface/transformers#9571, keras-team/keras-cv#2102, google/automl#566.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import ALWAYS_FLOAT32
from mpdoctor.program.dtypes.library_results import default_of
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, known, walk
from mpdoctor.semantics.live.errors.dtype_error_causes import (
    has_a_reason_of_its_own,
    mismatch_in_call,
    was_given_float32_states,
)
from mpdoctor.semantics.live.errors.error_texts import evidence_of, place_of_failure
from mpdoctor.semantics.source.edits.casts import cast
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.met_operands import (
    cast_where_it_meets,
    dtype_of_expression,
    dtype_of_input,
    dtype_written,
    fix_by_dtype_of_input,
)
from mpdoctor.semantics.source.edits.updates import advice_for_float32, advice_for_update
from mpdoctor.semantics.source.layers.layer_variables import RAW
from mpdoctor.semantics.source.layers.weight_values import is_weight_decay
from mpdoctor.semantics.source.numbers.moving_averages import updates_a_variable
from mpdoctor.semantics.source.numbers.whole_numbers import is_product_of_sizes
from mpdoctor.semantics.source.operands.dtype_mismatches import DtypeMismatch, mismatches_in_functional_models
from mpdoctor.semantics.source.operands.float32_meetings import float32_meetings
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes, is_half, mixed_operands
from mpdoctor.semantics.source.operands.numbers_first import ALWAYS, COMMUTING, NumberFirst, numbers_before_half
from mpdoctor.semantics.source.operands.operand_words import (
    expression_text,
    float32_side,
    kind_of_half,
    pairs_that_meet,
    with_elements,
)
from mpdoctor.semantics.source.texts.syntax_trees import location_of
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
ONLY_IN_HALF = True
HELP_FOR_COUNT = (
    "Cast the other operand to float32, `tf.cast(…, tf.float32)`, and not this number: float16 ends at 65504, which is "
    "less than the pixels of a picture of 256×256."
)
BRANCHING = (
    *(f"tensorflow.{name}" for name in ("cond", "case", "switch_case", "while_loop", "scan", "foldl", "foldr")),
    *(f"keras.ops.{name}" for name in ("cond", "switch", "while_loop", "fori_loop")),
    "keras.backend.switch",
)
HELP_FOR_DECAY = (
    "Cast the weights to float32 before they are squared, `tf.cast(…, tf.float32)`: their sum of squares may be beyond "
    "float16's 65504."
)

HELP_FOR_UPDATE = (
    "Make this update outside of `call()`, in `train_step` or a callback, where variables are read in float32. "
    "`call()` reads them in 16 bits, in which what an update adds is soon rounded away."
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    meetings = list(float32_meetings(facts))
    raising = {(id(event), event.context.function) for event, *_ in meetings}
    for event, operands, wide, name in meetings:
        here = event.context.function
        if not any((id(part), here) in raising for part in walk(wide)):  # nothing comes of a line that raises
            yield _finding(facts, event, operands, wide, name)
    for met in numbers_before_half(facts):
        yield _finding_of_number(facts, met)
    if any(True for _ in facts.calls_of(*BRANCHING)):
        from mpdoctor.semantics.source.operands.graph_branches import branches_in_two_dtypes  # few programs have any

        yield from (_finding_of_branches(facts, *met) for met in branches_in_two_dtypes(facts))
    if any(isinstance(c.callee, Api) and c.callee.root == "tensorflow_probability" for c in facts.library_calls):
        from mpdoctor.semantics.source.operands.distribution_meetings import refused_by_distributions  # few have any

        yield from (Finding(*refused) for refused in refused_by_distributions(facts))
    found = {event.location for event, *_ in meetings}
    if any(event.context.loops for event, _ in mixed_operands(facts)):
        from mpdoctor.semantics.source.operands.later_rounds import refused_in_later_rounds  # few programs have any

        yield from (Finding(*refused) for refused in refused_in_later_rounds(facts, found))
    for mismatch in mismatches_in_functional_models(facts):
        if mismatch.event.location not in found:
            yield _finding_in_functional_model(facts, mismatch)


def _finding_in_functional_model(facts: SourceFacts, mismatch: DtypeMismatch) -> Finding:
    pairs = list(with_elements(pairs_that_meet(facts, mismatch.event)))
    dtype = dtype_written(pairs, lambda value: value is mismatch.half)
    text = next((text_at(facts, location_of(facts, node)) for value, node in pairs if value is mismatch.wide), "")
    return Finding(
        f"{f'`{text}`' if text else 'One tensor here'} is {mismatch.wide_dtype} and is combined with a "
        f"{mismatch.half_dtype} tensor of the functional model: this line raises under a mixed policy.",
        f"Cast it to the other's dtype: `tf.cast({text or '…'}, {dtype or 'x.dtype'})`.",
        mismatch.event.location,
        fix=safe_fix(f"Cast to `{dtype}`", cast_where_it_meets(facts, mismatch.wide, pairs, dtype)) if dtype else None,
    )


def _finding_of_branches(facts: SourceFacts, call: Call, wide: Value, half: Value, is_loop: bool) -> Finding:
    """The finding for branches or a loop of a graph that give a tensor in two dtypes."""
    text = expression_text(facts, wide)
    written = f"`{text}`" if text else "a tensor made here"
    problem = (
        f"`{call.method}` starts with {written}, which is float32, and goes on with the layer's 16-bit tensor"
        if is_loop
        else f"A branch of `{call.method}` gives {written}, which is float32, and another one the layer's 16-bit tensor"
    )
    return Finding(
        f"{problem}: a graph, which fit() builds, refuses two dtypes, and this line raises under a mixed policy.",
        _help(wide, text, dtype_of_input(facts, call, (half,)) or "x.dtype"),
        call.location,
    )


def _finding_of_number(facts: SourceFacts, met: NumberFirst) -> Finding:
    """The finding for a float that stands before a 16-bit tensor."""
    call, number, tensor, position = met
    place = argument_at(facts, call.location, position, "x")
    text, dtype = text_at(facts, place or number.location), dtype_of_input(facts, call, (tensor,))
    written = f"`{text}`" if text else "the number"
    value = known(number)
    is_float16 = "float16" in half_dtypes(facts, tensor, call.context)
    is_too_large = is_float16 and isinstance(value, float) and abs(value) > FLOAT16_LIMIT
    further = " Or give it second: then it takes the tensor's dtype." if call.method in COMMUTING else ""
    further += f" Take one below 65504 in size: {written} is infinite in float16." if is_too_large else ""
    edit = cast(facts, place, dtype) if place is not None and dtype and not is_too_large else None
    problem = (
        f"`{call.method}` makes {written} float32, whatever it meets"
        if call.method in ALWAYS
        else f"In a graph, which fit() builds, `{call.method}` makes {written} float32, because it stands before the "
        "layer's 16-bit tensor"
    )
    return Finding(
        f"{problem}: this line raises under a mixed policy.",
        f"Cast it to the tensor's dtype: `tf.cast({text or '…'}, {dtype or 'x.dtype'})`.{further}",
        call.location,
        fix=safe_fix(f"Cast to `{dtype}`", edit),
    )


def _finding(
    facts: SourceFacts, event: Call | Operation, operands: tuple[Value, ...], wide: Value, name: str
) -> Finding:
    """The finding for one line. `name`: the argument in whose place the float32 tensor stands where it is not given,
    else ""."""
    text, dtype = expression_text(facts, wide), dtype_of_input(facts, event, operands)
    side = f"`{name}`, where it is not given," if name else float32_side(facts, event, wide)
    if isinstance(wide, Call) and is_weight(wide):  # of `add_weight(…, autocast=False)`
        side = "A weight that is made without autocast"
    is_count = is_product_of_sizes(wide)
    owner = event.context.owner
    is_loss = owner is not None and owner.kind in ("loss", "metric")
    half = [operand for operand in operands if is_half(facts, operand, event.context)]
    if updates_a_variable(facts, event):
        help, fix = advice_for_update(facts, event, half)
    elif is_loss:
        help, fix = advice_for_float32(facts, event, half, "a loss or a metric has three digits in 16 bits.")
    else:
        said = dtype or dtype_of_expression(pairs_that_meet(facts, event), lambda v: is_half(facts, v, event.context))
        is_decay = any(map(is_weight_decay, operands))
        help = HELP_FOR_COUNT if is_count else HELP_FOR_DECAY if is_decay else _help(wide, text, said or "x.dtype")
        fix = fix_by_dtype_of_input(facts, event, operands, dtype) if dtype and not is_count and not is_decay else None
    whose = "a" if is_loss else "the layer's"
    return Finding(
        f"{side} is float32 and is combined with {whose} 16-bit {kind_of_half(facts, event, operands)}: this line "
        "raises under a mixed policy.",
        help,
        event.location,
        fix=fix,
    )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    mismatch = mismatch_in_call(failure)
    if mismatch is None or has_a_reason_of_its_own(failure):
        return
    tensors = [operand for operand in failure.operands if operand.kind == "tensor"]
    wide = next((o.name for o in tensors if o.dtype == "float32"), "")
    like = next((f"{o.name}.dtype" for o in tensors if o.dtype == mismatch.half), "self.compute_dtype")
    yield Finding(
        f"In {place_of_failure(failure)} {mismatch.words}: the layer's input is {mismatch.half} under its policy, and "
        + (f"`{wide}` is float32." if wide else "the tensor made on this line is float32."),
        HELP_FOR_UPDATE
        if ".assign" in failure.failing_line
        else f"Cast it, `tf.cast({wide}, {like})`, or make it in that dtype: `dtype={like}`."
        if wide
        else f"Make it in the input's dtype: `dtype={like}`, or `tf.cast(…, {like})`.",
        failure.location,
        layer=failure.layer,
        evidence={**evidence_of(failure), **({"told_by": "MP212"} if was_given_float32_states(failure) else {})},
    )


def _help(value: Value, text: str, dtype: str) -> str:
    if is_call_of(value, *RAW):
        return "Make it with `self.add_weight(…)`: Keras casts such a weight to the input's dtype and trains it."
    if isinstance(value, Call) and value.method == "cast" and text:
        return f"Cast to the input's dtype instead: `tf.cast(…, {dtype})`."
    if is_call_of(value, *ALWAYS_FLOAT32) or (isinstance(value, Call) and isinstance(value.callee, Call)):
        return f"It returns float32 for every input dtype: cast the result, `tf.cast(…, {dtype})`."
    makes_tensors = (
        isinstance(value, Call) and isinstance(value.callee, Api) and default_of(public_name(value.callee.name))
    )
    if not makes_tensors:  # it is computed from others, by a function or an operator that takes no dtype
        return f"Cast it to the input's dtype: `tf.cast({text or '…'}, {dtype})`."
    return f"Make it in the input's dtype: `dtype={dtype}`, or `tf.cast(…, {dtype})`."
