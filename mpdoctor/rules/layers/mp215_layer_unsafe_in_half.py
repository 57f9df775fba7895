"""A built-in layer gives wrong results in float16 for ordinary inputs.

## Why it matters
Some of Keras' own layers square or sum in the compute dtype. Measured in Keras 3.15, tf_keras 2.21, TensorFlow
2.15 and 2.10: `UnitNormalization` and `Dot(normalize=True)` return 0 for rows of 300, inf for rows of 1e-4 and
NaN for rows of zeros; `squareplus` returns inf from 256 on; `GlobalAveragePooling1D` with a mask returns 0.5 as
the mean of 4096 ones. All of them are right in float32.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((16,))
directions = keras.layers.UnitNormalization()(keras.layers.Dense(8)(inputs))
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
inputs = keras.Input((16,))
directions = keras.layers.UnitNormalization(dtype="float32")(keras.layers.Dense(8)(inputs))
```

## Versions
All; squareplus exists only in Keras 3. Only mixed_float16 is affected, because bfloat16 has the range of
float32. LayerNormalization, BatchNormalization and attention are fine.

## Where users met it
keras-team/keras#22586, keras-team/keras#22666.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.unsafe_layers import COUNTABLE, MASK_PASSING, MASKED_MEAN, NORMALISES, SQUAREPLUS
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, is_api, known, options
from mpdoctor.semantics.source.edits.casts import cast_argument
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, runs_in_call
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.preceding_layers import rows
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
ONLY_IN_HALF = True
SQUARING = "keras.activations.squareplus"
SQUARING_OPS = (SQUARING, "keras.ops.squareplus", "keras.ops.nn.squareplus")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for call in facts.calls_of("keras.layers.UnitNormalization", "keras.layers.Dot", "keras.layers.dot"):
        is_unit = call.method == "UnitNormalization"
        if _normalises(call) and half_dtype_of_layer(facts, call) == "float16":
            yield _finding(facts, call, call.method if is_unit else f"{call.method}(normalize=True)")
    if facts.keras.is_keras3:
        yield from _squareplus(facts)
    for layer, before in rows(facts, "keras.layers.GlobalAveragePooling1D"):
        steps = _masked_steps(before)
        if steps is not None and steps > COUNTABLE and half_dtype_of_layer(facts, layer) == "float16":
            subject = f"GlobalAveragePooling1D, which is given a mask over {steps} steps,"
            yield _finding(facts, layer, subject, MASKED_MEAN)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    for layer in model.layers:
        if layer.compute_dtype != "float16" or layer.own_class or layer.is_operation:
            continue
        unsafe = _unsafe(layer, model.keras.is_keras3)
        if unsafe is not None:
            subject, why = unsafe
            yield Finding(
                f"{layer.path} ({subject}) computes in float16 and {why}.",
                'Give it `dtype="float32"`.',
                layer.made_at,
                layer=layer.path,
                evidence={"policy": layer.policy},
            )


def _unsafe(layer: LayerFacts, is_keras3: bool) -> tuple[str, str] | None:
    """The subject of the message, and what goes wrong."""
    if layer.settings.normalizes and layer.class_name in ("UnitNormalization", "Dot"):
        return (layer.class_name if layer.class_name != "Dot" else "Dot(normalize=True)"), NORMALISES
    if is_keras3 and layer.settings.activation == "squareplus":
        return f"{layer.class_name} with the activation squareplus", SQUAREPLUS
    steps = layer.mask_steps
    if layer.class_name == "GlobalAveragePooling1D" and steps is not None and steps > COUNTABLE:
        return f"GlobalAveragePooling1D, which is given a mask over {steps} steps,", MASKED_MEAN
    return None


def _finding(facts: SourceFacts, call: Call, subject: str, why: str = NORMALISES) -> Finding:
    return Finding(
        f"{subject} computes in float16 and {why}.",
        'Give it `dtype="float32"`.',
        call.location,
        fix=unsafe_fix('Give the layer dtype="float32"', in_float32(facts, call)),
    )


def _normalises(call: Call) -> bool:
    """Whether it is a UnitNormalization, or a Dot or dot() with `normalize=True`."""
    position = 1 if call.method == "Dot" else 2
    return call.method == "UnitNormalization" or known(call.argument(position, "normalize")) is True


def _squareplus(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.library_calls:
        if isinstance(call.callee, Api) and call.callee.is_(*SQUARING_OPS):
            if _is_given_float16(facts, call):
                yield Finding(
                    f"squareplus {SQUAREPLUS}; the layer's input is float16.",
                    'Cast first: `squareplus(ops.cast(x, "float32"))`.',
                    call.location,
                    fix=unsafe_fix("Cast first", cast_argument(facts, call.location)),
                )
        elif _has_squareplus(call) and half_dtype_of_layer(facts, call) == "float16":
            yield _finding(facts, call, "The activation squareplus", SQUAREPLUS)


def _is_given_float16(facts: SourceFacts, call: Call) -> bool:
    """Whether a function is called on a float16 tensor in the `call()` of a layer."""
    given = call.argument(0)
    half = given is not None and "float16" in half_dtypes(facts, given, call.context)
    return half and runs_in_call(call.context) and not asks_for_dtype(call.context)


def _has_squareplus(call: Call) -> bool:
    """Whether a call makes a layer with that activation."""
    if not isinstance(call.callee, Api) or not public_name(call.callee.name).startswith("keras.layers."):
        return False
    given = call.keyword("activation") or (call.argument(0) if call.method == "Activation" else None)
    return known(given) == "squareplus" or is_api(given, SQUARING)


def _masked_steps(before: list[Call]) -> int | None:
    """The number of steps in the mask that reaches the last of these layers; None where there is no mask, or the number
    is unknown."""
    shape = before[0].argument(0, "shape") if is_api(before[0].callee, "keras.Input") else None
    steps = known(shape.items[0] if isinstance(shape, Collection) and shape.items else None)
    if not all(map(_passes_mask, before[1:])) or not any(map(_masks, before[1:])):
        return None
    return steps if isinstance(steps, int) else None


def _passes_mask(layer: Call) -> bool:
    name = public_name(layer.callee.name) if isinstance(layer.callee, Api) else ""
    return name.startswith("keras.layers.") and name.rpartition(".")[2] in MASK_PASSING


def _masks(layer: Call) -> bool:
    """Whether it is a Masking, or an Embedding with `mask_zero=True` on some path."""
    is_masking = isinstance(layer.callee, Api) and public_name(layer.callee.name).endswith(".Masking")
    return is_masking or any(known(option) is True for option in options(layer.keyword("mask_zero")))
