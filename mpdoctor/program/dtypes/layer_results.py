"""Dtypes of what layers give: of their outputs, and of the weights that they add."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import INTEGER_LAYERS, UNCERTAIN_LAYERS
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, VARIABLE, is_policy_in_force, policies_by_name
from mpdoctor.program.dtypes.library_results import Dtypes
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Item, Value, known, options

_AROUND_A_LAYER = ("Bidirectional", "TimeDistributed")


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
    if place == "keras.layers" and name == "Lambda":
        return _of_lambda_output(dtypes, layer, depth)
    if place == "keras.layers" and name in _AROUND_A_LAYER:
        return _of_output_of_both(dtypes, layer, depth)
    if place != "keras.layers" or name in UNCERTAIN_LAYERS or name in INTEGER_LAYERS:
        return None
    given = layer.keyword("dtype")
    if given is None or known(given) is None:
        return None if layer.open else AUTOCAST
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


def dtype_of_inherited_call(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """The dtype of `super().call(inputs)` in a layer that is derived from one of Keras' own."""
    own = call.context.owner
    bases = [public_name(base.name) for base in own.library_bases()] if own is not None else []
    place, _, name = bases[0].rpartition(".") if len(bases) == 1 else ("", "", "")
    if place != "keras.layers" or name in UNCERTAIN_LAYERS or name in INTEGER_LAYERS:
        return None
    return AUTOCAST if dtypes.of(call.argument(0, "inputs"), depth) == AUTOCAST else None


def _of_lambda_output(dtypes: Dtypes, layer: Call, depth: int) -> str | None:
    """The dtype that the function of a Lambda layer returns for any input: nothing casts it afterwards."""
    functions = [
        option.of if isinstance(option, Defined) else None for option in options(layer.argument(0, "function"))
    ]
    returned = {dtypes.of_result(made, depth) for made in functions if isinstance(made, FunctionFacts)}
    certain = returned.pop() if len(returned) == 1 and None not in functions else None
    return None if certain in (AUTOCAST, VARIABLE) else certain


def gives_its_input(dtypes: Dtypes, layer: Call) -> bool:
    """Whether it is a Lambda layer of no dtype of its own whose function gives what it is given, or a part of that:
    `Lambda(lambda x: x)`, `Lambda(lambda x: x[:, -1])`."""
    is_lambda = isinstance(layer.callee, Api) and layer.callee.is_("keras.layers.Lambda")
    if not is_lambda or layer.open or layer.keyword("dtype") is not None or dtypes.returned is None:
        return False
    functions = [
        option.of if isinstance(option, Defined) else None for option in options(layer.argument(0, "function"))
    ]
    returned = [
        (function, option)
        for function in functions
        if isinstance(function, FunctionFacts)
        for value in dtypes.returned(function)
        for option in options(value)
    ]
    return None not in functions and bool(returned) and all(_is_given_to(*pair) for pair in returned)


def _is_given_to(function: FunctionFacts, value: Value) -> bool:
    while isinstance(value, Item):
        value = value.of
    return isinstance(value, Parameter) and value.function is function and value.index == function.first_given


def dtype_of_own_layer_output(dtypes: Dtypes, call: Call, own: ClassFacts, depth: int) -> str | None:
    """The dtype of what the `call()` of a layer of the user's returns, where the layer has the policy of the one around
    it. A weight is returned as it is, and read in the dtype of whoever computes with it."""
    layer = call.callee
    if not isinstance(layer, Call) or not own.is_layer:
        return None
    method = own.find_method("call")
    if layer.open or layer.keyword("dtype") is not None or method is None or method.changed_by:
        return None
    returned = dtypes.returned(method) if dtypes.returned is not None else ()
    return dtypes.of_result(method, depth) if _runs_in_call(call) or not any(map(may_be_weight, returned)) else None


def may_be_weight(value: Value) -> bool:
    """Whether it is what `add_weight` gave, on some path."""
    callees = (option.callee for option in options(value) if isinstance(option, Call))
    return any(isinstance(callee, Attribute) and callee.name == "add_weight" for callee in callees)


def _runs_in_call(call: Call) -> bool:
    """Whether it stands in the `call()` of a layer or model: Keras casts what is read there."""
    function = call.context.function
    owner = function.owner if function is not None and function.name == "call" else None
    return owner is not None and owner.is_layer


def is_recurrent_of_keras(cell: Value) -> bool:
    """Whether it is a recurrent layer of Keras' own, or the cell of one: it makes its states in the dtype asked for."""
    made = cell.of if isinstance(cell, Attribute) and cell.name == "cell" else cell
    return isinstance(made, Call) and isinstance(made.callee, Api) and "keras.layers." in public_name(made.callee.name)
