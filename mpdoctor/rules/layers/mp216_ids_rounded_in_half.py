"""A layer casts float ids to 16 bits before they reach an Embedding, which turns them into other ids.

## Why it matters
Between 2048 and 4096 float16 holds only every second integer, above that every fourth; bfloat16 skips integers
from 256 on. Id 5999 reaches the Embedding as 6000: the wrong row, or an index out of range (measured in Keras
3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10). A float Input that goes straight into the Embedding is not
rounded, and integers are never cast.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
ids = keras.Input((2,))
vectors = keras.layers.Embedding(6000, 8)(keras.layers.Reshape((2, 1))(ids))
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
ids = keras.Input((2,), dtype="int32")
vectors = keras.layers.Embedding(6000, 8)(keras.layers.Reshape((2, 1))(ids))
```

## Versions
All.

## Where users met it
keras-team/keras#15012 (the same rounding, of labels).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import EXACT
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.dtypes.array_dtypes import dtype_of_array
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import has_method, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts, Parameter
from mpdoctor.program.values import Collection, Value, walk
from mpdoctor.semantics.live.errors.error_texts import evidence_of
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.float_ids import (
    TakenIds,
    rounding_layer,
    rounding_layer_in_a_row,
    taken_from_input,
)
from mpdoctor.semantics.source.programs.data.fed_elements import Keys, inputs_of_training, part_at

SEVERITY = Severity.ERROR
FAILS_IN = ("training",)
CONFIRMED_LIVE = True
ONLY_IN_HALF = True
HELP = (
    'Make them integers from the start, in an input of their own: `keras.Input(…, dtype="int32")`. Keras never casts '
    "integers."
)
BEHIND_THE_LAST = r"= (?P<id>\d+) is not in \[0, \d+\)"
MOST_TERMS = 4
FILLED = (
    "numpy.zeros",
    "numpy.ones",
    "numpy.zeros_like",
    "numpy.ones_like",
)  # placeholders for data, whose values stay exact


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for call in facts.calls:
        if isinstance(call.callee, Call) and is_call_of(call.callee, "keras.layers.Embedding"):
            ids = call.argument(0, "inputs")
            yield from _finding(facts, call.callee, None if ids is None else rounding_layer(facts, ids))
            yield from _fed_as_floats(facts, call, call.callee, ids)
            yield from _given_to_own_layer(facts, call.callee, ids)
    for model in facts.calls_of("keras.Sequential"):
        made = layers_of_sequential(facts, model)
        for number, layer in enumerate(made):
            if is_call_of(layer, "keras.layers.Embedding") and isinstance(layer, Call):
                yield from _finding(facts, layer, rounding_layer_in_a_row(facts, made[:number]))


def in_model(model: ModelFacts) -> Iterator[Finding]:
    for layer in model.layers:
        rows = layer.settings.rows
        dtype = next((input_dtype for input_dtype in layer.input_dtypes if input_dtype in EXACT), None)
        if layer.class_name == "Embedding" and rows is not None and dtype is not None and rows > EXACT[dtype]:
            yield Finding(
                f"The ids reach {layer.path} (Embedding) in {dtype}, which is exact only up to {EXACT[dtype]}: of its "
                f"{rows} ids, those above are rounded to other ids.",
                HELP,
                layer.made_at,
                layer=layer.path,
                evidence={"input_dtype": dtype, "rows": rows},
            )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    """An id that was rounded to one behind the last: TensorFlow raises on a CPU."""
    dtype = next((dtype for _, dtype in failure.layer_inputs if dtype in EXACT), None)
    match = re.search(BEHIND_THE_LAST, failure.message)
    if failure.layer_class != "Embedding" or dtype is None or match is None or int(match["id"]) <= EXACT[dtype]:
        return
    yield Finding(
        f"The ids reach {failure.layer} (Embedding) in {dtype}, which is exact only up to {EXACT[dtype]}: larger ones "
        f"are rounded, as to {match['id']}, for which it has no row.",
        HELP,
        failure.layer_made_at or failure.location,
        layer=failure.layer,
        evidence={**evidence_of(failure), "input_dtype": dtype},
    )


def _finding(facts: SourceFacts, embedding: Call, rounding: Call | None, made: Call | None = None) -> Iterator[Finding]:
    """The finding for an Embedding whose ids a layer (`rounding`) casts to 16 bits, if it has more rows than these
    count. `made`: the user's layer that holds the Embedding."""
    rows = _rows(embedding, made)
    if rounding is None or rows is None:
        return
    dtype = half_dtype_of_layer(facts, rounding)
    if dtype is not None and rows > EXACT[dtype]:
        name = layer_name(rounding) or f"`{rounding.method}`"
        yield Finding(
            f"{name} casts the float ids to {dtype}, which is exact only up to {EXACT[dtype]}: of the "
            f"{rows} ids of the Embedding {'after' if made is None else 'in'} it, those above are rounded to other "
            "ids.",
            HELP,
            rounding.location,
        )


