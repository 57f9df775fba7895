"""Which layer may be a model's last where a loop makes or calls several, one in each round."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, known, options
from mpdoctor.semantics.source.layers.output_dtypes import sixteen_bit_output

_HIDDEN_ACTIVATIONS = ("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "swish", "mish", "hard_swish")
_HIDDEN_LAYERS = (
    *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "BatchNormalization", "LayerNormalization"),
    *("GroupNormalization", "ReLU", "LeakyReLU", "PReLU", "ELU", "MaxPooling1D", "MaxPooling2D"),
)


def last_layers_of_rounds(facts: SourceFacts, model: Call, found: dict[Call, list[Call]]) -> list[Call]:
    """The layers that may be a model's last. [] where a loop makes, calls or adds several, one in each round, of which
    some give 16 bits and others do not, `for kind in kinds: x = LAYERS[kind]()(x)`: nobody sees which the last round
    takes. What some rounds alone add behind another layer, `if i < last: x = ReLU()(x)`, is left out.

    found
        Of each layer that may be last, those that give its output: of a nested model its own last layers."""
    in_rounds = [layer for layer in found if _is_of_a_round(facts, model, layer)]
    if len({sixteen_bit_output(facts, inner) is None for layer in in_rounds for inner in found[layer]}) > 1:
        return []
    of_some = [layer for layer in in_rounds if len(layer.context.branches) > len(model.context.branches)]
    layers = [layer for layer in found if layer not in of_some] or list(found)
    return _without_hidden(layers, in_rounds)


def _is_of_a_round(facts: SourceFacts, model: Call, layer: Call) -> bool:
    """Whether a loop that does not make the model as well makes the layer, or calls or adds one that was made before
    it, as `self.stages[i](x)` and `model.add(layer)`."""
    if layer.context.loops > model.context.loops:
        return True
    taken = [call for call in facts.calls if call.callee is layer]
    taken += [add for add in facts.method_calls("add") if layer in options(add.argument(0, "layer"))]
    return bool(taken) and all(call.context.loops > layer.context.loops for call in taken)


def _without_hidden(layers: list[Call], in_rounds: list[Call]) -> list[Call]:
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
