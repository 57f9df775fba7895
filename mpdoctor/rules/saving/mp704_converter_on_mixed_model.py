"""A mixed-precision model is passed to a converter that cannot convert its 16-bit layers, such as TFLite's.

## Why it matters
`convert()` raises `ConverterError: Could not translate MLIR to FlatBuffer` for a model of two Dense layers,
under mixed_float16 and under mixed_bfloat16, from the model, from a SavedModel of it, and from a concrete function
that calls it (Keras 3.15 and tf_keras 2.21 with TensorFlow 2.21; other versions crash). The
weights are float32 in any case, so nothing is lost if you build the same model under float32 and copy them
over. Setting the policy back is not enough, because existing layers keep theirs.

Core ML and ONNX accept float16 layers (coremltools 9.0; tf2onnx 1.17 with onnxruntime 1.32, where the converted
model's outputs differ from the original's by 3e-4). For mixed_bfloat16, `coremltools.convert` raises
`AttributeError: 'NoneType' object has no attribute '__name__'`, and onnxruntime refuses the convolutions and
Dense layers that tf2onnx writes, `INVALID_GRAPH: Type 'tensor(bfloat16)' of input parameter … is invalid`
(tf_keras 2.21 and Keras 3.15).

Keras 3's own `model.quantize("int8")` refuses float16 layers: `ValueError: Quantization mode='int8' doesn't work well
with compute_dtype='float16'`. It takes bfloat16 ones, and "int4" and "float8" take both (Keras 3.15).

## Flagged
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1, dtype="mixed_float16")])
converter = tf.lite.TFLiteConverter.from_keras_model(model)
```

## Fixed
```python
import tensorflow as tf


def build():
    return tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])


tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = build()
tf.keras.mixed_precision.set_global_policy("float32")
for_phones = build()
for_phones.set_weights(model.get_weights())
converter = tf.lite.TFLiteConverter.from_keras_model(for_phones)
```

## Versions
All. With `tf.lite.OpsSet.SELECT_TF_OPS` the conversion succeeds, and the file needs TensorFlow's own kernels
where it runs; that is not reported.

## Where users met it
tensorflow/tensorflow#46380, tensorflow/model-optimization#367, tensorflow/model-optimization#409.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Value, known, options, walk
from mpdoctor.semantics.source.layers.model_layers import policies_inside
from mpdoctor.semantics.source.programs.models import is_model, models_of_callback
from mpdoctor.semantics.source.trainings.saved_files import policies_in_file

SEVERITY = Severity.WARNING
CONVERTERS = (
    *("tensorflow.lite.TFLiteConverter", "tensorflow.compat.v1.lite.TFLiteConverter"),
    *("tensorflow.lite.python.lite.TFLiteConverter", "tensorflow.lite.python.lite.TFLiteConverterV2"),
)
FROM_MODEL = tuple(f"{converter}.from_keras_model" for converter in CONVERTERS)
FROM_FILE = tuple(
    f"{converter}.{name}" for converter in CONVERTERS for name in ("from_saved_model", "from_keras_model_file")
)
FROM_FUNCTIONS = tuple(f"{converter}.from_concrete_functions" for converter in CONVERTERS)

# How converting a model with bfloat16 layers fails; float16 layers are converted and run.
OF_FLOAT16 = {
    "coremltools.convert": "Core ML has no bfloat16, and `convert()` raises an AttributeError",
    "coremltools.converters.convert": "Core ML has no bfloat16, and `convert()` raises an AttributeError",
    "tf2onnx.convert.from_keras": "onnxruntime refuses to load its converted convolutions and Dense layers",
}
FLOAT16 = ("mixed_float16", "float16")
BFLOAT16 = ("mixed_bfloat16", "bfloat16")
AGAIN = "Build it again under float32, copy the weights with `new.set_weights(model.get_weights())`, and convert `new`."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _with_bfloat16(facts)
    if facts.keras.is_keras3:
        yield from _quantized(facts)
    if any(use.api.name.endswith(".SELECT_TF_OPS") for use in facts.uses):
        return
    for call in facts.calls_of(*FROM_MODEL, *FROM_FILE, *FROM_FUNCTIONS):
        if call.context.guarded:
            continue
        policies = _policies(facts, call)
        half = next((policy for policy in policies if policy in HALF_POLICIES), None)
        if half is not None and UNSURE not in policies:
            yield Finding(
                f"This model was built under {half}, and TFLite has no 16-bit kernels for it: `convert()` raises "
                "ConverterError.",
                AGAIN,
                call.location,
            )


def _with_bfloat16(facts: SourceFacts) -> Iterator[Finding]:
    """Converters that accept float16 layers and fail on bfloat16 ones."""
    for name, what_comes in OF_FLOAT16.items():
        for call in facts.calls_of(name):
            policies = frozenset() if call.context.guarded else _policies_of(facts, call.argument(0, "model"))
            half = next((policy for policy in BFLOAT16 if policy in policies), None)
            if half is not None and UNSURE not in policies:
                yield Finding(f"This model was built under {half}: {what_comes}.", AGAIN, call.location)


def _quantized(facts: SourceFacts) -> Iterator[Finding]:
    """Models with float16 layers that Keras 3 is to quantize to int8."""
    for call in facts.method_calls("quantize"):
        is_to_int8 = known(call.argument(0, "mode")) == "int8" and not call.context.guarded
        policies = _policies_of(facts, call.receiver) if is_to_int8 else frozenset()
        half = next((policy for policy in FLOAT16 if policy in policies), None)
        if half is not None and UNSURE not in policies:
            yield Finding(
                f"This model was built under {half}, and Keras does not quantize float16 layers to int8: this line "
                "raises ValueError.",
                'Build it under "mixed_bfloat16" or "float32", and copy the weights, `new.set_weights(…)`: from these '
                "int8 works.",
                call.location,
            )


def _policies(facts: SourceFacts, call: Call) -> frozenset[PolicyName]:
    """The policies of the converted model; none where they are not known for certain."""
    if call.method == "from_concrete_functions":
        alike = {_policies_of(facts, model) for model in _models_in_functions(facts, call.argument(0, "funcs"))}
        return alike.pop() if len(alike) == 1 else frozenset()
    if call.method != "from_keras_model":
        return policies_in_file(facts, call)
    return _policies_of(facts, call.argument(0, "model"))


def _models_in_functions(facts: SourceFacts, concrete: Value | None) -> Iterator[Value]:
    """The models that concrete functions are made of, or call: `tf.function(model).get_concrete_function(…)`."""
    for part in walk(concrete):
        traced = part.receiver if isinstance(part, Call) and part.method == "get_concrete_function" else None
        for inside in walk(traced):
            called = [call.callee for call in facts.calls if _is_in(call, inside)]
            yield from (model for model in (inside, *called) if is_model(model))


def _is_in(call: Call, function: Value) -> bool:
    return isinstance(function, Defined) and call.context.function is function.of


def _policies_of(facts: SourceFacts, model: Value | None) -> frozenset[PolicyName]:
    given = [trained for option in options(model) for trained in models_of_callback(facts, option) or (option,)]
    models = [option for option in given if isinstance(option, Call)]
    if len(models) != 1 or len(given) != 1:
        return frozenset()
    if is_call_of(models[0], "keras.models.load_model"):
        return policies_in_file(facts, models[0])
    return policies_inside(facts, models[0])
