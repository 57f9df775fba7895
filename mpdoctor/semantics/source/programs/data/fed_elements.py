"""What one element of a training's data holds, and what of it a model's `call()` is given."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.program.events import Call
from mpdoctor.program.instances import has_method, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Attribute, Collection, Item, Value, is_api, known, options
from mpdoctor.semantics.source.programs.data.training_data import DATASETS, functions_of_map

RUNNING = (*FITTING, "evaluate", "predict", "test_on_batch", "predict_on_batch")
KEEPING_ELEMENTS = ("batch", "shuffle", "repeat", "prefetch", "cache", "take", "skip", "with_options")
MODEL = "keras.Model"
FROM_GENERATOR = "tensorflow.data.Dataset.from_generator"
RANGE_OF_A_DATASET = "tensorflow.data.Dataset.range"
LONGEST = 12
Keys = tuple[object, ...]


def keys_of_part(value: Value) -> tuple[Value, Keys]:
    """The value that a part is taken out of by literal keys, and these: `inputs` and ("user", 0) of
    `inputs["user"][0]`."""
    keys: list[object] = []
    while isinstance(value, Item) and isinstance(known(value.index), (str, int)):
        keys.insert(0, known(value.index))
        choices = options(value.of)
        if len(choices) != 1:
            break
        value = choices[0]
    return value, tuple(keys)


def part_at(value: Value | None, keys: Keys) -> tuple[Value, ...]:
    """What a structure that the program writes out holds at these keys; () where that is not certain."""
    parts = options(value)
    for key in keys:
        held = [option.entry(key) if isinstance(option, Collection) else None for option in parts]
        if None in held:
            return ()
        parts = tuple(choice for entry in held for choice in options(entry))
    return parts


def inputs_of_training(facts: SourceFacts, call: Call) -> tuple[Value, ...]:
    """What the model's `call()` is given by `fit()` and the like, batch by batch; () where that is not certain."""
    data = call.argument(0, "x")
    elements = elements_of(facts, data)
    if elements is None:
        return options(data)
    return tuple(choice for element in elements for choice in _features(element))


def elements_of(facts: SourceFacts, data: Value | None, depth: int = 0) -> tuple[Value, ...] | None:
    """What one element of a dataset or of a generator's batches may be, () where nobody knows; None for what is no
    dataset."""
    choices = options(data)
    if len(choices) != 1 or not isinstance(choices[0], Call) or depth > LONGEST:
        return () if len(choices) > 1 else None
    source = choices[0]
    if isinstance(source.yielded, Collection):
        return _yielded(source)
    if is_call_of(source, FROM_GENERATOR):
        return _of_generator(facts, source)
    if is_call_of(source, RANGE_OF_A_DATASET):
        return (source,)
    if isinstance(source.callee, Attribute):
        before = elements_of(facts, source.callee.of, depth + 1)
        if before is not None and source.method == "map":
            return _mapped(facts, source)
        return before if source.method in KEEPING_ELEMENTS else None if before is None else ()
    if source.method in DATASETS and is_api(source.callee, *(f"tensorflow.data.Dataset.{name}" for name in DATASETS)):
        return options(source.argument(0, "tensors"))
    return None


def _yielded(generator: Call) -> tuple[Value, ...]:
    """What a generator of the user's gives, each time."""
    batches = generator.yielded.items if isinstance(generator.yielded, Collection) else ()
    return tuple(choice for batch in batches for choice in options(batch))


def _of_generator(facts: SourceFacts, dataset: Call) -> tuple[Value, ...]:
    """What the generator gives that a dataset is made from: a function of the user's, or what a lambda calls."""
    function = dataset.argument(0, "generator")
    if not isinstance(function, Defined) or not isinstance(function.of, FunctionFacts):
        return ()
    called = [event.value for event in facts.returns_of(function.of)]
    called += [call for call in facts.calls if call.location == dataset.location]
    return tuple(choice for call in called if isinstance(call, Call) for choice in _yielded(call))


def given_to_map(facts: SourceFacts, value: Value) -> Iterator[Value]:
    """What a parameter of a function that `Dataset.map` applies stands for, or a part of one."""
    whole, keys = keys_of_part(value)
    if not isinstance(whole, Parameter) or whole.function is None or whole.function.owner is not None:
        return
    for call in facts.method_calls("map"):
        if any(function is whole.function for function in functions_of_map(call)):
            for element in elements_of(facts, call.receiver) or ():
                is_spread = isinstance(element, Collection) and element.kind == "tuple"
                yield from part_at(element, (whole.index, *keys) if is_spread else keys)


def given_by_training(facts: SourceFacts, value: Value) -> Iterator[Value]:
    """What `fit()` and the like are given for a part of the first input of a user's model, `inputs["step"]`, or for a
    `keras.Input` of a functional one."""
    if is_call_of(value, "keras.Input"):
        yield from _given_for_input(facts, value)
        return
    whole, keys = keys_of_part(value)
    method = whole.function if isinstance(whole, Parameter) and whole.index == 1 else None
    if method is None or method.name != "call" or method.owner is None or method.owner.kind != "model":
        return
    for call in facts.method_calls(*RUNNING):
        if call.receiver is not None and has_method(call.receiver, method):
            for given in inputs_of_training(facts, call):
                yield from part_at(given, keys)


def _given_for_input(facts: SourceFacts, made: Value) -> Iterator[Value]:
    for call in facts.method_calls(*RUNNING):
        for model in options(call.receiver):
            inputs = model.argument(0, "inputs") if isinstance(model, Call) and is_call_of(model, MODEL) else None
            place = _place_of(made, inputs)
            if place is None:
                continue
            for given in inputs_of_training(facts, call):
                by_name = isinstance(given, Collection) and given.kind == "dict"
                yield from part_at(given, _named_keys(made, place) if by_name else place)


def _place_of(made: Value, inputs: Value | None) -> Keys | None:
    """The key or number of an Input among a model's inputs: () for the only one, None where it is not among them."""
    if inputs is made:
        return ()
    if not isinstance(inputs, Collection) or inputs.open:
        return None
    names = inputs.keys if inputs.kind == "dict" else ()
    places = [known(names[place]) if names else place for place, item in enumerate(inputs.items) if item is made]
    return tuple(places) if len(places) == 1 else None


def _named_keys(made: Value, place: Keys) -> Keys:
    """The key of an Input's data in a dict: its own name, where the model has them in a list."""
    name = known(made.argument(None, "name")) if isinstance(made, Call) else None
    return (name,) if isinstance(name, str) and not any(isinstance(key, str) for key in place) else place


def _mapped(facts: SourceFacts, source: Call) -> tuple[Value, ...]:
    """What the function gives that this call of `Dataset.map` applies."""
    functions = list(functions_of_map(source))
    returned = [event.value for function in functions for event in facts.returns_of(function)]
    return tuple(choice for value in returned for choice in options(value))


def _features(element: Value) -> tuple[Value, ...]:
    """`x` of an element `(x, y)` or `(x, y, weights)`; anything else itself."""
    is_pair = isinstance(element, Collection) and element.kind == "tuple"
    return part_at(element, (0,)) if is_pair else (element,)