def _rows(embedding: Call, made: Call | None) -> int | None:
    """The number of ids of an Embedding: as written, or as passed to the layer that holds the Embedding."""
    rows = embedding.argument(0, "input_dim")
    if isinstance(rows, Parameter) and made is not None and rows.function is not None:
        of_init = rows.function.name == "__init__" and has_method(made, rows.function)
        rows = (made.argument(rows.index - 1, rows.name) or rows.default) if of_init else None
    return _smallest(rows)


def _smallest(rows: Value | None, depth: int = 0) -> int | None:
    """The least number of rows that a program may ask for, where its command line says nothing: `args.users + 1`."""
    if isinstance(rows, Operation) and rows.operator == "+" and depth < MOST_TERMS:
        terms = [_smallest(term, depth + 1) for term in rows.operands]
        return sum(term for term in terms if term is not None) if None not in terms else None
    numbers = numbers_from_value(rows)
    return int(min(numbers)) if numbers and not isinstance(rows, Parameter) else None


def _given_to_own_layer(facts: SourceFacts, embedding: Call, ids: Value | None) -> Iterator[Finding]:
    """Ids that a user's layer or model takes out of what it is given, which Keras casts as for any other layer."""
    taken = taken_from_input(facts, ids)
    method = taken.parameter.function if taken is not None else None
    if taken is None or method is None or method.owner is None or not method.owner.is_layer:
        return
    rounding = {
        made: layer
        for call in facts.calls
        for made in [call.callee]
        if isinstance(made, Call) and has_method(made, method)
        for layer in [_rounding_before(facts, call, made, taken)]
        if layer is not None
    }
    for made, layer in rounding.items():
        if not embedding.context.callers or made.location in embedding.context.callers:  # the one that this layer made
            yield from _finding(facts, embedding, layer, made)


def _rounding_before(facts: SourceFacts, call: Call, made: Call, taken: TakenIds) -> Call | None:
    """The layer that casts the ids which a call of the user's layer `made` is given: itself, or one before it."""
    if not taken.keys and taken.parameter.index == 1:
        return rounding_layer(facts, call)
    is_cast = taken.parameter.index == 1 or facts.keras.is_keras3
    given = part_at(call.argument(taken.parameter.index - 1, taken.parameter.name), taken.keys)
    casts = is_cast and half_dtype_of_layer(facts, made) is not None
    return rounding_layer(facts, given[0], made) if len(given) == 1 and casts else None


def _fed_as_floats(facts: SourceFacts, call: Call, embedding: Call, ids: Value | None) -> Iterator[Finding]:
    """Ids that a user's model takes out of its first input, where `fit()` is given arrays of floats."""
    taken = taken_from_input(facts, ids)
    rows = _smallest(embedding.argument(0, "input_dim"))
    method = taken.parameter.function if taken is not None and taken.parameter.index == 1 else None
    if taken is None or method is None or method.owner is None or method.owner.kind != "model" or rows is None:
        return
    fits = [
        fit
        for fit in facts.method_calls("fit", "train_on_batch")
        if fit.receiver is not None and has_method(fit.receiver, method)
    ]
    model = _only_making(facts, method)
    dtype = half_dtype_of_layer(facts, model) if model is not None else None
    if model is None or dtype is None or rows <= EXACT[dtype]:
        return
    if not fits or not all(_gives_float_array(facts, fit, taken.keys) for fit in fits):
        return
    yield Finding(
        f"`{layer_name(model)}` casts the float array given to `{fits[0].method}` to {dtype}, which is exact only "
        f"up to {EXACT[dtype]}: of the {rows} ids of this Embedding, those above are rounded to other ids.",
        'Pass the ids as integers, `x.astype("int32")`, in an input separate from float features. Keras never '
        "casts integers.",
        call.location,
    )


def _only_making(facts: SourceFacts, method: FunctionFacts) -> Call | None:
    """The call that makes the model whose method this is; None where the program makes none or several."""
    makings = [made for made in facts.makings_of(method.owner) if has_method(made, method)] if method.owner else []
    return makings[0] if len(makings) == 1 else None


def _gives_float_array(facts: SourceFacts, fit: Call, keys: Keys) -> bool:
    """Whether a model is certainly given floats at these keys that are not all alike."""
    given = [part for whole in inputs_of_training(facts, fit) for part in _array_at(whole, keys)]
    if not given or any(is_call_of(part, *FILLED) for data in given for part in walk(data)):
        return False
    dtypes = {
        facts.dtype_of(array) or dtype_of_array(array, lambda named: dtype_named(named, facts.keras)) for array in given
    }
    return dtypes <= {"float32", "float64"}


def _array_at(whole: Value, keys: Keys) -> tuple[Value | None, ...]:
    """The array at these keys of a structure; (None,) where that is not certain."""
    if keys and not isinstance(whole, Collection):
        return (None,)
    return part_at(whole, keys) or (None,)
