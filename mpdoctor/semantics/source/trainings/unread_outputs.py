"""Outputs of a model that no loss is computed from: a hidden state beside what it predicts."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts, Instance
from mpdoctor.program.values import Collection, Item, Value, known, leaves, options, walk
from mpdoctor.semantics.source.layers.output_layers import is_functional, layers_behind, output_layers
from mpdoctor.semantics.source.loops.gradients import is_gradient_call, target
from mpdoctor.semantics.source.optimizers.wrappers import compiles_of
from mpdoctor.semantics.source.programs.running_functions import functions_around


class UnreadOutputs:
    """The tensors of one model that no loss is computed from, and the layers that give nothing else."""

    def __init__(self, facts: SourceFacts, model: Call) -> None:
        self.tensors: list[Value] = []
        self.layers: list[Call] = []
        read_keys = _keys_that_losses_read(facts, model) or _keys_with_losses(facts, model)
        if read_keys is None:
            return
        outputs = [entry for structure in _structures(facts, model) for entry in _entries(structure, read_keys)]
        if not read_keys <= {key for key, _ in outputs}:  # one of the others may have the name that is missing
            outputs = [(key, value) for key, value in outputs if key is not None]
        read = [tensor for key, value in outputs if key in read_keys for tensor in leaves(value)]
        others = [tensor for key, value in outputs if key not in read_keys for tensor in leaves(value)]
        self.tensors = [tensor for tensor in others if tensor not in read]
        behind_read = _layers(facts, read)
        self.layers = [layer for layer in _layers(facts, self.tensors) if layer not in behind_read]


def _keys_that_losses_read(facts: SourceFacts, model: Call) -> set[object] | None:
    """The places of the model's output, or the keys of it, that its train_step differentiates; None where that may be
    all of them."""
    own = class_of(model)
    step = own.find_method("train_step") if own is not None else None
    if own is None or step is None:
        return None
    losses = [target(call) for call in facts.calls if _is_taken_in(facts, call, step)]
    users = [value for loss in losses for value in walk(loss) if any(_is_output_of(part, own) for part in value.parts)]
    keys = {known(value.index) if isinstance(value, Item) else None for value in users}
    return keys if keys and all(_is_place(key) for key in keys) else None


def _keys_with_losses(facts: SourceFacts, model: Call) -> set[object] | None:
    """The places, the keys or the names of the outputs for which compile() is given a loss; None where it may have one
    for each, or losses are taken elsewhere."""
    own = class_of(model)
    if own is not None and own.find_method("train_step") is not None:
        return None
    keys = set[object]()
    for call in compiles_of(facts, model):
        for losses in options(call.argument(1, "loss")) or (None,):
            if not isinstance(losses, Collection) or losses.open or losses.kind == "set":
                return None
            places = [known(key) for key in losses.keys] if losses.kind == "dict" else range(len(losses.items))
            keys.update(place for place, loss in zip(places, losses.items, strict=True) if known(loss) is not None)
    return keys if keys and len({type(key) for key in keys}) == 1 and all(_is_place(key) for key in keys) else None


def _is_place(key: object) -> bool:
    return isinstance(key, str) or (isinstance(key, int) and key >= 0)


def _is_taken_in(facts: SourceFacts, call: Call, step: FunctionFacts) -> bool:
    is_gradient = call.method == "gradient" and is_gradient_call(call)
    return is_gradient and step in (call.context.function, *functions_around(facts, call.context))


def _is_output_of(value: Value, own: ClassFacts) -> bool:
    callee = value.callee if isinstance(value, Call) else None
    return isinstance(callee, Instance) and callee.of in tuple(own.lineage())


def _structures(facts: SourceFacts, model: Call) -> Iterator[Value]:
    """The structures that the model returns."""
    if is_functional(model):
        yield from options(model.argument(1, "outputs"))
        return
    own = class_of(model)
    call = own.find_method("call") if own is not None else None
    for returned in facts.returns_of(call) if call is not None else ():
        yield from options(returned.value)


def _entries(structure: Value, read_keys: set[object]) -> Iterator[tuple[object, Value]]:
    """(key or place, output) of a model's outputs. Where these keys are names and the outputs a list, the key is the
    name of the layer that gives one; None where it is not seen."""
    if not isinstance(structure, Collection) or structure.open:
        return
    keys: list[object] = [known(key) for key in structure.keys]
    if structure.kind != "dict":
        are_names = any(isinstance(key, str) for key in read_keys)
        keys = list(map(_name_of_output, structure.items) if are_names else range(len(structure.items)))
    yield from zip(keys, structure.items, strict=True)


def _name_of_output(output: Value) -> str | None:
    layers = layers_behind(output)
    name = known(layers[0].keyword("name")) if len(layers) == 1 else None
    return name if isinstance(name, str) else None


def _layers(facts: SourceFacts, tensors: list[Value]) -> list[Call]:
    """The layers that give these tensors; of a nested model the layers that give its outputs."""
    behind = (layer for tensor in tensors for layer in layers_behind(tensor))
    return [inner for layer in behind for inner in (output_layers(facts, layer) or [layer])]
