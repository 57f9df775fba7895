"""A loss combines a float32 constant or label with a 16-bit prediction.

## Why it matters
TensorFlow does not mix dtypes. `y - model(x)` in a train_step, or `tf.constant(2.0) * tf.square(y - p)` in a
loss for Keras 2, works under float32 and raises under mixed precision: `Input 'y' of 'Sub' Op has type float16
that does not match type float32 of argument 'x'`. If the last layer is 16-bit, Keras 2 passes 16-bit labels and
predictions to a loss in compile(); Keras 3 passes float32. In a custom loop the labels have the dtype of the
dataset, in both. Python numbers and NumPy arrays take the dtype of the other operand, but for a float that stands
first in a function of TensorFlow: in a graph `tf.maximum(0.0, 1.0 - p)` makes it float32, and raises.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")


class Regression(keras.Model):
    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(1)

    def call(self, x):
        return self.head(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - self(x, training=True)))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")


class Regression(keras.Model):
    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(1)

    def call(self, x):
        return self.head(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            prediction = tf.cast(self(x, training=True), tf.float32)
            loss = tf.reduce_mean(tf.square(y - prediction))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}
```

## Versions
All; in Keras 3 in custom loops and train_steps, and in losses for compile() that cast one side to 16 bits by name.

## Where users met it
tensorflow/tensorflow#39982, qubvel/segmentation_models#509, intel/ipex-llm#7020.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location, holds
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Collection, Value, is_api, walk
from mpdoctor.semantics.live.errors.dtype_errors import mismatch_of_precisions
from mpdoctor.semantics.live.errors.error_texts import evidence_of
from mpdoctor.semantics.live.errors.failing_parts import place_of_part
from mpdoctor.semantics.source.edits.casts import NAMES_OF_FIRST, cast, cast_to_float32_instead
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.statements import name_assigned
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.operands.combined_values import casts_to_half
from mpdoctor.semantics.source.operands.dtype_mismatches import DtypeMismatch, dtype_mismatches
from mpdoctor.semantics.source.programs.losses_and_metrics import DATA
from mpdoctor.semantics.source.texts.syntax_trees import location_of, nodes_at
from mpdoctor.semantics.source.texts.written import argument_at, name_at
from mpdoctor.semantics.wording import expression_at, listed, quoted, text_at

SEVERITY = Severity.ERROR
ONLY_IN_HALF = True
JOINS = ("tensorflow.concat", "tensorflow.stack", "tensorflow.add_n", "keras.backend.concatenate")
FIXES = ("safe",)
FAILS_IN = ("model", "training")
EXPLAINS = {"MP202": "line", "MP504": "line"}
MOST_NAMED = 4
OF_ONE_TENSOR = (
    *("reduce_mean", "reduce_sum", "mean", "sum"),
    *("log", "log1p", "exp", "square", "sqrt", "pow", "sigmoid", "softmax", "log_sigmoid", "log_softmax"),
)
LAST_LAYER = 'Give the model\'s last layer `dtype="float32"`: the loss then gets float32 predictions.'


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for mismatch in dtype_mismatches(facts):
        if mismatch.in_metric:
            continue  # MP508
        yield Finding(
            f"{_wide_side(facts, mismatch)}, and is combined with {_half_side(facts, mismatch)}: this line raises.",
            _help_in_source(facts, mismatch),
            mismatch.event.location,
            fix=_fix(facts, mismatch),
        )


def _wide_side(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    """The other operand and its dtype in words, as the beginning of a sentence."""
    side = quoted(facts, mismatch.wide.location, mismatch.event.location) or "The other side"
    if mismatch.wide_dtype == DATA:
        return f"The value from the dataset is not {mismatch.half_dtype}"
    if is_number(mismatch.wide) or isinstance(mismatch.wide, Collection) or is_array(mismatch.wide):
        return (
            f"In a graph, which fit() and tf.function build, {side} is {mismatch.wide_dtype}, because it stands first"
        )
    return f"{side} is {mismatch.wide_dtype}, not {mismatch.half_dtype}"


def _half_side(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    """The 16-bit operand in words: the prediction, or the labels, which Keras 2 hands to a loss in the prediction's
    dtype."""
    if casts_to_half(facts, mismatch.half):
        side = quoted(facts, mismatch.half.location, mismatch.event.location) or "a tensor"
        return f"{side}, which is cast to {mismatch.half_dtype} by name"
    roles = precision_of(facts).roles
    given = [
        parameter
        for parameter in walk(mismatch.half)
        if isinstance(parameter, Parameter) and id(parameter.function) in roles
    ]
    if given and all(parameter.function and parameter.index == parameter.function.first_given for parameter in given):
        return f"the labels here, which Keras casts to the prediction's {mismatch.half_dtype}"
    spelled = _spelled(facts, mismatch)
    if not spelled:
        return f"the {mismatch.half_dtype} prediction here"
    return f"`{spelled}`, which is {mismatch.half_dtype} here"


def _fix(facts: SourceFacts, mismatch: DtypeMismatch) -> Fix | None:
    """The edit that casts the prediction where it is combined with the other operand, or names float32 in the cast
    that made 16 bits of it."""
    casts = _own_casts(facts, mismatch)
    if casts:
        return safe_fix("Cast to float32", cast_to_float32_instead(facts, (call.location for call in casts)))
    name, side = _name_of(facts, mismatch), _half_operand(facts, mismatch)
    place = name_at(facts, mismatch.event.location, name) if name else None
    if (
        place is None and side is not None and _is_spelled(facts, mismatch, side)
    ):  # its name may be in the other operand as well
        place = location_of(facts, side)
    if place is None and holds(mismatch.event.location, mismatch.half.location):
        place = mismatch.half.location
    inner = _given_to_function(facts, mismatch.half) if place == mismatch.half.location else None
    if inner is not None:
        return safe_fix(f"Cast `{text_at(facts, inner)}` to float32", cast(facts, inner))
    spelled = _spelled(facts, mismatch)
    title = f"Cast `{spelled}` to float32" if spelled else "Cast the prediction to float32"
    return safe_fix(title, cast(facts, place)) if place is not None else None


def _to_cast(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    """The value that the advice casts: for a logarithm its argument."""
    on_the_line = holds(mismatch.event.location, mismatch.half.location)
    inner = _given_to_function(facts, mismatch.half) if on_the_line else None
    return (text_at(facts, inner) if inner is not None else "") or _spelled(facts, mismatch)


def _given_to_function(facts: SourceFacts, half: Value) -> Location | None:
    """The place of the one tensor whose mean or logarithm this value is: a result in 16 bits gains no precision from a
    cast. None for other values."""
    if not isinstance(half, Call) or half.method not in OF_ONE_TENSOR:
        return None
    place = argument_at(facts, half.location, 0, *NAMES_OF_FIRST)
    written = expression_at(facts, place) if place is not None else None
    return None if isinstance(written, (ast.List, ast.Tuple)) else place


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    mismatch = mismatch_of_precisions(failure)
    if mismatch is None:
        return
    part = failure.part
    if failure.inside == "loss" and part is not None and not part.own:
        where = f"In the loss `{part.called}`, which is not your code,"
    elif failure.inside == "loss":
        where = "In the loss"
    elif failure.inside in ("", "step") and failure.under_tape and failure.layer is None:
        where = "Between the model and its gradients, where the loss is computed,"  # no layer was being called
    else:
        return
    yield Finding(
        f"{where} {mismatch.words}.",
        _help_for_line(failure, mismatch.half) if part is None or part.own else LAST_LAYER,
        place_of_part(failure),
        evidence=evidence_of(failure),
    )


def _is_join(mismatch: DtypeMismatch) -> bool:
    """Whether tensors are joined, not computed with: decoded boxes, or the batches of a loop, are no loss."""
    return isinstance(mismatch.event, Call) and is_api(mismatch.event.callee, *JOINS)


def _own_casts(facts: SourceFacts, mismatch: DtypeMismatch) -> list[Call]:
    """The casts by name in the function of the line itself: in another one they may be for others, too."""
    casts, function = casts_to_half(facts, mismatch.half), mismatch.event.context.function
    return casts if all(call.context.function is function for call in casts) else []


def _is_spelled(facts: SourceFacts, mismatch: DtypeMismatch, side: ast.expr) -> bool:
    """Whether the 16-bit operand can be called by its text: it is a name, or a call of what casts it."""
    return isinstance(side, (ast.Name, ast.Attribute)) or bool(casts_to_half(facts, mismatch.half))


def _help_in_source(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    if _own_casts(facts, mismatch):
        return _float32_instead_of(mismatch.half_dtype)
    return (_help_for_join if _is_join(mismatch) else _help)(_to_cast(facts, mismatch))


def _float32_instead_of(half: str) -> str:
    return f"Cast to float32 instead of {half}: a loss is best computed in float32."


def _help_for_join(name: str | None) -> str:
    what = f"`{name}`" if name else "the 16-bit tensor"
    return f"Cast {what} first, `tf.cast({name or '…'}, tf.float32)`: only tensors of one dtype can be joined."


def _help(name: str | None) -> str:
    if not name:
        return "Cast the prediction first, `tf.cast(…, tf.float32)`. A loss is best computed in float32."
    return f"Cast `{name}` first, `tf.cast({name}, tf.float32)`. A loss is best computed in float32."


def _help_for_line(failure: FailureFacts, half: str) -> str:
    """The help text, with the names on the line: the prediction, or labels that the program has cast to 16 bits."""
    of_half = (operand for operand in failure.operands if operand.dtype == half and operand.kind == "tensor")
    names = list(dict.fromkeys(operand.name for operand in of_half))
    if len(names) > 1:  # after a cast of only one of them the dtypes would still differ
        shown = listed([f"`{name}`" for name in names], MOST_NAMED)
        return f"Cast {shown} first, each with `tf.cast(…, tf.float32)`. A loss is best computed in float32."
    if names:
        return _help(names[0])
    if re.search(rf"\bcast\(.*{half}", failure.failing_line):
        return _float32_instead_of(half)
    return _help(None)


def _name_of(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    """The name of the 16-bit operand: a parameter such as `y_pred`, or its text on the line; "" where it has none."""
    if isinstance(mismatch.half, Parameter):
        return mismatch.half.name
    if isinstance(expression_at(facts, mismatch.event.location), ast.Call):
        return name_assigned(facts, mismatch.half.location)
    side = _half_operand(facts, mismatch)
    return ast.unparse(side) if side is not None and _is_spelled(facts, mismatch, side) else ""


def _spelled(facts: SourceFacts, mismatch: DtypeMismatch) -> str:
    """The name of the 16-bit operand, else its text where it stands on the line itself."""
    name = _name_of(facts, mismatch)
    on_the_line = holds(mismatch.event.location, mismatch.half.location)
    return name or (text_at(facts, mismatch.half.location) if on_the_line else "")


def _half_operand(facts: SourceFacts, mismatch: DtypeMismatch) -> ast.expr | None:
    """The 16-bit operand of `left * right`."""
    event = mismatch.event
    if event.location.path != facts.path or not isinstance(event, Operation) or len(event.operands) != 2:
        return None
    written = next((node for node in nodes_at(facts, event.location) if isinstance(node, ast.BinOp)), None)
    if written is None:
        return None
    return written.left if event.operands[0] is mismatch.half else written.right
