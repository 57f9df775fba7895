"""Calls a model that was built but never run, in a graph, so that its layers see tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.keras.private_state import functional_model_of, input_structure

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel


def trace_outputs(layer_hooks: LayerHooks, keras: KerasAdapter, model: KerasModel) -> None:
    """Keras 3 takes many a layer's word for the dtype of what it puts out. Nothing is computed."""
    functional = functional_model_of(model)
    structure = input_structure(functional)
    if structure is None or layer_hooks.calls.of(functional).is_real:
        return
    specifications = tf.nest.map_structure(lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype), structure)
    call = tf.function(lambda inputs: functional(inputs), autograph=False)
    try:
        call.get_concrete_function(specifications)
    except Exception:  # what cannot be run is told where the program runs it; here the layers' own word is left
        return
