"""Networks of keras.applications, and models of their inner tensors: what features are taken with. All their layers but
the first compute in the policy that they are made under, and none casts what it gives (Keras 3.15, tf_keras 2.21)."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import is_network
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, known, leaves, options
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


def network_of_named_outputs(model: Value) -> Value | None:
    """The network whose layers' tensors a model gives by the names of the layers, as in
    `{layer.name: layer.output for layer in vgg.layers}`; None of other models."""
    outputs = model.argument(1, "outputs") if isinstance(model, Call) and is_call_of(model, "keras.Model") else None
    name, tensor = _only_entry(outputs)
    if not isinstance(name, Attribute) or not isinstance(tensor, Attribute) or tensor.name not in OUTPUTS:
        return None
    layer = tensor.of if tensor.of is name.of and name.name == "name" else None
    listed = layer.of if isinstance(layer, Item) and layer.index is None else None
    network = _single(listed.of) if isinstance(listed, Attribute) and listed.name == "layers" else None
    return network if makes_network(network) else None


def _only_entry(mapping: Value | None) -> tuple[Value | None, Value | None]:
    """The key and the value of `{key: value}`, or of `dict([(key, value)])`, that stand for all of its entries."""
    if isinstance(mapping, Call) and is_call_of(mapping, "builtins.dict"):
        pairs = mapping.argument(0)
        pair = pairs.items[0] if isinstance(pairs, Collection) and len(pairs.items) == 1 else None
        return (pair.items[0], pair.items[1]) if isinstance(pair, Collection) and len(pair.items) == 2 else (None, None)
    if isinstance(mapping, Collection) and mapping.kind == "dict" and len(mapping.items) == 1:
        return mapping.keys[0], mapping.items[0]
    return None, None


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
