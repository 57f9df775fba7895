"""Which of the layers that a loop makes, another kind in each round, its last round may have made."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, known

_HIDDEN_ACTIVATIONS = ("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "swish", "mish", "hard_swish")
_HIDDEN_LAYERS = (
    *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "BatchNormalization", "LayerNormalization"),
    *("GroupNormalization", "ReLU", "LeakyReLU", "PReLU", "ELU", "MaxPooling1D", "MaxPooling2D"),
)


def made_in_rounds(model: Call, layers: list[Call]) -> list[Call]:
    """Those of the layers that a loop makes which does not make the model as well."""
    return [layer for layer in layers if layer.context.loops > model.context.loops]


def without_hidden(layers: list[Call], in_rounds: list[Call]) -> list[Call]:
    """The layers without those of a loop's rounds that stand in the middle of a model as a rule, where the loop makes
    others as well: a Dense with a "relu" beside one without."""
    hidden = [layer for layer in in_rounds if _is_hidden(layer)]
    return layers if len(hidden) == len(in_rounds) else [layer for layer in layers if layer not in hidden]


def _is_hidden(layer: Call) -> bool:
    name = public_name(layer.callee.name).rpartition(".")[2] if isinstance(layer.callee, Api) else ""
    place = {"Activation": 0, "Dense": 1}.get(name)
    given = layer.keyword("activation") if place is None else layer.argument(place, "activation")
    activation = public_name(given.name).rpartition(".")[2] if isinstance(given, Api) else known(given)
    return name in _HIDDEN_LAYERS or activation in _HIDDEN_ACTIVATIONS
