"""What names dtypes and policies: strings, the dtypes of libraries, policies that are made by name; and `Dtypes`, which
the modules of this package ask for the dtypes of values."""

from __future__ import annotations

from typing import Callable, Iterable, Protocol, Sequence

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import POLICY, public_name
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.program.values import Api, Attribute, Known, Value, agreed, by_default, is_api, options

Returned = Callable[[FunctionFacts], Sequence[Value]]
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
_PLACES = ("tensorflow", "numpy", "builtins")
_OF_A_DTYPE = ("name", "base_dtype", "as_numpy_dtype")
DEEPEST = 40  # questions, each asked to answer the one before


class Dtypes(Protocol):
    """An interface: what answers for the dtypes of values, as `tensor_dtypes` does."""

    keras: Keras | None
    returned: Returned | None
    hands_on_dtypes: bool
    """Whether the `**options` that a layer is made with may hold a `dtype`."""

    def named(self, value: Value | None, depth: int) -> str | None: ...

    def of(self, value: Value | None, depth: int) -> str | None: ...

    def agreed(self, values: Iterable[Value | None], depth: int) -> str | None: ...

    def of_result(self, function: FunctionFacts, depth: int) -> str | None: ...

    def of_result_for_autocast(self, function: FunctionFacts, depth: int) -> str | None: ...

    def with_autocast(self, function: FunctionFacts) -> Dtypes: ...


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
    if inner is not None and depth < DEEPEST:
        return agreed(_policy_named(option, named, depth + 1) for option in options(inner))
    name = named(value)
    return None if name in (AUTOCAST, VARIABLE) else name


def is_policy_in_force(value: Value | None) -> bool:
    """Whether it is `self.dtype_policy`, or the global policy, which most layers have."""
    if isinstance(value, Call):
        return is_api(value.callee, *GLOBAL_POLICY)
    return isinstance(value, Attribute) and value.name in ("dtype_policy", "_dtype_policy")


def dtype_named_by(dtypes: Dtypes, value: Value, depth: int) -> str | None:
    """The dtype that one value denotes, and not one of several: see `dtype_named`."""
    if isinstance(value, Known):
        return NAMES.get(value.value) if isinstance(value.value, str) else None
    if isinstance(value, Api):
        place, _, name = public_name(value.name).rpartition(".")
        if name in _OF_A_DTYPE:
            place, _, name = public_name(place).rpartition(".")
        return NAMES.get(name) if place in _PLACES else None
    if isinstance(value, Call) and isinstance(value.callee, Api):
        if value.callee.is_("keras.backend.floatx"):
            return "float32"
        if value.callee.is_("numpy.dtype", "tensorflow.as_dtype", "keras.backend.standardize_dtype"):
            return dtypes.named(value.argument(0), depth)
        if value.callee.is_("keras.backend.dtype", "keras.ops.dtype") and depth < DEEPEST:
            return dtypes.of(value.argument(0), depth)
    if isinstance(value, Attribute) and depth < DEEPEST:
        return _named_by_attribute(dtypes, value, depth)
    return None


def _named_by_attribute(dtypes: Dtypes, value: Attribute, depth: int) -> str | None:
    if value.name in _OF_A_DTYPE:
        return dtypes.named(value.of, depth)
    own = class_of(value.of)
    is_layer = own is not None and own.is_layer
    is_policy = is_policy_in_force(value.of)
    if value.name in ("compute_dtype", "_compute_dtype", "_compute_dtype_object"):
        return AUTOCAST if is_layer or is_policy else None
    if value.name == "variable_dtype":
        return VARIABLE if is_layer or is_policy else None
    if value.name == "dtype":
        return VARIABLE if is_layer else _named_by_tensor(dtypes, value.of, depth)
    return None


def _named_by_tensor(dtypes: Dtypes, tensor: Value, depth: int) -> str | None:
    """What `x.dtype` names. Of a weight that a layer autocasts, TensorFlow up to 2.15 gives the dtype that it is
    kept in, Keras 3 and tf_keras the one that it is read in (measured in 2.4, 2.10, 2.15 and 2.21)."""
    dtype = dtypes.of(tensor, depth)
    adds = isinstance(tensor, Call) and isinstance(tensor.callee, Attribute) and tensor.callee.name == "add_weight"
    if dtype == AUTOCAST and adds and dtypes.keras is not None and dtypes.keras.package == "tf.keras":
        return VARIABLE
    return dtype
