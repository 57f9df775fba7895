"""Which layers of a loaded model a program trains: itself, or as parts of a new model that is built on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mpdoctor.knowledge.api_names import FITTING, public_name
from mpdoctor.program.context import Branch, Context
from mpdoctor.program.events import Call, Operation, Write
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Either, Item, Part, Value, known, leaves, options, walk
from mpdoctor.semantics.source.layers.layer_order import LayerOrder, orders_of
from mpdoctor.semantics.source.layers.model_layers import (
    COPIES,
    LIGHT,
    NESTS,
    PARTS_OF_MODELS,
    adding_calls,
    layer_name,
    policies_inside,
)
from mpdoctor.semantics.source.programs.branches import exclude_each_other, happen_together
from mpdoctor.semantics.source.programs.models import OUTPUTS, TRAINING
from mpdoctor.semantics.source.trainings.saved_files import writers_of
from mpdoctor.semantics.source.trainings.trained_models import trainings

HALF = "mixed_float16"
_INPUTS = ("input", "inputs")
_ANYWHERE = frozenset((-1,))  # where the order of the layers is not known
_INPUT_LAYER = -2  # not among the layers of a Sequential


def models_that_train(facts: SourceFacts, load: Call) -> list[Call]:
    """The library's models that are certainly built on layers of this one, and train float16 layers of it:
    `Model(base.input, Dense(1)(base.output))`, `Sequential([base, Dense(1)])`. [] where the program trains in a loop of
    its own."""
    on_it = [
        (call, model) for call, model in trainings(facts) if model is not load and _is_built_on(facts, model, load)
    ]
    if not all(call.method in TRAINING for call, _ in on_it):
        return []
    certain = dict.fromkeys(model for call, model in on_it if happen_together(call.context, load.context))
    return [model for model in certain if trains_half(facts, load, model)]


def trains_half(facts: SourceFacts, load: Call, model: Call) -> bool:
    """Whether a model that is trained, the loaded one or one around it, certainly learns float16 layers of a file."""
    return all(_LoadedLayers(facts, load, order).learn_in(model) for order in _orders(facts, load))


def _is_built_on(facts: SourceFacts, model: Call, load: Call) -> bool:
    return any(_LoadedLayers(facts, load, order).taken_by(model) for order in _orders(facts, load))


def _orders(facts: SourceFacts, load: Call) -> list[LayerOrder | None]:
    """The orders that the layers in the file may have; None for one that is not known."""
    orders: list[LayerOrder | None] = []
    for writer in writers_of(facts, load):
        orders += orders_of(facts, writer) or [None]
    return orders or [None]


class _LoadedLayers:
    """The layers of one loaded model by their positions in the model that was saved (`order`: None where those are not
    known)."""

    def __init__(self, facts: SourceFacts, load: Call, order: LayerOrder | None) -> None:
        self._facts, self._load, self._order = facts, load, order
        self._all = _ANYWHERE if order is None else order.all

    def learn_in(self, model: Call) -> bool:
        return bool(self._half & self.taken_by(model) - self._frozen(model))

    @property
    def _half(self) -> frozenset[int]:
        layers = enumerate(self._order.layers) if self._order is not None else ()
        return frozenset(number for number, layer in layers if layer and self._is_half(layer)) or self._all & _ANYWHERE

    def _is_half(self, layer: Call) -> bool:
        return layer_name(layer) not in LIGHT and HALF in policies_inside(self._facts, layer)

    def taken_by(self, model: Call) -> frozenset[int]:
        """The layers that learn with a model of the library's own kinds: through layers and TensorFlow's functions, and
        nothing that stops a gradient."""
        if model is self._load:
            return self._all
        ids = frozenset[int]()
        waiting = [model, *self._added(model)] if _is_of_library(model) else []
        seen = {id(value) for value in waiting}
        for value in waiting:
            taken = self._taken(value)
            ids |= taken or frozenset()
            more = self._trained_through(value, model.context) if taken is None else ()
            new = [made for made in more if id(made) not in seen]
            seen |= {id(made) for made in new}
            waiting += new
        return ids

    def _added(self, model: Call) -> list[Value]:
        calls = [call for call in adding_calls(self._facts, model) if _is_for_weights(call.context, model.context)]
        return [added for call in calls for added in options(call.argument(0, "layer"))]

    def _taken(self, value: Value) -> frozenset[int] | None:
        """What of the loaded model a value is, or what a tensor of it is made of; None where it is no part of it."""
        held = self._held(value)
        if held is not None or not isinstance(value, Attribute):
            return held
        if value.name in _INPUTS:
            return self._behind(value.of) - (self._held(value.of) or frozenset())
        return self._behind(value.of) if value.name in OUTPUTS and self._held(value.of) is not None else None

    def _behind(self, layer: Value) -> frozenset[int]:
        """The layers of the loaded model from whose tensors the output of this layer is computed, itself among them."""
        held = self._held(layer)
        if held is None or layer is self._load or self._order is None:
            return frozenset() if held is None else self._all
        return frozenset[int]().union(*(self._order.below[number] for number in held if number >= 0))

    def _held(self, value: Value) -> frozenset[int] | None:
        """The layers of the loaded model that a value is, or is one of, or a list of: `model`, `model.get_layer(…)`,
        `model.layers[2:]`; empty where nobody knows which; None where it is no such thing."""
        if value is self._load:
            return self._all
        if isinstance(value, Item):
            among = self._held(value.of)
            return self._chosen(among, value.index) if among is not None else None
        if isinstance(value, Attribute):
            return self._layers_of(value.of) if value.name == "layers" else None
        return self._named(value) if isinstance(value, Call) and value.method == "get_layer" else None

    def _chosen(self, among: frozenset[int], index: Value | None) -> frozenset[int]:
        """`layers[index]`; without an index, any one of them."""
        if index is None or self._order is None:
            return among if index is None else frozenset()
        numbers, at = sorted(among), index.taken if isinstance(index, Part) else known(index)
        if isinstance(at, int):
            at = slice(at, at + 1 or None)
        return frozenset(numbers[at]) if isinstance(at, slice) else frozenset()

    def _layers_of(self, model: Value | None) -> frozenset[int] | None:
        """The layers of the loaded model, or of a model between its input and one of its tensors."""
        if model is self._load:
            return self._all
        last = self._inner_output(model) if isinstance(model, Call) and is_call_of(model, "keras.Model") else None
        taken = self._taken(last) if last is not None else None
        is_sequential = self._order is not None and None not in self._order.layers
        return taken | {_INPUT_LAYER} if taken is not None and is_sequential else taken

    def _inner_output(self, model: Call) -> Attribute | None:
        first, last = model.argument(0, "inputs"), model.argument(1, "outputs")
        is_input = isinstance(first, Attribute) and first.name in _INPUTS and first.of is self._load
        return last if is_input and isinstance(last, Attribute) else None

    def _named(self, get_layer: Call) -> frozenset[int] | None:
        among, name = self._layers_of(get_layer.receiver), known(get_layer.argument(0, "name"))
        if among is None or self._order is None or not isinstance(name, str):
            return among and frozenset()
        layers = enumerate(self._order.layers)
        return among & {number for number, layer in layers if layer and known(layer.keyword("name")) == name}

    def _trained_through(self, value: Value, context: Context) -> Iterator[Value]:
        """The parts of a value that learn with it: none of a choice, nor behind a layer that may do anything. A loop
        over the layers has made what it has made at its end."""
        if isinstance(value, Call):
            yield from _trained_through_call(value)
        elif isinstance(value, Either):
            yield from (call.callee for call in self._made_in_a_loop(value) if _is_for_weights(call.context, context))
        elif not isinstance(value, Attribute) or value.name in PARTS_OF_MODELS:
            yield from value.parts

    def _made_in_a_loop(self, value: Either) -> Iterator[Call]:
        for option in value.options:
            if isinstance(option, Call) and option.context.loops and self._held(option.callee):
                yield option

    def _frozen(self, model: Call) -> frozenset[int]:
        """The layers that a program freezes, or may freeze, and does not certainly set free before the model is trained
        for the last time."""
        off, models_off = frozenset[int](), set[int]()
        for write in self._settings(model):
            held = self._held(write.of) if write.of is not self._load else None
            if known(write.value) is not True:
                off |= held or self._all
                models_off |= {id(write.of)} if held is None else set()
            elif not _further_branches(write.context, model.context):
                off -= self._taken_whole(write.of) if held is None else held
                models_off.discard(id(write.of))
        return self._all if models_off else off

    def _taken_whole(self, model: Value) -> frozenset[int]:
        return self.taken_by(model) if isinstance(model, Call) else frozenset()

    def _settings(self, model: Call) -> Iterator[Write]:
        """The assignments of `trainable` to objects that hold layers with weights of the loaded model."""
        trained = [call.order for call in self._facts.method_calls(*FITTING) if model in options(call.receiver)]
        for write in self._facts.writes:
            is_before = not trained or write.order < max(trained)
            if write.name != "trainable" or not is_before or self._load not in walk(write.of):
                continue
            if not exclude_each_other(write.context, model.context) and not _is_of_light_layers(write, model.context):
                yield write


def _is_of_library(model: Call) -> bool:
    return class_of(model) is None and layer_name(model) in NESTS


def _trained_through_call(call: Call) -> Iterator[Value]:
    callee = call.callee
    if isinstance(callee, Attribute):
        yield from (callee,) if call.method in PARTS_OF_MODELS else ()
    elif isinstance(callee, Call):
        is_hidden = layer_name(callee) == "Lambda" or class_of(callee) is not None
        yield from () if is_hidden else (callee, *call.given)
    elif isinstance(callee, Item):
        yield from (callee, *call.given)
    elif isinstance(callee, Api) and call.method != "stop_gradient":
        yield from call.given if not public_name(callee.name).startswith(COPIES) else ()


def _further_branches(context: Context, outer: Context) -> list[Branch]:
    arms = {branch.statement for branch in outer.branches}
    return [branch for branch in context.branches if branch.statement not in arms]


def _is_for_weights(context: Context, outer: Context) -> bool:
    """Whether nothing but layers without weights, or kept in float32 anyhow, is left out there."""
    return all(_light_kinds(branch) is False for branch in _further_branches(context, outer))


def _is_of_light_layers(write: Write, outer: Context) -> bool:
    """Whether it is `if isinstance(layer, BatchNormalization): layer.trainable = False`."""
    return any(_light_kinds(branch) for branch in _further_branches(write.context, outer))


def _light_kinds(branch: Branch) -> bool | None:
    """Whether an arm is for layers of such kinds alone (True), or for all others (False); None for other questions."""
    test, taken = branch.test, branch.taken
    while isinstance(test, Operation) and test.operator == "not":
        test, taken = test.operands[0], not taken
    if not isinstance(test, Call) or not is_call_of(test, "builtins.isinstance"):
        return None
    kinds: Collection[Value] = list(leaves(test.argument(1)))
    is_light = all(isinstance(kind, Api) and kind.name.rpartition(".")[2] in LIGHT for kind in kinds)
    return taken if kinds and is_light else None
