"""16-bit numbers make this device no faster, or make it slower.

## Why it matters
Matrix products in 16 bits are faster on tensor cores: NVIDIA GPUs from compute capability 7.0 on, except the
GTX 16xx. Most older GPUs convert each number to float32 and back, and train slower than in float32 (a factor of
2 to 4 was reported for the GTX 10xx); a few compute in float16 without any gain. The only benefit left is half
the memory for activations.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((1024,)), keras.layers.Dense(4096, "relu"), keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")  # on a GTX 1080
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("float32")
model = keras.Sequential(
    [keras.Input((1024,)), keras.layers.Dense(4096, "relu"), keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")  # on a GTX 1080
```

## Versions
All. Advice where nothing is gained, a warning where the GPU gets slower. CPUs are not reported, because
training there is usually only a trial; `mpdoctor env` shows what 16-bit numbers do on a CPU. For TPUs see
MP108.

## Where users met it
tensorflow/tensorflow#44191, tensorflow/tensorflow#35883, NVIDIA/OpenSeq2Seq#469, dreamgaussian/dreamgaussian#36.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.gpus import gpus, half_dtype

SEVERITY = Severity.INFO
OLD_FOR_BFLOAT16 = (8, 0)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    dtype = half_dtype(model)
    for gpu in gpus(model) if model.is_trained and dtype else ():
        capability = gpu.compute_capability or (0, 0)
        if dtype == "bfloat16" and capability < OLD_FOR_BFLOAT16:
            continue  # MP108
        outlook = gpu.outlook(dtype, model.keras.tensorflow_release)
        if outlook.speed not in ("slower", "no faster"):
            continue
        slower = outlook.speed == "slower"
        name = gpu.name or "This GPU"
        yield Finding(
            f"{name} (compute capability {capability[0]}.{capability[1]}) is {outlook.speed} in {dtype} than in "
            f"float32: {outlook.why}.",
            "Train in float32 here" + ("." if slower else ", unless you need the memory."),
            severity=Severity.WARNING if slower else None,
            evidence={"device": gpu.name, "compute_capability": f"{capability[0]}.{capability[1]}"},
        )
        return
