"""The layers of a model in the order of its `layers`, and what each one's output is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, Known, Value, options
from mpdoctor.semantics.source.layers.model_layers import adding_calls, layer_name

INPUTS = ("keras.Input", "keras.layers.InputLayer")
_MOST_TENSORS = 2000


@dataclass(frozen=True)
class LayerOrder:
    """`layers`: None stands for an input. `below`: the positions of all that the output of each is made of, its own
    among them."""

    layers: tuple[Call | None, ...]
    below: tuple[frozenset[int], ...]

    @property
    def all(self) -> frozenset[int]:
        return frozenset(range(len(self.layers)))


def order_of(facts: SourceFacts, model: Call) -> LayerOrder | None:
    """None where the program does not tell: a loop makes some of the layers, or two stand side by side."""
    kind = layer_name(model)
    if model.open or kind not in ("Sequential", "Model", "Functional"):
        return None
    return _sequential(facts, model) if is_call_of(model, "keras.Sequential") else _functional(model)


def _sequential(facts: SourceFacts, model: Call) -> LayerOrder | None:
    held = _given_and_added(facts, model)
    inner = tuple(layer for layer in held if isinstance(layer, Call) and not is_call_of(layer, *INPUTS))
    are_seen = all(is_call_of(layer, *INPUTS) or layer in inner for layer in held)
    if not are_seen or not all(layer_name(layer) for layer in inner):
        return None
    return LayerOrder(inner, tuple(frozenset(range(position + 1)) for position in range(len(inner))))


def _given_and_added(facts: SourceFacts, model: Call) -> list[Value | None]:
    """With None where it may hold other layers, or not all of these."""
    given, adding = model.argument(0, "layers"), adding_calls(facts, model)
    listed = _listed(given) if given is not None else ()
    is_popped = any(model in options(call.receiver) for call in facts.method_calls("pop"))
    if listed is None or is_popped or not all(_is_beside(call, model) for call in adding):
        return [None]
    return [*listed, *(call.argument(0, "layer") for call in adding)]


def _is_beside(call: Call, model: Call) -> bool:
    """Whether it happens once, wherever the model is made."""
    return call.context.branches == model.context.branches and not call.context.loops


def _listed(value: Value) -> Sequence[Value] | None:
    """What a list holds; None where not all is seen, or it may be another one."""
    if not isinstance(value, Collection) or value.open or value.uniform or value.kind == "dict":
        return None
    return value.items if all(len(options(item)) == 1 for item in value.items) else None


def _functional(model: Call) -> LayerOrder | None:
    """As Keras sorts them: by the longest way to an output."""
    made_of = _tensors_behind(model)
    tensors = sorted(made_of, key=lambda tensor: tensor.order)
    depths = _depths(made_of, tensors)
    if not tensors or not _are_in_a_row(depths) or len(depths) < len(tensors):  # one is called twice
        return None
    position = {layer: number for number, layer in enumerate(sorted(depths, key=lambda layer: -depths[layer]))}
    below: dict[Call, frozenset[int]] = {}
    for tensor in tensors:
        behind = (below[_layer_of(source)] for source in made_of[tensor])
        below[_layer_of(tensor)] = frozenset((position[_layer_of(tensor)],)).union(*behind)
    layers = (None if is_call_of(layer, *INPUTS) else layer for layer in position)
    return LayerOrder(tuple(layers), tuple(below[layer] for layer in position))


def _are_in_a_row(depths: dict[Call, int]) -> bool:
    inner = [depth for layer, depth in depths.items() if not is_call_of(layer, *INPUTS)]
    return len(set(inner)) == len(inner)


def _depths(made_of: dict[Call, list[Call]], tensors: list[Call]) -> dict[Call, int]:
    """Of each layer. `tensors`: in the order in which they are made."""
    depths: dict[Call, int] = {}
    for tensor in reversed(tensors):
        depth = depths.setdefault(_layer_of(tensor), 0)
        for source in map(_layer_of, made_of[tensor]):
            depths[source] = max(depths.get(source, 0), depth + 1)
    return depths


def _tensors_behind(model: Call) -> dict[Call, list[Call]]:
    """Each tensor between the outputs of a model and its inputs, with those that it is made of; {} where one is made in
    another way than by a layer."""
    waiting = _tensors((model.argument(1, "outputs"),))
    found: dict[Call, list[Call]] = {}
    while waiting:
        tensor = waiting.pop()
        if tensor is None or not _is_made_by_layer(tensor) or len(found) > _MOST_TENSORS:
            return {}
        if tensor not in found:
            sources = [] if is_call_of(tensor, *INPUTS) else _tensors(tensor.given)
            found[tensor] = [source for source in sources if source is not None]
            waiting += sources
    return found


def _tensors(values: Sequence[Value | None]) -> list[Call | None]:
    """The tensors among the arguments of a layer; None for one that is not known."""
    return [tensor for value in values if not isinstance(value, Known) for tensor in _tensors_in(value)]


def _tensors_in(value: Value | None) -> Iterator[Call | None]:
    for item in (_listed(value) or (None,)) if isinstance(value, Collection) else (value,):
        yield item if isinstance(item, Call) else None


def _is_made_by_layer(tensor: Call) -> bool:
    is_input = is_call_of(tensor, *INPUTS)
    is_known = is_input or (isinstance(tensor.callee, Call) and layer_name(tensor.callee) is not None)
    return is_known and not tensor.context.loops


def _layer_of(tensor: Call) -> Call:
    return tensor if is_call_of(tensor, *INPUTS) or not isinstance(tensor.callee, Call) else tensor.callee
