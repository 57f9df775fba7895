"""A preprocessing or augmentation layer computes in 16 bits because it was made under the mixed policy.

## Why it matters
A preprocessing layer under `mixed_float16` casts its input first. Pixels of 16 bits and other values beyond
65504 are infinite before they are scaled: `Rescaling(1/65535)` turns the pixel 65535 into inf. A
`Normalization` with a variance beyond 65504 returns 0 for every value, and one with a mean of 1e5 returns NaN
(Keras 3.15, tf_keras 2.21, TensorFlow 2.15). In Keras 2 (tf_keras 2.21, TensorFlow 2.15)
`Normalization().adapt()` squares in float16 too: from numbers between 126 and 563 it learns a variance of NaN.
Bytes are safe: float16 holds each of them exactly, and `Rescaling(1/255)` is off by at most 2.6e-4, no more
than the cast in the next layer. Where a `Rescaling` shows that the input is bytes, nothing is reported, neither
for it nor for layers that flip, turn or crop the image. In float32 the layer costs next to nothing.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        keras.layers.Rescaling(1.0 / 4095),
        keras.layers.Conv2D(8, 3),
        keras.layers.GlobalAveragePooling2D(dtype="float32"),
    ]
)
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        keras.layers.Rescaling(1.0 / 4095, dtype="float32"),
        keras.layers.Conv2D(8, 3),
        keras.layers.GlobalAveragePooling2D(dtype="float32"),
    ]
)
```

## Versions
All. Advice; a warning where a constant of the layer is outside float16's range.

## Where users met it
keras-team/keras-cv#734, keras-team/keras-cv#967, keras-team/keras#17508.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.layer_kinds import NOT_FLOATING, PREPROCESSING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Item, Value, known, options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer

SEVERITY = Severity.INFO
FIXES = ("unsafe",)
LAYERS = PREPROCESSING - NOT_FLOATING
NAMES = tuple("keras.layers." + name for name in sorted(LAYERS))
SMALL_SCALE = "its scale is for values beyond 65504, which are inf in float16 before they are scaled."
BEYOND = {
    "scale": "its scale or offset is beyond 65504, which is inf in float16.",
    "offset": "its scale or offset is beyond 65504, which is inf in float16.",
    "mean": "its mean is beyond 65504, which is inf in float16: every value becomes NaN.",
    "variance": "its variance is beyond 65504, which is inf in float16: every value becomes 0.",
}
LEARNT_NAN = "`adapt()` has learnt NaN: it squares in float16, where 256² is inf. Every value becomes NaN."
LARGEST_HALF, SMALLEST_NORMAL = 65504.0, 6.1e-5
OF_BYTES = (1 / 256, 1 / 100)  # the scales for bytes: 1/255, 1/127.5, 1/128
HELP = 'Give it `dtype="float32"`; the next layer casts its output.'
PUTS_OUT_MORE = (
    'Give it `dtype="float32"`, and keep what it puts out within 65504: the next layer casts that to float16. A mask '
    "is made with numbers such as -1e4."
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for call in facts.calls_of(*NAMES):
        dtype = _half_dtype(facts, call)
        if dtype is None or not isinstance(call.callee, Api) or _is_amid_layers(facts, call):
            continue
        name = public_name(call.callee.name).rpartition(".")[2]
        outside = _outside(name, call) if dtype == "float16" else None
        if outside is None and dtype == "float16" and _is_harmless(name, _scales(facts)):
            continue
        fix = unsafe_fix('Give the layer dtype="float32"', in_float32(facts, call))
        if outside is not None:
            message = f"{name} computes in float16, and {outside}"
            yield Finding(message, _help(outside), call.location, severity=Severity.WARNING, fix=fix)
        else:
            yield Finding(_message(name, dtype), HELP, call.location, fix=fix)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    for layer in model.layers:
        if not _is_half_preprocessing(model, layer):
            continue
        outside = _outside_live(layer) if layer.compute_dtype == "float16" else None
        if outside is None and layer.compute_dtype == "float16" and _is_harmless(layer.class_name, _live_scales(model)):
            continue
        if outside is None and (layer.made_by or any(dtype in HALF for dtype in layer.input_dtypes)):
            continue  # keras.applications has no line to change; 16-bit values come from another layer
        yield Finding(
            f"{layer.class_name} computes in float16, and {outside}"
            if outside
            else _message(layer.class_name, layer.compute_dtype),
            _help(outside),
            layer.made_at,
            layer=layer.path,
            severity=Severity.WARNING if outside else None,
            evidence={"policy": layer.policy},
        )


def _help(outside: str | None) -> str:
    return PUTS_OUT_MORE if outside == BEYOND["scale"] else HELP


def _is_half_preprocessing(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether it is one of Keras' own layers and takes its 16 bits from the global policy."""
    is_of_keras = layer.class_name in LAYERS and not layer.own_class
    return is_of_keras and layer.compute_dtype in HALF and layer.policy == model.global_policy


