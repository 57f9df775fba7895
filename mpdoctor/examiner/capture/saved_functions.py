"""Hooks on functions of SavedModels: whether one whose signature takes float32 is given 16-bit values.

TensorFlow calls it all the same, and only its gradient raises."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

import tensorflow as tf

from mpdoctor.examiner.capture.layer_calls import dtype_name, flat_tensors
from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.facts.failure import PartFacts
from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks


# Where the class is in TensorFlow 2.13 and later, in 2.11 and 2.12, and before.
_MODULES = ("polymorphic_function.concrete_function", "polymorphic_function.monomorphic_function", "function")


def watch_saved_functions(layer_hooks: LayerHooks, tell: Callable[[PartFacts], None]) -> None:
    """Have `tell` called where a function of a SavedModel with a float32 signature is given 16-bit values, with the
    layer that gives them: its class and the line that makes it."""
    replace_method(
        _concrete_function_class(), "__call__", lambda *given, **named: _call(layer_hooks, tell, *given, **named)
    )


def _concrete_function_class() -> Any:
    """What a signature of a SavedModel is, or derives from. To make one and ask for its class would start the devices,
    which the program may still configure."""
    modules = (sys.modules.get(f"tensorflow.python.eager.{name}") for name in _MODULES)
    return next(vars(module)["ConcreteFunction"] for module in modules if "ConcreteFunction" in vars(module or object))


def _call(
    layer_hooks: LayerHooks,
    tell: Callable[[PartFacts], None],
    original: Callable[..., object],
    function: Any,
    *args: object,
    **kwargs: object,
) -> object:
    if any(dtype_name(tensor) in HALF for tensor in flat_tensors((args, kwargs))) and _takes_float32(function):
        layer = layer_hooks.stack[-1] if layer_hooks.stack else None
        name = str(getattr(function, "name", "") or "") if layer is None else type(layer).__name__
        tell(
            PartFacts(
                "saved-model", name, own=False, made_at=layer_hooks.origins.made_at(layer) if layer else own_location()
            )
        )
    return original(function, *args, **kwargs)


def _takes_float32(function: object) -> bool:
    """Whether its signature holds float32 and nothing of 16 bits."""
    specifications = tf.nest.flatten(getattr(function, "structured_input_signature", ()))
    dtypes = {str(getattr(getattr(specification, "dtype", None), "name", "")) for specification in specifications}
    return "float32" in dtypes and not dtypes & set(HALF)
