"""What names dtypes and policies: strings, the dtypes of libraries, policies that are made by name."""

from __future__ import annotations

from typing import Callable

from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.program.events import Call
from mpdoctor.program.values import Attribute, Known, Value, agreed, by_default, is_api, options

AUTOCAST = "autocast"
"""The dtype of what Keras casts to a layer's compute dtype before `call()`, of a layer's weights inside
`call()`, and of the output of a layer that follows the global policy: 16 bits under a mixed policy, float32
under a float32 policy. Integers and bools stay what they are: of a parameter of `call()` nobody knows which
it is."""

VARIABLE = "variable"
"""The dtype that `self.dtype` names in a layer: that of its weights, float32 under a mixed policy."""

NAMES = {
    name: name
    for name in (
        *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"),
        *("uint32", "uint64", "bool", "string", "complex64", "complex128"),
    )
}
NAMES.update(
    half="float16",
    single="float32",
    double="float64",
    float="float32",  # of a tensor; an array takes it for float64 (TensorFlow 2.10 to 2.21, Keras 3.15)
    bool_="bool",
    int_="int64",
    str="string",
)
"""The dtype that each name means, of TensorFlow's and NumPy's and of Python's types."""

GLOBAL_POLICY = ("keras.mixed_precision.global_policy", "keras.config.dtype_policy")
_DEEPEST = 40


def policies_by_name(value: Value | None, named: Callable[[Value], str | None]) -> tuple[str, ...]:
    """See `policies_named` in tensor_dtypes. `named`: the dtype that a value denotes."""
    value = by_default(value)
    if isinstance(value, Known):  # nearly always
        return (value.value,) if isinstance(value.value, str) and value.value else ()
    names = [_policy_named(option, named) for option in options(value)]
    return tuple(dict.fromkeys(name for name in names if name)) if all(names) else ()


def _policy_named(value: Value, named: Callable[[Value], str | None], depth: int = 0) -> str | None:
    if isinstance(value, Known):
        return value.value if isinstance(value.value, str) else None
    inner: Value | None = None
    if isinstance(value, Call) and is_api(value.callee, POLICY, "keras.dtype_policies.get"):
        inner = value.argument(0, "name")
    elif isinstance(value, Attribute) and value.name == "name":
        inner = value.of
    if inner is not None and depth < _DEEPEST:
        return agreed(_policy_named(option, named, depth + 1) for option in options(inner))
    name = named(value)
    return None if name in (AUTOCAST, VARIABLE) else name


def is_policy_in_force(value: Value | None) -> bool:
    """Whether it is `self.dtype_policy`, or the global policy, which most layers have."""
    if isinstance(value, Call):
        return is_api(value.callee, *GLOBAL_POLICY)
    return isinstance(value, Attribute) and value.name in ("dtype_policy", "_dtype_policy")
