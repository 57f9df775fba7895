"""Dtypes of TensorFlow Probability's distributions, and of what their methods give."""

from __future__ import annotations

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.distributions import AROUND, GIVING, OF_TWO, PARAMETERS
from mpdoctor.program.dtypes.dtype_names import Dtypes
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.dtypes.python_numbers import is_number, leaves
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Attribute, Value, agreed, options


def parameters_of_distribution(value: Value | None) -> tuple[Value, ...]:
    """The parameters, whose dtypes must agree, that a distribution is made with; none where it is no distribution."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return ()
    names = PARAMETERS.get(public_name(value.callee.name), ())
    given = [value.argument(place, name) for place, name in enumerate(names)]
    return tuple(parameter for parameter in given if parameter is not None)


def is_distribution(value: Value | None) -> bool:
    """Whether it is a distribution, whichever way it is made."""
    made = options(value)
    return bool(made) and all(
        bool(parameters_of_distribution(option)) or _distribution_inside(option) is not None for option in made
    )


def gives_its_dtype(method: Attribute) -> bool:
    """Whether it is a method of a distribution that gives a tensor of the distribution's dtype."""
    return method.name in GIVING and is_distribution(method.of)


def dtype_of_distribution(dtypes: Dtypes, name: str, call: Call, depth: int) -> str | None:
    """The dtype of a distribution, and of the divergence of two. `name`: the public name of what is called."""
    if name == OF_TWO:
        return agreed(dtypes.of(of, depth) for of in call.arguments(slice(0, 2)))
    inside = _distribution_inside(call)
    if inside is not None:
        return dtypes.of(inside, depth)
    given = parameters_of_distribution(call)
    tensors = [parameter for parameter in given if not all(map(is_number, leaves(parameter)))]
    if given and not tensors:
        return None if call.open else "float32"
    return agreed(
        None if is_read_in_another_dtype(tensor, dtypes.keras) else dtypes.of(tensor, depth) for tensor in tensors
    )


def is_read_in_another_dtype(value: Value, keras: Keras | None) -> bool:
    """Whether it is a weight, and not computed of one, that says float32 where it is asked for its dtype and is read in
    16 bits: a distribution of such ones alone raises where it computes (TensorFlow 2.15; not in tf_keras, nor in
    Keras 3)."""
    is_of_tensorflow = keras is not None and keras.package == "tf.keras"
    return is_of_tensorflow and all(map(is_weight, options(value)))


def _distribution_inside(value: Value | None) -> Value | None:
    """The distribution that another one is made around, else None."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return None
    place = AROUND.get(public_name(value.callee.name))
    inside = value.argument(*place) if place is not None else None
    return inside if is_distribution(inside) else None
