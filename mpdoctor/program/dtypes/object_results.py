"""Which dtype methods give, and objects of a library's that are called: layers, initializers, activations."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.knowledge.dtypes.result_dtypes import INITIALIZERS
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, Dtypes
from mpdoctor.program.dtypes.layer_results import (
    dtype_of_lambda_for_autocast,
    dtype_of_layer_output,
    is_recurrent_of_keras,
)
from mpdoctor.program.dtypes.own_layers import dtype_of_inherited_call, dtype_of_weight
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Value, agreed, options


def dtype_of_method_call(dtypes: Dtypes, call: Call, method: Attribute, depth: int) -> str | None:
    """The dtype of what a method gives, of an array, a variable or a layer; None for other methods."""
    if method.name == "astype":
        return dtypes.named(call.argument(0, "dtype"), depth)
    if method.name == "add_weight":
        return dtype_of_weight(dtypes, call, depth)
    if method.name in ("read_value", "value", "copy"):
        return dtypes.of(method.of, depth)
    if method.name == "call" and is_call_of(method.of, "builtins.super"):
        return dtype_of_inherited_call(dtypes, call, depth)
    if method.name == "get_initial_state" and is_recurrent_of_keras(method.of):
        return dtypes.named(call.argument(2, "dtype"), depth)
    if method.name == "gradient" and is_call_of(method.of, "tensorflow.GradientTape"):
        return _of_gradient(dtypes, call.argument(1, "sources"), depth)
    return _of_distributions_method(dtypes, method, depth) if _is_of_probability(method.of) else None


def _is_of_probability(value: Value) -> bool:
    """Whether it is made by something of TensorFlow Probability's, in one way or in each of several."""
    return all(
        isinstance(option, Call) and isinstance(option.callee, Api) and option.callee.root == "tensorflow_probability"
        for option in options(value)
    )


def _of_distributions_method(dtypes: Dtypes, method: Attribute, depth: int) -> str | None:
    """The dtype of what a method of a distribution gives: the distribution's, or None where it may be another."""
    from mpdoctor.program.dtypes.distributions import gives_its_dtype  # few programs have any

    return dtypes.of(method.of, depth) if gives_its_dtype(method) else None


def _of_gradient(dtypes: Dtypes, sources: Value | None, depth: int) -> str | None:
    """The dtype of a gradient: that of the tensor by which is differentiated, whatever is differentiated (TensorFlow
    2.4 to 2.21)."""
    several = sources.items if isinstance(sources, Collection) and not sources.open else (sources,)
    dtype = agreed(dtypes.of(source, depth) for source in several)
    return dtype if dtype in ("float16", "bfloat16", "float32", "float64", AUTOCAST) else None


def dtype_of_called_object(dtypes: Dtypes, call: Call, made: Call, maker: Api, depth: int) -> str | None:
    """The dtype of what an object of a library's gives where it is called. `made`: the call of `maker` that made it."""
    if _is_initializer(maker.name):
        given = call.argument(1, "dtype")
        return "float32" if given is None and not call.open else dtypes.named(given, depth)
    if maker.is_("keras.activations.get", "keras.activations.deserialize"):
        return dtypes.of(call.argument(0), depth)
    if public_name(maker.name).startswith(("keras.regularizers.", "keras.constraints.")):
        return dtypes.of(call.argument(0, "x"), depth)
    if kind_of_class(maker.name) == "loss":
        return _of_loss(dtypes, made, depth)
    if maker.is_("tensorflow.custom_gradient"):
        return _of_result_with_gradient(dtypes, made.argument(0, "f"), call.argument(0), depth)
    if maker.is_("keras.layers.Lambda") and dtypes.of(call.argument(0, "inputs"), depth) == AUTOCAST:
        return dtype_of_lambda_for_autocast(dtypes, made, depth)
    return dtype_of_layer_output(dtypes, made, depth)


def _of_loss(dtypes: Dtypes, loss: Call, depth: int) -> str | None:
    """The dtype of what a loss of Keras 3 gives, which is that of the loss and float32 by default, also under a mixed
    policy; in Keras 2 it depends on the predictions."""
    if dtypes.keras is None or not dtypes.keras.is_keras3 or loss.open:
        return None
    given = loss.keyword("dtype")
    return "float32" if given is None else dtypes.named(given, depth)


def _of_result_with_gradient(dtypes: Dtypes, given: Value | None, argument: Value | None, depth: int) -> str | None:
    """The dtype of the result that a function returns together with the function of its gradient, as under
    `tf.custom_gradient`: where it is the same for any argument, or where the first argument is autocast."""
    function = given.of if isinstance(given, Defined) else None
    if not isinstance(function, FunctionFacts) or dtypes.returned is None:
        return None
    returned = [option for value in dtypes.returned(function) for option in options(value)]
    results = [option.entry(0) if isinstance(option, Collection) else None for option in returned]
    if None in results:
        return None
    asked = dtypes.with_autocast(function) if dtypes.of(argument, depth) == AUTOCAST else dtypes
    return agreed(asked.of(result, depth + 1) for result in results)


def _is_initializer(name: str) -> bool:
    """Whether it is the name of an initializer: keras.initializers.Zeros, tf.random_normal_initializer,
    tf.initializers.GlorotUniform."""
    name = public_name(name)
    return name.startswith(INITIALIZERS) or (name.startswith("tensorflow.") and name.endswith("_initializer"))
