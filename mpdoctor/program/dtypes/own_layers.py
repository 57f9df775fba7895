"""Dtypes of what layers of the user's own are given and give, and of the weights that they add."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import INTEGER_LAYERS, OVERRIDDEN_METHODS, UNCERTAIN_LAYERS
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, VARIABLE, Dtypes, Returned
from mpdoctor.program.dtypes.layer_results import dtype_of_layer_output
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, agreed, known, options


def dtype_of_parameter(value: Parameter, keras: Keras | None) -> str | None:
    """AUTOCAST for an input of a layer's `call()` that Keras casts to the compute dtype, and for what its own `call()`
    hands a method that a class overrides; None for other parameters. `keras` decides which inputs are cast, as in
    `dtype_of`."""
    function = value.function
    if function is None or function.owner is None:
        return None
    if function.name != "call" and not _is_handed_by_call_of_keras(value, function):
        return None
    if keras is not None and not keras.autocasts:
        return None
    owner = function.owner
    if not owner.is_layer or not _autocasts(owner):
        return None
    if function.changed_by:
        return None  # a decorator of the user's own may cast what it is given
    if value.index < 1 or value.name in ("training", "mask") or value.name.endswith("_mask"):
        return None
    is_first = value.index == 1
    if not is_first and type(known(value.default)) in (bool, int, float):
        return None  # a number where the caller gives nothing, as Keras itself does
    return AUTOCAST if is_first or function.name != "call" or (keras is not None and keras.is_keras3) else None


def _is_handed_by_call_of_keras(value: Parameter, function: FunctionFacts) -> bool:
    """Whether it is a 16-bit tensor that the `call()` of the class's layer in Keras hands this method of it."""
    first, layers = OVERRIDDEN_METHODS.get(function.name, (0, ()))
    if not first or function.owner is None or not 1 <= value.index <= first:
        return False
    bases = {public_name(base.name) for base in function.owner.library_bases()}
    overrides_call = any("call" in above.methods for above in function.owner.lineage())
    return not overrides_call and not bases.isdisjoint(f"keras.layers.{layer}" for layer in layers)


def _autocasts(owner: ClassFacts) -> bool:
    """Whether a layer follows the global policy and casts its inputs, as far as its super().__init__(…) call
    tells."""
    given = owner.base_argument("dtype")
    follows = given is None or known(given) is None or isinstance(given, Parameter)
    holders = (owner, *owner.mixed_into.values())
    set_later = (holder.attributes.get(name) for holder in holders for name in ("autocast", "_autocast"))
    switches = [owner.base_argument("autocast"), *set_later]
    return follows and not any(known(switch) is False for switch in switches)


