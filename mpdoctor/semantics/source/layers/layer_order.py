"""The layers of a model in the order of its `layers`, and what each one's output is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, Earlier, Either, Known, Value, options
from mpdoctor.semantics.source.layers.model_layers import adding_calls, layer_name

INPUTS = ("keras.Input", "keras.layers.InputLayer")
_MOST_TENSORS = 2000
_ROUNDS = (1, 2, 4, 9)  # of a loop that makes layers: what holds for these holds for others
_Made = tuple[Call, int]


@dataclass(frozen=True)
class LayerOrder:
    """`layers`: None stands for an input. `below`: the positions of all that the output of each is made of, its own
    among them."""

    layers: tuple[Call | None, ...]
    below: tuple[frozenset[int], ...]

    @property
    def all(self) -> frozenset[int]:
        return frozenset(range(len(self.layers)))


def orders_of(facts: SourceFacts, model: Call) -> list[LayerOrder]:
    """The layer orders that a model may have: one for each number of rounds of a loop that makes layers. [] where the
    program does not show the order: two layers stand side by side, or are made in another way."""
    kind = layer_name(model)
    if model.open or kind not in ("Sequential", "Model", "Functional"):
        return []
    if is_call_of(model, "keras.Sequential"):
        orders = [_sequential(facts, model)]
    else:
        orders = [_functional(_Tensors(model, rounds)) for rounds in _ROUNDS]
    return [order for order in orders if order is not None] if None not in orders else []


def _sequential(facts: SourceFacts, model: Call) -> LayerOrder | None:
    held = _given_and_added(facts, model)
    inner = tuple(layer for layer in held if isinstance(layer, Call) and not is_call_of(layer, *INPUTS))
    are_seen = all(is_call_of(layer, *INPUTS) or layer in inner for layer in held)
    if not are_seen or not all(layer_name(layer) for layer in inner):
        return None
    return LayerOrder(inner, tuple(frozenset(range(position + 1)) for position in range(len(inner))))


def _given_and_added(facts: SourceFacts, model: Call) -> list[Value | None]:
    """The layers that a Sequential is given and those that `add` appends; with None where it may hold others, or not
    all of these."""
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
    return value.items


def _functional(tensors: _Tensors) -> LayerOrder | None:
    """The layers of a functional model in Keras' order: by the longest path to an output."""
    from graphlib import TopologicalSorter  # few programs are asked for that order

    made_of = tensors.behind_outputs()
    in_order = list(TopologicalSorter(made_of).static_order())
    of = {tensor: tensors.layer_of(tensor) for tensor in in_order}
    depths = _depths([(of[tensor], [of[source] for source in made_of[tensor]]) for tensor in reversed(in_order)])
    if not of or not _are_in_a_row(depths) or len(depths) < len(of):  # one is called twice
        return None
    layers = sorted(depths, key=lambda layer: -depths[layer])
    return _ordered(layers, [(layer, [of[source] for source in made_of[tensor]]) for tensor, layer in of.items()])


def _ordered(layers: Sequence[_Made], first_first: Sequence[tuple[_Made, list[_Made]]]) -> LayerOrder:
    """The order of these layers. `first_first`: each layer with the layers directly before it, in the order in which
    the program makes their tensors."""
    position = {layer: number for number, layer in enumerate(layers)}
    below: dict[_Made, frozenset[int]] = {}
    for layer, sources in first_first:
        below[layer] = frozenset((position[layer],)).union(*(below[source] for source in sources))
    return LayerOrder(
        tuple(None if is_call_of(layer, *INPUTS) else layer for layer, _ in layers),
        tuple(below[layer] for layer in layers),
    )


def _depths(last_first: Sequence[tuple[_Made, list[_Made]]]) -> dict[_Made, int]:
    """How far each layer is from an output. `last_first`: the layers, the last one first, each with the layers right
    before it."""
    depths: dict[_Made, int] = {}
    for layer, sources in last_first:
        depth = depths.setdefault(layer, 0)
        for source in sources:
            depths[source] = max(depths.get(source, 0), depth + 1)
    return depths


