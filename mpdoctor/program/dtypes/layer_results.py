"""Dtypes of what layers are given and give: of inputs, of outputs, and of the weights that they add."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import INTEGER_LAYERS, OVERRIDDEN_METHODS, UNCERTAIN_LAYERS
from mpdoctor.program.dtypes.dtype_names import (
    AUTOCAST,
    VARIABLE,
    Dtypes,
    Returned,
    is_policy_in_force,
    policies_by_name,
)
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, agreed, known, options

_AROUND_A_LAYER = ("Bidirectional", "TimeDistributed")


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


def dtype_of_layer_output(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The dtype of what a layer of Keras' gives, None where it is not certain. `layer`: the call that makes it."""
    assert isinstance(layer.callee, Api)
    place, _, name = public_name(layer.callee.name).rpartition(".")
    if place != "keras.layers":
        return None
    if name == "Lambda":
        return _of_lambda_output(dtypes, layer, depth)
    if name in _AROUND_A_LAYER:
        return _of_output_of_both(dtypes, layer, depth)
    if name == "RNN":
        return _of_output_of_cells(dtypes, layer, depth)
    is_uncertain = name in UNCERTAIN_LAYERS and not (name == "UpSampling2D" and _keeps_pixels(layer))
    return None if is_uncertain or name in INTEGER_LAYERS else _compute_dtype(dtypes, layer, depth)


def _compute_dtype(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The dtype in which a layer computes, by the `dtype` that it is made with: a name, a policy or nothing."""
    given = layer.keyword("dtype")
    if given is None or known(given) is None:
        return None if layer.open and dtypes.hands_on_dtypes else AUTOCAST
    if all(map(is_policy_in_force, options(given))):
        return AUTOCAST
    if dtypes.named(given, depth + 1) == VARIABLE:
        return VARIABLE  # `dtype=self.dtype`
    policies = policies_by_name(given, lambda named: dtypes.named(named, depth + 1))
    if len(policies) != 1:
        return None
    return policies[0][len("mixed_") :] if policies[0].startswith("mixed_") else policies[0]


def _of_output_of_both(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The output dtype of a wrapper layer, where neither it nor the inner layer has a dtype of its own. Otherwise the
    outer layer's dtype decides in Keras 3, and the inner one's in Keras 2 (Keras 3.15, TensorFlow 2.10)."""
    inner = layer.argument(0, "layer")
    if layer.open or layer.keyword("dtype") is not None or not isinstance(inner, Call):
        return None
    if inner.keyword("dtype") is not None or not isinstance(inner.callee, Api):
        return None
    return dtype_of_layer_output(dtypes, inner, depth)


def _of_output_of_cells(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The output dtype of an RNN layer around Keras' own cells, where neither it nor a cell has a dtype of its own."""
    given = layer.argument(0, "cell")
    cells = given.items if isinstance(given, Collection) and not given.open else (given,)
    if layer.open or layer.keyword("dtype") is not None or not all(map(_is_layer_without_dtype, cells)):
        return None
    return agreed(dtype_of_layer_output(dtypes, cell, depth) for cell in cells if isinstance(cell, Call))


def _is_layer_without_dtype(layer: Value | None) -> bool:
    is_of_library = isinstance(layer, Call) and isinstance(layer.callee, Api)
    return is_of_library and isinstance(layer, Call) and layer.keyword("dtype") is None


def _keeps_pixels(layer: Call) -> bool:
    """Whether an UpSampling2D repeats its pixels, which keeps their dtype. Keras 2 computes all other interpolations in
    float32 and leaves it at that (TensorFlow 2.4 to 2.15, tf_keras; Keras 3.15 casts back)."""
    given = layer.argument(2, "interpolation")
    return not layer.open and (given is None or known(given) == "nearest")


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


def _of_lambda_output(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The dtype that the function of a Lambda layer returns for any input: nothing casts it afterwards."""
    functions = _functions_of_lambda(layer)
    certain = agreed(dtypes.of_result(made, depth) for made in functions)
    return None if certain in (AUTOCAST, VARIABLE) else certain


def dtype_of_lambda_for_autocast(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The dtype that the function of a Lambda layer returns for an input that the layer casts."""
    certain = _of_lambda_output(dtypes, layer, depth)
    if certain is not None or layer.open or layer.keyword("dtype") is not None:
        return certain
    return agreed(dtypes.of_result_for_autocast(made, depth) for made in _functions_of_lambda(layer))


def _functions_of_lambda(layer: Call) -> list[FunctionFacts]:
    """The user's functions that a Lambda layer may call; [] where it may call something else."""
    given = options(layer.argument(0, "function"))
    functions = [option.of for option in given if isinstance(option, Defined) and isinstance(option.of, FunctionFacts)]
    return functions if len(functions) == len(given) else []


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


def is_recurrent_of_keras(cell: Value) -> bool:
    """Whether it is a recurrent layer of Keras' own, or the cell of one: it makes its states in the dtype asked for."""
    made = cell.of if isinstance(cell, Attribute) and cell.name == "cell" else cell
    return isinstance(made, Call) and isinstance(made.callee, Api) and "keras.layers." in public_name(made.callee.name)


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