def dtype_of_weight(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """The dtype in which a layer reads the weight that this call of `add_weight` adds."""
    given = call.argument(2, "dtype") or call.keyword("dtype")
    name = dtypes.named(given, depth) if given is not None and known(given) is not None else VARIABLE
    if name is None or any(known(call.keyword(word)) is False for word in ("autocast", "experimental_autocast")):
        return name
    return AUTOCAST if name in ("float32", VARIABLE) else name


def dtype_of_inherited_call(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """The dtype of `super().call(inputs)` in a layer that is derived from one of Keras' own."""
    own, given = call.context.owner, call.argument(0, "inputs")
    gives_floats = own is not None and _is_derived_from_certain_layer(own)
    is_cast = _is_autocast(given, dtypes.keras) or dtypes.of(given, depth) in (AUTOCAST, *HALF)
    return AUTOCAST if gives_floats and is_cast else None


def _is_autocast(given: Value | None, keras: Keras | None) -> bool:
    parameters = options(given)
    return bool(parameters) and all(
        isinstance(option, Parameter) and dtype_of_parameter(option, keras) == AUTOCAST for option in parameters
    )


def _of_inherited_output(dtypes: Dtypes, call: Call, own: ClassFacts) -> str | None:
    """The dtype of what a class of the user's gives that leaves `call()` to the layer of Keras' it is derived from."""
    layer = call.callee
    if not isinstance(layer, Call) or _may_have_dtype(dtypes, layer):
        return None
    given = own.base_argument("dtype")
    follows = given is None or isinstance(given, Parameter)
    return AUTOCAST if follows and _is_derived_from_certain_layer(own) else None


def _is_derived_from_certain_layer(own: ClassFacts) -> bool:
    """Whether it is derived from one layer of Keras' own whose output has its compute dtype."""
    bases = [public_name(base.name) for base in own.library_bases()]
    place, _, name = bases[0].rpartition(".") if len(bases) == 1 else ("", "", "")
    return place == "keras.layers" and name not in UNCERTAIN_LAYERS and name not in INTEGER_LAYERS


def dtype_of_own_layer_output(dtypes: Dtypes, call: Call, own: ClassFacts, depth: int) -> str | None:
    """The dtype of what the `call()` of a layer of the user's returns, where the layer has the policy of the one around
    it. A weight is returned as it is, and read in the dtype of whoever computes with it."""
    if own.find_method("call") is None:
        return _of_inherited_output(dtypes, call, own)
    method = _call_of_layer_with_its_policy(dtypes, call, own)
    if method is None:
        return None
    returned = dtypes.returned(method) if dtypes.returned is not None else ()
    if any(base.is_("keras.layers.Wrapper") for base in own.library_bases()) and all(
        map(_is_of_layer_inside, returned)
    ):
        inside = call.callee.argument(0, "layer") if isinstance(call.callee, Call) else None
        is_of_library = isinstance(inside, Call) and isinstance(inside.callee, Api)
        return dtype_of_layer_output(dtypes, inside, depth) if is_of_library and isinstance(inside, Call) else None
    return dtypes.of_result(method, depth) if _runs_in_call(call) or not any(map(may_be_weight, returned)) else None


def _is_of_layer_inside(value: Value) -> bool:
    """Whether it is `self.layer(…)`, the output of the layer that Keras' class Wrapper keeps."""
    return isinstance(value, Call) and isinstance(value.callee, Attribute) and value.callee.name == "layer"


def dtype_of_output_part(dtypes: Dtypes, part: Item, depth: int) -> str | None:
    """The dtype of one of several tensors that the `call()` of a layer of the user's returns, `outputs[0]` or
    `outputs["mean"]`, where the layer has the policy of the one around it."""
    call, index = part.of, known(part.index)
    own = class_of(call.callee) if isinstance(call, Call) and isinstance(call.callee, Call) else None
    if not isinstance(call, Call) or own is None or not isinstance(index, (int, str)):
        return None
    method = _call_of_layer_with_its_policy(dtypes, call, own)
    returned = dtypes.returned(method) if method is not None and dtypes.returned is not None else ()
    parts = [
        option.entry(index) if isinstance(option, Collection) else None
        for value in returned
        for option in options(value)
    ]
    if not all(parts) or any(may_be_weight(one) for one in parts if one is not None):
        return None
    return agreed(dtypes.of(one, depth + 1) for one in parts)


def _call_of_layer_with_its_policy(dtypes: Dtypes, call: Call, own: ClassFacts) -> FunctionFacts | None:
    """The `call()` that this call of a layer runs, if nothing gives the layer a dtype or changes that method."""
    layer = call.callee
    method = own.find_method("call")
    if not isinstance(layer, Call) or not own.is_layer or method is None or method.changed_by:
        return None
    return None if _may_have_dtype(dtypes, layer) else method


def _may_have_dtype(dtypes: Dtypes, layer: Call) -> bool:
    """Whether the call that makes a layer may give it a dtype of its own."""
    return layer.keyword("dtype") is not None or (layer.open and dtypes.hands_on_dtypes)


def is_weight(value: Value) -> bool:
    """Whether it is what add_weight gave: Keras casts it inside `call()`."""
    return isinstance(value, Call) and isinstance(value.callee, Attribute) and value.callee.name == "add_weight"


def may_be_weight(value: Value) -> bool:
    """Whether it is what `add_weight` gave, on some path."""
    return any(map(is_weight, options(value)))


def _runs_in_call(call: Call) -> bool:
    """Whether it stands in the `call()` of a layer or model: Keras casts what is read there."""
    function = call.context.function
    owner = function.owner if function is not None and function.name == "call" else None
    return owner is not None and owner.is_layer


def gives_what_its_base_gives(layer: Call, returned: Returned) -> bool:
    """Whether it makes a layer of the program's own class whose output is that of Keras' layer from which the class is
    derived, as `class Head(Dense)` without a `call()` or with one that returns `super().call(…)`, in that layer's
    compute dtype; its class gives it no dtype. `returned`: what a function of the user's returns."""
    own = class_of(layer)
    if own is None or own.kind != "layer" or own.find_method("__call__") is not None:
        return False
    if not _is_derived_from_layer_with_compute_dtype(own):
        return False
    given = own.base_argument("dtype")
    if given is not None and known(given) is not None and not isinstance(given, Parameter):
        return False
    method = own.find_method("call")
    if method is None:
        return True
    results = returned(method)
    return bool(results) and not method.changed_by and all(map(is_inherited_output, results))


def is_inherited_output(value: Value) -> bool:
    """Whether it is `super().call(…)`."""
    callee = value.callee if isinstance(value, Call) else None
    return isinstance(callee, Attribute) and callee.name == "call" and is_call_of(callee.of, "builtins.super")


def _is_derived_from_layer_with_compute_dtype(own: ClassFacts) -> bool:
    from mpdoctor.knowledge.layer_kinds import OUTPUT_IN_COMPUTE_DTYPE  # of few models such a layer is the last

    bases = [public_name(base.name).rpartition(".") for base in own.library_bases()]
    return len(bases) == 1 and bases[0][0] == "keras.layers" and bases[0][2] in OUTPUT_IN_COMPUTE_DTYPE