def _are_in_a_row(depths: dict[_Made, int]) -> bool:
    inner = [depth for (layer, _), depth in depths.items() if not is_call_of(layer, *INPUTS)]
    return len(set(inner)) == len(inner)


class _Tensors:
    """The tensors of a functional model, each with the number of the round of the loop that makes it (0 outside of
    loops)."""

    def __init__(self, model: Call, rounds: int) -> None:
        self._model, self._rounds = model, rounds

    def behind_outputs(self) -> dict[_Made, list[_Made]]:
        """Each tensor between the outputs and the inputs, with the tensors that it is computed from; {} where one does
        not come from a layer."""
        waiting = self._resolved((self._model.argument(1, "outputs"),), None)
        behind: dict[_Made, list[_Made]] = {}
        while waiting:
            made = waiting.pop()
            if made is None or not self._is_by_layer(made[0]) or len(behind) > _MOST_TENSORS:
                return {}
            if made not in behind:
                tensor, number = made
                given = () if is_call_of(tensor, *INPUTS) else tensor.given
                sources = self._resolved(given, number if self._is_in_loop(tensor) else None)
                behind[made] = [source for source in sources if source is not None]
                waiting += sources
        return behind

    def layer_of(self, made: _Made) -> _Made:
        tensor, number = made
        if is_call_of(tensor, *INPUTS) or not isinstance(tensor.callee, Call):
            return made
        return tensor.callee, number if self._is_in_loop(tensor.callee) else 0

    def _is_by_layer(self, tensor: Call) -> bool:
        is_deep = tensor.context.loops > self._model.context.loops + 1
        is_layer = isinstance(tensor.callee, Call) and layer_name(tensor.callee) is not None
        return not is_deep and (is_layer or is_call_of(tensor, *INPUTS))

    def _is_in_loop(self, call: Call) -> bool:
        return call.context.loops > self._model.context.loops

    def _resolved(self, values: Sequence[Value | None], number: int | None) -> list[_Made | None]:
        """The tensors among the arguments of what a loop makes in this round (None: what no loop makes);
        None for one that is not known."""
        return [self._made(value, number) for value in _tensors(values)]

    def _made(self, value: Value | None, number: int | None) -> _Made | None:
        if isinstance(value, Either):
            value, number = self._chosen(value, number)
        if not isinstance(value, Call):
            return None
        return value, (self._rounds - 1 if number is None else number) if self._is_in_loop(value) else 0

    def _chosen(self, value: Either, number: int | None) -> tuple[Value | None, int | None]:
        """(value, the round that made it), of a value behind a loop (`number` None) or at the start of round `number`:
        what stood before the loop, later what the body has made."""
        ends = [end for option in value.options if isinstance(option, Earlier) for end in option.ends]
        if number is None:
            return self._made_last(value.options), None
        if len(ends) != 1:
            return None, None
        before = [option for option in value.options if not isinstance(option, Earlier)]
        return (ends[0], number - 1) if number else (before[0] if len(before) == 1 else self._made_last(before), None)

    def _made_last(self, choices: Sequence[Value]) -> Value | None:
        """The tensor of the last loop, if every loop runs at least once; else None."""
        made = [choice for choice in choices if isinstance(choice, Call) and self._is_in_loop(choice)]
        certain = [call for call in made if call.context.branches == self._model.context.branches]
        return max(certain, key=lambda call: call.order) if certain and len(certain) == len(made) else None


def _tensors(values: Sequence[Value | None]) -> Iterator[Value | None]:
    """The arguments of a layer, and what its lists hold; None where that is not known."""
    for value in values:
        if isinstance(value, Collection):
            yield from _listed(value) or (None,)
        elif not isinstance(value, Known):
            yield value
