"""Which strings name a dtype policy, by Keras, and what people write instead of them.

Tried with `set_global_policy`, `Policy(…)` and `Dense(…, dtype=…)` in Keras 3.3, 3.8 and 3.15, tf_keras 2.21 and
TensorFlow 2.15.
"""

from __future__ import annotations

import difflib
from functools import lru_cache

from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge import words

# A dtype's name is a policy too: everything in that dtype.
DTYPES = words(
    "float16 bfloat16 float32 float64 "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string complex64 complex128"
)
KERAS2_DTYPES = words("half float double qint8 quint8 qint16 quint16 qint32 resource variant _infer")
# Some releases of either take these and others do not: tf_keras 2.21 and TensorFlow 2.15 all four, TensorFlow 2.10 and
# Keras 3.15 none as a global policy. Nothing is said of them.
FLOATX = words("float16 float32 float64")  # what set_floatx takes (2.4, 2.10, 2.15, tf_keras 2.21, Keras 3.15)
FLOATX_KERAS3 = (*FLOATX, "bfloat16")
SMALL_DTYPES = words("float8_e4m3fn float8_e5m2 int4 uint4")
QUANTIZED = ("int8_from_", "int4_from_", "float8_from_", "gptq", "awq")  # Keras 3 alone
NOT_QUANTIZED = ("int8_from_mixed_float16", "int8_from_float16")  # Keras 3.15 refuses int8 of float16, and nothing else

_MEANT = {
    "half": "mixed_float16",
    "amp": "mixed_float16",
    "mixed": "mixed_float16",
    "mixed_precision": "mixed_float16",
    "single": "float32",
    "float": "float32",
    "full": "float32",
    "mixed_float32": "float32",
    "mixed_fp32": "float32",
    "double": "float64",
}


def is_policy_name(name: str, keras: Keras) -> bool:
    """Whether that Keras (any version of it) takes this name for a policy."""
    if name in MIXED or name in DTYPES or name in SMALL_DTYPES:
        return True
    return (name.startswith(QUANTIZED) and name not in NOT_QUANTIZED) if keras.is_keras3 else name in KERAS2_DTYPES


def is_floatx(name: str, keras: Keras) -> bool:
    """Whether that Keras takes this name in `set_floatx`."""
    return name in (FLOATX_KERAS3 if keras.is_keras3 else FLOATX)


def is_quantized_policy_name(name: str) -> bool:
    return name.startswith(QUANTIZED)


@lru_cache(maxsize=256)
def meant_by(name: str) -> str:
    """The policy that is probably meant by a misspelled name."""
    plain = name.strip().lower().replace("-", "_")
    if plain in NOT_QUANTIZED:
        return plain.replace("float16", "bfloat16")
    if plain in _MEANT:
        return _MEANT[plain]
    if "bf" in plain or "brain" in plain:
        return "mixed_bfloat16"
    if "32" in plain:
        return "float32"
    if "64" in plain:
        return "float64"
    near = difflib.get_close_matches(plain, (*MIXED, "float32"), 1, 0.6)
    return near[0] if near else "mixed_float16"