def _is_harmless(name: str, scales: list[float | None]) -> bool:
    """Whether the program's Rescaling layers are all known to be for bytes, which float16 holds, and this layer hardly
    changes their range. `scales` has None for an unknown scale."""
    are_bytes = bool(scales) and all(scale is not None and _is_of_bytes(scale) for scale in scales)
    return are_bytes and (name in ("Rescaling", "Resizing", "CenterCrop") or name.startswith("Random"))


def _is_of_bytes(scale: float) -> bool:
    smallest, largest = OF_BYTES
    return smallest <= scale <= largest


def _live_scales(model: ModelFacts) -> list[float | None]:
    rescaling = [layer for layer in model.layers if layer.class_name == "Rescaling"]
    magnitudes = [{name: sizes for name, *sizes in layer.settings.constants} for layer in rescaling]
    return [size for sizes in magnitudes for size in sizes.get("scale", [None])]


def _scales(facts: SourceFacts) -> list[float | None]:
    """The scales of all Rescaling layers in the program."""
    calls = list(facts.calls_of("keras.layers.Rescaling"))
    scales = [_numbers(call.argument(0, "scale")) for call in calls]
    return [size for sizes in scales for size in (sizes or (None,))]


def _outside_live(layer: LayerFacts) -> str | None:
    """Like `_outside`, for the live layer's constants, including those that a Normalization has learnt."""
    magnitudes = {name: (largest, smallest) for name, largest, smallest in layer.settings.constants}
    if 0 < magnitudes.get("scale", (0.0, 0.0))[1] < SMALLEST_NORMAL:
        return SMALL_SCALE
    if any(math.isnan(largest) for name, (largest, _) in magnitudes.items() if name in ("mean", "variance")):
        return LEARNT_NAN
    beyond = [name for name, (largest, _) in magnitudes.items() if largest > LARGEST_HALF]
    return BEYOND.get(beyond[0]) if beyond else None


def _message(name: str, dtype: str) -> str:
    digits = "three digits, and values beyond 65504 become inf" if dtype == "float16" else "two digits"
    return f"{name} computes in {dtype}: the data it prepares are rounded to {digits}."


def _half_dtype(facts: SourceFacts, call: Call) -> str | None:
    """The 16-bit dtype that the layer takes from the global policy; a dtype named on the layer is deliberate."""
    is_chosen = call.keyword("dtype") is not None and known(call.keyword("dtype")) is not None
    return None if is_chosen else half_dtype_of_layer(facts, call)


def _is_amid_layers(facts: SourceFacts, layer: Call) -> bool:
    """Whether the layer's input comes from other layers: then it prepares no data."""
    waiting, seen = list(_given_to(facts, layer)), set()
    for value in waiting:
        if _is_output_of_layer(value):
            return True
        if id(value) not in seen:
            seen.add(id(value))
            waiting.extend(option for inner in _made_from(value) for option in options(inner))
    return False


def _given_to(facts: SourceFacts, layer: Call) -> Iterator[Value]:
    """The values that the layer is called with."""
    for call in facts.calls:
        if any(option is layer for option in options(call.callee)):
            yield from options(call.argument(0))


def _is_output_of_layer(value: Value) -> bool:
    """Whether it is the output of a layer that prepares no data."""
    if not isinstance(value, Call) or not isinstance(value.callee, (Call, Item)):
        return False
    return not is_call_of(value.callee, *NAMES)


def _made_from(value: Value) -> tuple[Value, ...]:
    """The values that this one was made from directly."""
    if isinstance(value, Item):
        return (value.of,)
    if isinstance(value, Collection):
        return value.items
    if isinstance(value, Operation):
        return value.operands
    return value.args if isinstance(value, Call) else ()


def _outside(name: str, call: Call) -> str | None:
    """The effect in float16 of a constant of the layer that is outside its range; None where there is none."""
    if name == "Rescaling":
        scale, offset = call.argument(0, "scale"), call.argument(1, "offset")
        if any(0 < abs(number) < SMALLEST_NORMAL for number in _numbers(scale)):
            return SMALL_SCALE
        if _is_beyond_half(scale) or _is_beyond_half(offset):
            return BEYOND["scale"]
    if name == "Normalization":
        beyond = [argument for argument in ("mean", "variance") if _is_beyond_half(call.keyword(argument))]
        return BEYOND[beyond[0]] if beyond else None
    return None


def _is_beyond_half(value: Value | None) -> bool:
    """Whether one of the numbers that a constant holds is infinite in float16."""
    return any(abs(number) > LARGEST_HALF for number in _numbers(value))


def _numbers(value: Value | None) -> list[float]:
    items = value.items if isinstance(value, Collection) else (value,)
    constants = [known(item) for item in items]
    return [float(number) for number in constants if isinstance(number, (int, float)) and not isinstance(number, bool)]
