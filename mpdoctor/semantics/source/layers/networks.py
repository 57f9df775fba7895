"""Networks of keras.applications, and models of their inner tensors: what features are taken with. All their layers but
the first compute in the policy that they are made under, and none casts what it gives (Keras 3.15, tf_keras 2.21)."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import is_network
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.values import Api, Attribute, Item, Value, known, leaves, options
from mpdoctor.semantics.source.programs.models import OUTPUTS


def networks_behind(model: Value) -> list[Call]:
    """The networks of keras.applications that a model is one of, or whose inner tensors are all of its outputs; [] for
    other models."""
    if makes_network(model):
        assert isinstance(model, Call)
        return [model]
    if not is_call_of(model, "keras.Model"):
        return []
    assert isinstance(model, Call)
    networks: list[Call] = []
    for tensor in leaves(model.argument(1, "outputs")):
        behind = _behind_tensor(tensor)
        if not behind:
            return []
        networks += behind
    return list(dict.fromkeys(networks))


def makes_network(value: Value | None) -> bool:
    """Whether it is `keras.applications.VGG19(…)`, with or without its classifying top."""
    return isinstance(value, Call) and isinstance(value.callee, Api) and is_network(value.callee.name)


def _behind_tensor(tensor: Value) -> list[Call]:
    """The networks whose tensor this is: `network.output`, `network.get_layer("block1_conv2").output`."""
    holder = tensor.of if isinstance(tensor, Attribute) and tensor.name in OUTPUTS else None
    networks = []
    for option in options(holder):
        network = _network_of_layer(option) if not makes_network(option) else option
        if not isinstance(network, Call) or not makes_network(network):
            return []
        networks.append(network)
    return networks


def _network_of_layer(layer: Value) -> Value | None:
    """The network that a layer is taken out of, unless it is the one for its inputs."""
    if isinstance(layer, Call) and layer.method == "get_layer":
        name = known(layer.argument(0, "name"))
        is_inner = "index" not in dict(layer.keywords) and not (isinstance(name, str) and name.startswith("input"))
        return _single(layer.receiver) if is_inner else None
    if isinstance(layer, Item) and isinstance(layer.of, Attribute) and layer.of.name == "layers":
        number = known(layer.index)
        return _single(layer.of.of) if isinstance(number, int) and number != 0 else None
    return None


def _single(value: Value | None) -> Value | None:
    choices = options(value)
    return choices[0] if len(choices) == 1 else None
