"""A library's layer raises on the 16-bit input that it gets under the mixed policy.

## Why it matters
The code that raises is not yours, so there is no line in it for you to change: `inputs + tf.constant(1.0)`, an
operation without a 16-bit kernel, or the float32 signature of a SavedModel inside a package's layer stops the
whole program under a mixed policy. A SavedModel's signature that is called with 16-bit values runs, but its
gradient raises later, outside any layer. The finding still names the layer: `TFSMLayer`, hub's KerasLayer
(tf_keras), or your own layer around one. With `dtype="float32"` the layer computes in float32: Keras casts its
input, and the next layer casts its output back. Where the same call could be repeated in float32, that was
tried, and the report says so.

Four of Keras 3's own layers do so in training: `RandomErasing`, `RandomGaussianBlur`, `RandomElasticTransform` and
`CutMix` count positions in float16, and `Dataset.map` and `fit()` raise `Unsupported dtype19 for Range` (3.10, 3.12
and 3.15); `CutMix` refuses bfloat16 as well. `Normalization().adapt(…)` takes an array there, but raises for every
`tf.data.Dataset`, in both 16-bit dtypes. The source shows them.

## Flagged
```python
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((32, 32, 3))
erased = keras.layers.RandomErasing()(inputs)
hidden = keras.layers.GlobalAveragePooling2D()(keras.layers.Conv2D(8, 3)(erased))
model = keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(hidden))
model.compile("adam", "mse")
model.fit(np.random.rand(64, 32, 32, 3), np.random.rand(64, 1))
```

## Fixed
```python
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((32, 32, 3))
erased = keras.layers.RandomErasing(dtype="float32")(inputs)
hidden = keras.layers.GlobalAveragePooling2D()(keras.layers.Conv2D(8, 3)(erased))
model = keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(hidden))
model.compile("adam", "mse")
model.fit(np.random.rand(64, 32, 32, 3), np.random.rand(64, 1))
```

## Versions
All. Layers that augment pictures, and `Normalization`: Keras 3.

## Where users met it
tensorflow/hub#748, tensorflow/hub#854, keras-team/keras-cv#734.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts, PartFacts
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.refused_augmentation import OF_BATCHES, REFUSED
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.live.errors.dtype_errors import (
    half_added_to_float32,
    half_given_for_float32,
    mismatch_of_precisions,
)
from mpdoctor.semantics.live.errors.error_texts import evidence_of, headline_from_failure, place_of_failure
from mpdoctor.semantics.live.errors.failing_parts import named_part, place_of_part
from mpdoctor.semantics.live.refusing_layers import (
    computing_in_float32,
    gradient_of_saved_function,
    half_given_to_signature,
    refuses_half,
    uncast_variable,
)
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.operands.adapted_to_datasets import adapted_to_datasets
from mpdoctor.semantics.source.operands.augmentation_in_graphs import graph_of

SEVERITY = Severity.ERROR
FIXES = ("safe",)
ONLY_IN_HALF = True
FAILS_IN = ("model", "training")
EXPLAINS = {"MP218": "line", "MP509": "line"}
NORMALIZATION = "keras.layers.Normalization"
PARTS = ("constraint", "regularizer")
MADE, MADE_UNDER = "made_class", "made_under"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.keras.is_keras3 or not facts.shows_mixed_precision:
        return
    for name, refused in REFUSED.items():
        for layer in facts.calls_of(f"keras.layers.{name}"):
            half = half_dtype_of_layer(facts, layer)
            if half in refused and (graph := graph_of(facts, layer, name == OF_BATCHES)):
                yield Finding(
                    f"{name} computes in {half}, and some of what it does has no {half} form in a graph: "
                    f"`{graph}` raises.",
                    'Give it `dtype="float32"`; the next layer casts its output.',
                    layer.location,
                    fix=safe_fix('Give it dtype="float32"', in_float32(facts, layer)),
                )
    for adapting, layer in adapted_to_datasets(facts, NORMALIZATION):
        if (half := half_dtype_of_layer(facts, layer)) is not None:
            yield Finding(
                f"Normalization computes in {half}, and Keras 3 adds a dataset's {half} means to float32 ones: this "
                "line raises.",
                'Make the Normalization with `dtype="float32"`; the next layer casts its output.',
                adapting.location,
                fix=safe_fix('Give it dtype="float32"', in_float32(facts, layer)),
            )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if refuses_half(failure):
        variable = uncast_variable(failure)
        yield _finding_of_layer(failure) if variable is None else _finding_of_variable(failure, variable)
    elif _is_of_saved_model(failure):
        yield from _saved_model(failure)
    elif (signature := half_given_to_signature(failure)) is not None:
        yield _finding_of_signature(failure, signature)
    elif (part := failure.part) is not None and part.kind in PARTS and not part.own and _is_of_precision(failure):
        yield _finding_of_part(failure, part)


def _finding_of_layer(failure: FailureFacts) -> Finding:
    half = failure.layer_dtype or "16-bit"
    place, part = place_of_failure(failure), failure.part
    inside = f"{named_part(part)} of {place}" if part is not None and part.kind in PARTS else place
    tried = ", and none in float32 (tried)" if failure.ran_in_float32 else ""
    return Finding(
        f"{capitalized(inside)}, which is not your code, raises an error on {half} input{tried}: "
        f"{headline_from_failure(failure)}",
        computing_in_float32(failure),
        failure.layer_made_at or failure.location,
        layer=failure.layer,
        evidence={**evidence_of(failure), **_class_made(failure)},
    )


def _class_made(failure: FailureFacts) -> dict[str, object]:
    """What an edit needs, as evidence, where the program's own line makes the layer: its class, or, where that takes no
    dtype, the policy that is to be set again behind that line."""
    if failure.layer_made_at is None or failure.layer_made_by:
        return {}
    if failure.layer_takes_dtype is not False:
        return {MADE: failure.layer_class}
    return {MADE_UNDER: f"mixed_{failure.layer_dtype}"} if failure.layer_dtype in HALF else {}


def _finding_of_variable(failure: FailureFacts, variable: str) -> Finding:
    """The finding where the layer is right, but its input is a tf.Variable, which Keras 2 does not cast."""
    return Finding(
        f"{capitalized(place_of_failure(failure))} is given `{variable}`, a float32 tf.Variable. Keras 2 casts the "
        f"tensors that a layer is given, but not variables: {headline_from_failure(failure)}",
        f"Pass it as a tensor, `tf.identity({variable})`: Keras casts that, and the gradient still reaches the "
        "variable.",
        failure.location,
        layer=failure.layer,
        evidence=evidence_of(failure),
    )


def _saved_model(failure: FailureFacts) -> Iterator[Finding]:
    """The finding where a layer around a SavedModel passes its 16-bit input on and only the gradient raises."""
    part, half = failure.part, gradient_of_saved_function(failure)
    if part is None or half is None:
        return
    yield Finding(
        f"`{part.name}` calls a SavedModel's function with {half} values, but its signature takes float32. TensorFlow "
        f"runs it, and its gradient raises: {headline_from_failure(failure)}",
        f'Make the layer with a dtype, `{part.name}(…, dtype="float32")`: Keras then casts its input. If it takes no '
        "dtype, cast the function's input: `tf.cast(x, tf.float32)`. (Not tried.)",
        part.made_at or failure.location,
        evidence=evidence_of(failure),
    )


def _is_of_saved_model(failure: FailureFacts) -> bool:
    return failure.part is not None and failure.part.kind == "saved-model"


def _finding_of_signature(failure: FailureFacts, half: str) -> Finding:
    place = place_of_failure(failure)
    return Finding(
        "A function with a float32 signature, a SavedModel's or a `tf.function` with `input_signature`, is given "
        f"{half}{f' in {place}' if place else ''}: {headline_from_failure(failure)}",
        "Cast its input: `tf.cast(x, tf.float32)`. Its result is float32, and the next layer casts that.",
        failure.location,
        layer=failure.layer,
        evidence=evidence_of(failure),
    )


def _finding_of_part(failure: FailureFacts, part: PartFacts) -> Finding:
    """The finding for a library's regularizer or constraint, whose input is a weight: float32 under every mixed
    policy."""
    argument = "kernel_constraint" if part.kind == "constraint" else "kernel_regularizer"
    half = half_given_for_float32(failure)
    returns = f"a {half} value comes back from it" if half else "it makes 16-bit numbers itself"
    cast = (
        f"Cast what it returns: `{argument}=lambda w: tf.cast({part.name}(…)(w), w.dtype)`."
        if half
        else f"Leave it out, or rewrite it in float32: `{argument}=lambda w: …`."
    )
    return Finding(
        f"{named_part(part)}, which is not your code, raises: a weight is float32 under a mixed policy, but "
        f"{returns}: {headline_from_failure(failure)}",
        f'{cast} `dtype="float32"` on the layer changes nothing here.',
        place_of_part(failure),
        evidence=evidence_of(failure),
    )


def _is_of_precision(failure: FailureFacts) -> bool:
    mismatch = mismatch_of_precisions(failure) or half_given_for_float32(failure) or half_added_to_float32(failure)
    return mismatch is not None and failure.layer is None
