"""Dtypes of symbolic values: what a value names as a dtype or policy, and which dtype a tensor has.

Every function answers only where it is certain.
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, Optional

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.result_dtypes import (
    ALWAYS_FLOAT32,
    BOOLEAN,
    BY_VALUE,
    COMPARISONS,
    DEFAULTS,
    FOURIER,
    INITIALIZERS,
    INTEGER_LAYERS,
    JOINING,
    KEEPING,
    KEEPS_DTYPE,
    PARTS_OF_COMPLEX,
    REAL_OF,
    SHAPES,
    UNCERTAIN_LAYERS,
    VALUE_NAMES,
)
from mpdoctor.program.array_dtypes import dtype_of_array
from mpdoctor.program.values import (
    Api,
    Attribute,
    Call,
    ClassFacts,
    Collection,
    Defined,
    Earlier,
    Either,
    Instance,
    Item,
    Known,
    Operation,
    Parameter,
    Value,
    class_of,
    is_api,
    known,
    options,
)

AUTOCAST = "autocast"
"""The dtype of what Keras casts to a layer's compute dtype before `call()`, of a layer's weights inside
`call()`, and of the output of a layer that follows the global policy: 16 bits under a mixed policy, float32
under a float32 policy. Integers and bools stay what they are: of a parameter of `call()` nobody knows which
it is."""

VARIABLE = "variable"
"""The dtype that `self.dtype` names in a layer: that of its weights, float32 under a mixed policy."""

_NAMES = {
    name: name
    for name in (
        *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"),
        *("uint32", "uint64", "bool", "string", "complex64", "complex128"),
    )
}
_NAMES.update(
    half="float16",
    single="float32",
    double="float64",
    float="float64",
    bool_="bool",
    int_="int64",
    str="string",
)
_PLACES = ("tensorflow", "numpy", "builtins")
_OF_A_DTYPE = ("name", "base_dtype", "as_numpy_dtype")
_OF_TENSORS = ("tensorflow", "keras.ops")
# Modules whose functions treat dtypes as those of another one do.
_ALIKE = {
    **dict.fromkeys(("tensorflow.nn", "tensorflow.math", "tensorflow.linalg", "tensorflow.image"), "tensorflow"),
    "keras.activations": "tensorflow",
    **dict.fromkeys(("keras.backend", "keras.ops.numpy", "keras.random"), "keras.ops"),
}
_DEPTH = 40
_WHOLE = (
    *("math.ceil", "math.floor", "math.trunc", "math.factorial", "math.comb", "math.perm"),
    *("math.gcd", "math.lcm", "math.isqrt", "math.prod", "math.frexp", "math.modf"),
)
_NUMBERS = ("builtins.int", "builtins.float", "builtins.len", "builtins.round")
_DEPTH_OF_NUMBERS = 4
_NESTED = 3  # questions that a caller asks while it is asked: the stack has room for a thousand frames
_MOST_PARTS = 200
_MOST_CARRIED = 3  # names that a loop carries on, each depending on the next


def dtype_named(value: Value | None, keras: Keras | None = None) -> str | None:
    """The dtype that a value denotes: "float16" for "float16", tf.float16, tf.half, np.float16,
    np.dtype("float16"), tf.as_dtype(…), `x.dtype` of a tensor whose dtype is certain; "float32" for
    K.floatx(). AUTOCAST for `self.compute_dtype` or `x.dtype` of a layer's input, VARIABLE for `self.dtype`
    and `self.variable_dtype` in a layer. None if not certain."""
    return _Dtypes(keras).named(value, 0)


def dtype_of(
    value: Value | None,
    keras: Keras | None = None,
    remembered: Mapping[int, tuple[Value, str | None]] | None = None,
    first_round: bool = False,
) -> str | None:
    """The dtype of a tensor (or array, see `is_array`): a name such as "float32", or AUTOCAST, or None if not
    certain.

    `keras` decides which parameters of a layer's `call()` are autocast: in Keras 2 the first only, in Keras 3
    every tensor. Without it only the first is. `remembered`: answers given before, by the id of the value.
    `first_round`: what a name holds in a loop is what it held before it."""
    return _Dtypes(keras, remembered=remembered, first_round=first_round).of(value, 0)


Told = Callable[[Value, Optional[str]], Optional[str]]


def dtypes_told(keras: Keras | None, told: Told) -> Callable[[Value | None], str | None]:
    """`dtype_of`, for a caller who knows more: `told(value, found)` is asked about every value on the way, the
    innermost first, and gives its dtype, or the one that a dtype names (`self.compute_dtype`). The function
    remembers its answers."""
    dtypes, asking = _Dtypes(keras, told), 0

    def dtype(value: Value | None) -> str | None:
        nonlocal asking
        if asking >= _NESTED:
            return None
        asking += 1
        try:
            return dtypes.of(value, 0)
        finally:
            asking -= 1

    return dtype


def _is_number(value: Value | None, depth: int = 0) -> bool:
    """Whether it is a Python number (or another constant), one that `__init__` is given where its default is a number,
    a length in a static shape, or made of such."""
    if isinstance(value, Either):
        return all(_is_number(option, depth) for option in value.options)
    if isinstance(value, Item):
        return isinstance(known(value.index), int) and _is_static_shape(value.of)
    if isinstance(value, Call) and isinstance(value.callee, Api):
        return value.callee.name in _NUMBERS or value.callee.root == "math"
    if isinstance(value, Operation):
        return depth < _DEPTH_OF_NUMBERS and all(_is_number(operand, depth + 1) for operand in value.operands)
    if isinstance(value, Parameter):
        is_setting = value.function is not None and value.function.name == "__init__"
        return is_setting and type(known(value.default)) in (int, float)
    return isinstance(value, Known)


def _is_static_shape(value: Value) -> bool:
    """`x.shape`, `x.shape.as_list()`, `K.int_shape(x)`: of `tf.shape(x)` the lengths are tensors."""
    if isinstance(value, Call):
        of_shape = value.method == "as_list" and value.receiver is not None and _is_static_shape(value.receiver)
        return of_shape or value.method in ("get_shape", "int_shape")
    return isinstance(value, Attribute) and value.name == "shape"


def is_array(value: Value | None) -> bool:
    """Whether it is for certain a numpy array or scalar, which TensorFlow converts to the dtype of the tensor
    it meets."""
    waiting = [*options(value)]
    seen = {id(item) for item in waiting}
    for item in waiting:
        parts = _parts_of_an_array(item)
        if parts is None or len(waiting) > _MOST_PARTS:
            return False
        new = [part for part in parts if id(part) not in seen]
        seen.update(map(id, new))
        waiting += new
    return bool(waiting)


def policies_named(value: Value | None) -> tuple[str, ...]:
    """Every policy or dtype that a value may denote as the `dtype` of a layer or as a global policy:
    ("mixed_float16",) for "mixed_float16", Policy("mixed_float16"), keras.DTypePolicy(…); ("float16",) for
    tf.float16; two names for `"mixed_float16" if amp else "float32"`. Names that no Keras knows are returned
    as written ("mixed_fp16"). () if any of it is not known."""
    return _policies_named(value, dtype_named)


def policy_named(value: Value | None) -> str | None:
    """The one policy or dtype that a value denotes, None where it is not certain."""
    found = policies_named(value)
    return found[0] if len(found) == 1 else None


def _policies_named(value: Value | None, named: Callable[[Value], str | None]) -> tuple[str, ...]:
    found = [_policy_named(option, named) for option in options(value)]
    return tuple(dict.fromkeys(name for name in found if name)) if all(found) else ()


def _policy_named(value: Value, named: Callable[[Value], str | None], depth: int = 0) -> str | None:
    if isinstance(value, Known):
        return value.value if isinstance(value.value, str) else None
    inner: Value | None = None
    if isinstance(value, Call) and is_api(value.callee, "keras.mixed_precision.Policy", "keras.dtype_policies.get"):
        inner = value.argument(0, "name")
    elif isinstance(value, Attribute) and value.name == "name":
        inner = value.of
    if inner is not None and depth < _DEPTH:
        names = {_policy_named(option, named, depth + 1) for option in options(inner)}
        return names.pop() if len(names) == 1 else None
    found = named(value)
    return None if found in (AUTOCAST, VARIABLE) else found


def _parts_of_an_array(value: Value) -> tuple[Value, ...] | None:
    """What must be arrays as well for a value to be one; None where it is none for certain, or nobody knows."""
    if isinstance(value, Call) and isinstance(value.callee, Api):
        return () if value.callee.name.startswith("numpy.") else None
    if isinstance(value, Call):
        return (value.callee.of,) if isinstance(value.callee, Attribute) else None
    if isinstance(value, (Attribute, Item)):
        return (value.of,)
    if isinstance(value, Operation):
        return tuple(operand for operand in value.operands if not isinstance(operand, Known)) or None
    return None


class _Dtypes:
    """One question: remembers what it was asked on the way, because values are shared."""

    def __init__(
        self,
        keras: Keras | None,
        told: Told | None = None,
        remembered: Mapping[int, tuple[Value, str | None]] | None = None,
        first_round: bool = False,
    ) -> None:
        self.first_round = first_round
        self.carried: dict[int, str] = {}
        self.keras = keras
        self.remembered = remembered if remembered is not None else {}
        self.told = told if told is not None else lambda value, found: found
        self.answers: dict[int, str | None] = {}

    def named(self, value: Value | None, depth: int) -> str | None:
        found = {self.told(option, self._named(option, depth + 1)) for option in options(value)}
        return found.pop() if len(found) == 1 else None

    def of(self, value: Value | None, depth: int) -> str | None:
        if value is None or depth > _DEPTH:
            return None
        key = id(value)
        if key in self.remembered:
            return self.remembered[key][1]
        if key not in self.answers:
            self.answers[key] = None
            earlier = [option for option in options(value) if isinstance(option, Earlier)]
            choices = [option for option in options(value) if not isinstance(option, Earlier)]
            found = {self.told(option, self._of(option, depth + 1)) for option in choices}
            dtype = found.pop() if len(found) == 1 else None
            stays = dtype is not None and all(self._stays(option, dtype, depth) for option in earlier)
            self.answers[key] = dtype if stays else None
        return self.answers[key]

    def _stays(self, carried: Earlier, dtype: str, depth: int) -> bool:
        """Whether what a loop carries on has this dtype each time round, if it has it the first time."""
        if self.first_round or id(carried) in self.carried:
            return self.carried.get(id(carried), dtype) == dtype
        if not carried.ends or len(self.carried) >= _MOST_CARRIED:
            return False
        then = _Dtypes(self.keras, self.told, self.remembered)
        then.carried = {**self.carried, id(carried): dtype}
        return all(then.of(end, depth + 1) == dtype for end in carried.ends)

    def agreed(self, values: Iterable[Value | None], depth: int) -> str | None:
        """The dtype of values that meet; Python numbers take the dtype of the others."""
        found = {self.of(value, depth) for value in values if not _is_number(value) and not is_array(value)}
        return found.pop() if len(found) == 1 else None

    def _named(self, value: Value, depth: int) -> str | None:
        if isinstance(value, Known):
            return _NAMES.get(value.value) if isinstance(value.value, str) else None
        if isinstance(value, Api):
            place, _, name = public_name(value.name).rpartition(".")
            if name in _OF_A_DTYPE:
                place, _, name = public_name(place).rpartition(".")
            return _NAMES.get(name) if place in _PLACES else None
        if isinstance(value, Call) and isinstance(value.callee, Api):
            if value.callee.is_("keras.backend.floatx"):
                return "float32"
            if value.callee.is_("numpy.dtype", "tensorflow.as_dtype", "keras.backend.standardize_dtype"):
                return self.named(value.argument(0), depth)
            if value.callee.is_("keras.backend.dtype", "keras.ops.dtype") and depth < _DEPTH:
                return self.of(value.argument(0), depth)
        if isinstance(value, Attribute) and depth < _DEPTH:
            return self._named_by_attribute(value, depth)
        return None

    def _named_by_attribute(self, value: Attribute, depth: int) -> str | None:
        if value.name in _OF_A_DTYPE:
            return self.named(value.of, depth)
        own = class_of(value.of)
        is_layer = own is not None and own.kind in ("layer", "model")
        is_policy = isinstance(value.of, Attribute) and value.of.name in ("dtype_policy", "_dtype_policy")
        if value.name in ("compute_dtype", "_compute_dtype", "_compute_dtype_object"):
            return AUTOCAST if is_layer or is_policy else None
        if value.name == "variable_dtype":
            return VARIABLE if is_layer or is_policy else None
        if value.name == "dtype":
            return VARIABLE if is_layer else self.of(value.of, depth)
        return None

    def _of(self, value: Value, depth: int) -> str | None:
        if isinstance(value, Parameter):
            return self._of_parameter(value)
        if isinstance(value, Item):
            # of several inputs by name, `features["length"]`, some are integers, which nothing casts
            is_certain = not isinstance(value.of, Collection) and not isinstance(known(value.index), str)
            return self.of(value.of, depth) if is_certain else None
        if isinstance(value, Operation):
            if value.operator in COMPARISONS:
                return "bool"
            found = self.agreed(value.operands, depth)
            return None if value.operator == "/" and found is not None and "int" in found else found
        if isinstance(value, Call):
            return self._of_call(value, depth)
        if isinstance(value, Attribute) and value.name in ("T", "mT", "real"):
            return self.of(value.of, depth)
        return None

    def _of_parameter(self, value: Parameter) -> str | None:
        function = value.function
        if function is None or function.name != "call" or function.owner is None:
            return None
        owner = function.owner
        if owner.kind not in ("layer", "model") or not _autocasts(owner):
            return None
        if any(isinstance(decorator, Defined) for decorator in function.decorators):
            return None  # a decorator of the user's own may cast what it is given
        if value.index < 1 or value.name in ("training", "mask") or value.name.endswith("_mask"):
            return None
        is_first = value.index == 1
        return AUTOCAST if is_first or (self.keras is not None and self.keras.is_keras3) else None

    def _of_call(self, call: Call, depth: int) -> str | None:
        callee = call.callee
        if isinstance(callee, Api):
            return self._of_library_call(public_name(callee.name), call, depth)
        if isinstance(callee, Attribute):
            if callee.name == "astype":
                return self.named(call.argument(0, "dtype"), depth)
            if callee.name == "add_weight":
                return self._of_weight(call, depth)
            if callee.name in ("read_value", "value", "copy"):
                return self.of(callee.of, depth)
        if isinstance(callee, Call) and isinstance(callee.callee, Api):
            if _is_initializer(callee.callee.name):
                given = call.argument(1, "dtype")
                return "float32" if given is None and not call.open else self.named(given, depth)
            return self._of_layer_output(callee, depth)
        return None

    def _of_weight(self, call: Call, depth: int) -> str | None:
        given = call.argument(2, "dtype") or call.keyword("dtype")
        name = self.named(given, depth) if given is not None and known(given) is not None else VARIABLE
        if name is None or any(known(call.keyword(word)) is False for word in ("autocast", "experimental_autocast")):
            return name
        return AUTOCAST if name in ("float32", VARIABLE) else name

    def _of_layer_output(self, layer: Call, depth: int) -> str | None:
        assert isinstance(layer.callee, Api)
        place, _, name = public_name(layer.callee.name).rpartition(".")
        if place != "keras.layers" or name in UNCERTAIN_LAYERS or name in INTEGER_LAYERS:
            return None
        given = layer.keyword("dtype")
        if given is None or known(given) is None:
            return None if layer.open else AUTOCAST
        policies = _policies_named(given, lambda named: self.named(named, depth + 1))
        if len(policies) != 1:
            return None
        return policies[0][len("mixed_") :] if policies[0].startswith("mixed_") else policies[0]

    def _of_library_call(self, name: str, call: Call, depth: int) -> str | None:
        if name == "keras.Input":
            given = call.keyword("dtype")
            return "float32" if given is None else self.named(given, depth)
        if name in ALWAYS_FLOAT32:
            return self._of_resized(call, ALWAYS_FLOAT32[name], depth)
        place, _, function = name.rpartition(".")
        place = _ALIKE.get(place, place)
        default = DEFAULTS.get(name) or DEFAULTS.get(f"{place}.{function}")
        if place in _OF_TENSORS and function in ("cast", "saturate_cast"):
            return self.named(call.argument(1, "dtype"), depth)
        if default is not None:
            return self._of_made_tensor(call, *default, depth)
        if place == "tensorflow.signal" and function in FOURIER:
            return FOURIER[function].get(self.of(call.argument(0), depth) or "")
        return self._of_computed_tensor(function, call, depth) if place in _OF_TENSORS else None

    def _of_resized(self, call: Call, position: int | None, depth: int) -> str | None:
        """float32, unless the `method` at this position keeps the dtype."""
        given = call.argument(position, "method") if position is not None else None
        if given is None:
            return None if call.open else "float32"
        names = {option.name if isinstance(option, Api) else known(option) for option in options(given)}
        name = names.pop() if len(names) == 1 else None
        if not isinstance(name, str):
            return None
        return self.of(call.argument(0), depth) if name.rpartition(".")[2] in KEEPS_DTYPE else "float32"

    def _of_made_tensor(self, call: Call, position: int | None, default: str, depth: int) -> str | None:
        """Of a function that makes tensors: the dtype that it is given, else its default."""
        given = call.argument(position, "dtype")
        if given is not None and known(given) is not None:
            return self.named(given, depth)
        if call.open:
            return None
        return self._by_literals(call, BY_VALUE[default], depth) if default in BY_VALUE else default

    def _of_computed_tensor(self, function: str, call: Call, depth: int) -> str | None:
        """Of a function whose result follows from the tensors that it is given."""
        if function in BOOLEAN:
            return "bool"
        if function in SHAPES:
            return SHAPES[function]
        if function.endswith("_like"):
            given = call.keyword("dtype") or (call.argument(1) if function != "full_like" else None)
            return self.of(call.argument(0), depth) if given is None else self.named(given, depth)
        if function in PARTS_OF_COMPLEX and (of := self.of(call.argument(0), depth)) in REAL_OF:
            return REAL_OF[of]
        if function in KEEPING:
            first = call.argument(0) or (call.keywords[0][1] if call.keywords else None)
            is_number = isinstance(first, Known) and isinstance(first.value, float)
            return "float32" if is_number else self.of(first, depth)
        if function in JOINING:
            joined = [part for argument in call.arguments(JOINING[function]) for part in _spread(argument)]
            return self.agreed(joined, depth)
        return None

    def _by_literals(self, call: Call, positions: tuple[int, int], depth: int) -> str | None:
        """What TensorFlow makes of Python numbers: float32 and int32; of tensors their own dtype."""
        given = list(call.arguments(slice(*positions))) or [
            value for name, value in call.keywords if name in VALUE_NAMES
        ]
        values = [leaf for item in given for leaf in _leaves(item)]
        if not values:
            return None
        kinds = {_kind_of_number(leaf) for leaf in values}
        if None in kinds:
            return self._of_single(values[0], call, depth) if len(values) == 1 else None
        if "float" in kinds and kinds <= {"float", "int"}:
            return "float32"
        return {"int": "int32", "bool": "bool", "str": "string"}.get(kinds.pop() or "") if len(kinds) == 1 else None

    def _of_single(self, value: Value, call: Call, depth: int) -> str | None:
        found = self.of(value, depth)
        is_tensorflow = isinstance(call.callee, Api) and call.callee.name.startswith("tensorflow.")
        if found is not None or not is_tensorflow:
            return found
        return dtype_of_array(value, lambda named: self.named(named, depth + 1))


def _autocasts(owner: ClassFacts) -> bool:
    """Whether a layer follows the global policy and casts its inputs, as far as its super().__init__(…) call
    tells."""
    given = owner.base_argument("dtype")
    follows = given is None or known(given) is None or isinstance(given, Parameter)
    switches = [owner.base_argument("autocast"), *(owner.attributes.get(name) for name in ("autocast", "_autocast"))]
    return follows and not any(known(switch) is False for switch in switches)


def _is_initializer(name: str) -> bool:
    """keras.initializers.Zeros, tf.random_normal_initializer, tf.initializers.GlorotUniform."""
    name = public_name(name)
    return name.startswith(INITIALIZERS) or (name.startswith("tensorflow.") and name.endswith("_initializer"))


def _kind_of_number(value: Value, depth: int = 0) -> str | None:
    """The Python type of a constant, and "float" of what `math.log(…)` and the like give."""
    if isinstance(value, Known):
        return type(value.value).__name__
    if isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.root == "math":
        return None if value.callee.name in _WHOLE else "float"
    if isinstance(value, Operation) and value.operator in "+-*/" and depth < _DEPTH_OF_NUMBERS:
        kinds = {_kind_of_number(operand, depth + 1) for operand in value.operands}
        return "float" if "float" in kinds and kinds <= {"float", "int"} else None
    return None


def _spread(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Collection) else (value,)


def _leaves(value: Value, depth: int = 0) -> tuple[Value, ...]:
    """Each of what a nested list holds; one that stands in a list several times is asked once."""
    if isinstance(value, Collection) and depth < 6:
        distinct = {id(item): item for item in value.items[:64]}
        return tuple(leaf for item in distinct.values() for leaf in _leaves(item, depth + 1))
    if isinstance(value, Operation) and value.operator == "*" and depth < 6:
        repeated = [operand for operand in value.operands if isinstance(operand, Collection)]
        times = [operand for operand in value.operands if not isinstance(operand, Collection)]
        if len(repeated) == 1 and len(times) == 1 and _is_length(times[0]):
            return _leaves(repeated[0], depth + 1)
    return (value,)


def _is_length(value: Value) -> bool:
    """What repeats a list, and does not multiply it as an array would: a number, or a length of what `build()` is told
    of its input."""
    given_to = value.of.function if isinstance(value, Item) and isinstance(value.of, Parameter) else None
    return _is_number(value) or (given_to is not None and given_to.name == "build")


__all__ = [
    "AUTOCAST",
    "VARIABLE",
    "Instance",
    "dtype_named",
    "dtype_of",
    "dtypes_told",
    "is_array",
    "policies_named",
    "policy_named",
]
