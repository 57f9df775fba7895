"""The GPUs that a model trains on, and what it computes there."""

from __future__ import annotations

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.model import ModelFacts

# They multiply matrices, which is what tensor cores do.
DENSE = frozenset(("Dense", "EinsumDense"))
RECURRENT = frozenset(("LSTM", "GRU", "SimpleRNN", "LSTMCell", "GRUCell", "SimpleRNNCell"))
CONVOLUTIONS = frozenset(
    ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "SeparableConv1D")
) | {"SeparableConv2D"}


def gpus(model: ModelFacts) -> tuple[DeviceFacts, ...]:
    """The NVIDIA GPUs that the model trains on, whose compute capability is known."""
    return tuple(device for device in model.devices if device.kind == "GPU" and device.compute_capability is not None)


def trains_on_tensor_cores(model: ModelFacts) -> bool:
    return model.is_trained and any(gpu.has_tensor_cores for gpu in gpus(model))


def half_dtype(model: ModelFacts) -> str:
    """The 16-bit dtype that its layers with weights compute in; "" for none."""
    dtypes = (layer.compute_dtype for layer in model.layers if layer.computes_in_half and layer.variables)
    return next(dtypes, "")


def multiplying(model: ModelFacts) -> list[LayerFacts]:
    """The layers that multiply matrices in 16 bits."""
    kinds = DENSE | RECURRENT | CONVOLUTIONS
    return [layer for layer in model.layers if layer.class_name in kinds and layer.computes_in_half and layer.variables]
