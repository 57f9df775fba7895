"""Calls of functions that do not cast: the dtype that they are told, or give of themselves, is float32, and a tensor
that they are given is 16-bit. All raise.

Measured in TensorFlow 2.4, 2.15 and 2.21, and `keras.random` in Keras 3.15, eagerly and in a graph. (`keras.ops` and
`keras.random.uniform` cast.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Value, is_api
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.wording import text_at

_Places = tuple[tuple[int, str], ...]
# The places and names of the tensors, and the place of the dtype, which is float32 where it is not given.
DRAWING: dict[str, tuple[_Places, int]] = {
    **{
        f"{module}.{name}": (((1, "mean"), (2, "stddev")), 3)
        for module, names in (
            ("tensorflow.random", ("normal", "truncated_normal")),
            ("tensorflow", ("random_normal",)),
            ("keras.backend", ("random_normal", "truncated_normal")),
            ("keras.random", ("normal", "truncated_normal")),
        )
        for name in names
    },
    **{
        f"tensorflow.random.{name}": (((2, "mean"), (3, "stddev")), 4)
        for name in ("stateless_normal", "stateless_truncated_normal")
    },
    **dict.fromkeys(("tensorflow.random.uniform", "tensorflow.random_uniform"), (((1, "minval"), (2, "maxval")), 3)),
    "keras.backend.random_uniform": (((1, "minval"), (2, "maxval")), 3),
    "tensorflow.random.stateless_uniform": (((2, "minval"), (3, "maxval")), 4),
    "keras.random.gamma": (((1, "alpha"),), 2),
}
# These take the dtype of the tensor where they are told none.
CONVERTING = ("tensorflow.constant", "tensorflow.convert_to_tensor")


class DeclaredFloat32(NamedTuple):
    """A call that is told float32, or gives it, and a 16-bit tensor that it is given.

    name
        The parameter for which the tensor is given.
    text
        How the tensor is written; "" without a text.
    dtype_to_give
        What names the tensor's dtype there.
    dtype_at
        Where the dtype stands among the arguments.
    converts
        Whether it does nothing but make a tensor of what it is given.
    """

    call: Call
    name: str
    text: str
    dtype: str
    dtype_to_give: str
    dtype_at: int
    converts: bool


def declared_in_float32(facts: SourceFacts) -> Iterator[DeclaredFloat32]:
    for call in facts.calls_of(*DRAWING, *CONVERTING):
        name = public_name(call.callee.name) if isinstance(call.callee, Api) else ""
        converts = name in CONVERTING
        places, dtype_at = (((0, "value"),), 1) if converts else DRAWING[name]
        declared = call.argument(dtype_at, "dtype")
        if converts and call.context.branches:  # a question about what it is given, `isinstance(x, tf.Tensor)`
            continue
        if call.open or asks_for_dtype(call.context) or not _is_float32(facts, declared, unless_told=not converts):
            continue
        for place, parameter in places:
            given = call.argument(place, parameter)
            dtypes = half_dtypes(facts, given, call.context) if given is not None else ()
            if dtypes:
                at = argument_at(facts, call.location, place, parameter)
                text = text_at(facts, at) if at is not None else ""
                naming = _dtype_to_give(call, text, parameter)
                yield DeclaredFloat32(call, parameter, text, dtypes[0], naming, dtype_at, converts)
                break


def _is_float32(facts: SourceFacts, declared: Value | None, *, unless_told: bool) -> bool:
    return unless_told if declared is None else dtype_named(declared, facts.keras) == "float32"


def _dtype_to_give(call: Call, text: str, parameter: str) -> str:
    """`mean.dtype` for a tensor that has a name, else the dtype in which the layer around computes."""
    function = call.context.function
    is_named = text.replace(".", "").replace("_", "").isalnum()
    in_layer = function is not None and function.owner is not None and function.owner.is_layer
    if function is not None and in_layer and function.self_name and not is_named:
        return f"{function.self_name}.compute_dtype"
    return f"{text if is_named else parameter}.dtype"


def dtypes_let_in(made: Value, keras: Keras | None) -> tuple[str | None, ...]:
    """The dtypes of the tensors that `tf.function(…, input_signature=[…])` lets in, written as a decorator or as a
    call, each None where it is not known. Empty without a signature."""
    while isinstance(made, Call) and isinstance(made.callee, Call):
        made = made.callee  # tf.function(input_signature=[…])(function)
    if not isinstance(made, Call) or not is_api(made.callee, "tensorflow.function"):
        return ()
    specs = made.argument(1, "input_signature")
    return tuple(_let_in(spec, keras) for spec in specs.items) if isinstance(specs, Collection) else ()


def _let_in(spec: Value, keras: Keras | None) -> str | None:
    if not isinstance(spec, Call) or not is_call_of(spec, "tensorflow.TensorSpec") or spec.open:
        return None
    dtype = spec.argument(1, "dtype")
    return "float32" if dtype is None else dtype_named(dtype, keras)
