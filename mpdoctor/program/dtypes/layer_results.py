"""Dtypes of what layers of Keras' own give."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import INTEGER_LAYERS, UNCERTAIN_LAYERS
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, VARIABLE, Dtypes, is_policy_in_force, policies_by_name
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Value, agreed, known, options

_AROUND_A_LAYER = ("Bidirectional", "TimeDistributed")


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


def is_recurrent_of_keras(cell: Value) -> bool:
    """Whether it is a recurrent layer of Keras' own, or the cell of one: it makes its states in the dtype asked for."""
    made = cell.of if isinstance(cell, Attribute) and cell.name == "cell" else cell
    return isinstance(made, Call) and isinstance(made.callee, Api) and "keras.layers." in public_name(made.callee.name)
