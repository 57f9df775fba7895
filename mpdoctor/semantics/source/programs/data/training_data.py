"""Which values a program passes to Keras as data, and their origins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of, method_called
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, known, leaves, options
from mpdoctor.semantics.source.programs.data.pandas_tables import whole_table
from mpdoctor.semantics.source.programs.models import is_model

MOST_NESTED = 8
SEQUENCES = ("keras.utils.Sequence", "keras.utils.PyDataset", "keras.utils.data_utils.Sequence")
WIDE = ("float32", "float64")
DATASETS = ("from_tensor_slices", "from_tensors")
SHAPING = frozenset(
    [
        "reshape",
        "copy",
        "T",
        "values",
        "to_numpy",
        "ravel",
        "flatten",
        "squeeze",
        "transpose",
        "shuffle",
        "batch",
        "repeat",
        "prefetch",
        "cache",
        "take",
        "skip",
        "as_numpy_iterator",
    ]
)
_TAKING_DTYPE = ("numpy.array", "numpy.asarray", "tensorflow.constant", "tensorflow.convert_to_tensor")
PASSING = (
    "numpy.array",
    "numpy.asarray",
    "numpy.reshape",
    "numpy.expand_dims",
    "numpy.squeeze",
    "numpy.stack",
    "numpy.concatenate",
    "numpy.vstack",
    "numpy.hstack",
    "tensorflow.reshape",
    "tensorflow.expand_dims",
    *(f"tensorflow.image.{name}" for name in ("flip_left_right", "flip_up_down", "rot90", "random_crop")),
    *(f"tensorflow.image.{name}" for name in ("random_flip_left_right", "random_flip_up_down", "central_crop")),
    *(f"tensorflow.image.random_{name}" for name in ("brightness", "contrast", "hue", "saturation")),
    *(f"tensorflow.image.adjust_{name}" for name in ("brightness", "contrast", "gamma", "hue", "saturation")),
    *("tensorflow.image.pad_to_bounding_box", "tensorflow.image.crop_to_bounding_box"),
    *("tensorflow.image.resize_with_crop_or_pad", "tensorflow.clip_by_value", "tensorflow.pad"),
)


class FedValue(NamedTuple):
    """A value that a call trains a model on, as "features" or as "labels"."""

    call: Call
    role: str
    value: Value


def fed_values(facts: SourceFacts) -> Iterator[FedValue]:
    """Everything that a model is trained on."""
    for call in facts.method_calls(*FITTING):
        if not all(is_model(option) and not _takes_itself(option, call.method) for option in options(call.receiver)):
            continue
        features, labels = call.argument(0, "x"), call.argument(1, "y")
        for batch in _batches(facts, features):
            for role, part in zip(("features", "labels"), batch.items, strict=False):
                for leaf in leaves(part, _is_one_array):
                    yield FedValue(call, role, leaf)
        for role, value in (("features", features), ("labels", labels)):
            for leaf in leaves(value, _is_one_array):
                yield FedValue(call, role, leaf)


def _batches(facts: SourceFacts, source: Value | None) -> Iterator[Collection]:
    """What a generator of the user's own yields, and what an object of a class of theirs gives that is a Sequence."""
    for option in options(source):
        given: list[Value] = []
        if isinstance(option, Call) and isinstance(option.yielded, Collection):
            given = list(option.yielded.items)
        own = class_of(option)
        if own is not None and any(base.is_(*SEQUENCES) for base in own.library_bases()):
            method = own.find_method("__getitem__")
            given = [returned.value for returned in facts.returns_of(method)] if method is not None else []
        for value in given:
            yield from (batch for batch in options(value) if isinstance(batch, Collection) and batch.kind == "tuple")


def _takes_itself(model: Value, method: str) -> bool:
    """Whether the user's own class has such a method, or may have: what Keras is handed is then not what is given."""
    own = class_of(model)
    if own is None:
        return False
    bases = (option for ancestor in own.lineage() for base in ancestor.bases for option in options(base))
    return own.find_method(method) is not None or not all(isinstance(base, (Api, Defined)) for base in bases)


def behind(value: Value, past_changes: bool = True) -> Iterator[Value]:
    """The value, and what it is a reshaped, batched or indexed view of; with `past_changes` also what something else
    was made of: by `Dataset.map`, pictures of the names of their files, or by `np.array(…, dtype=…)`, numbers of
    texts."""
    yield from _behind(value, 0, past_changes, set())


def _behind(value: Value, depth: int, past_changes: bool, seen: set[tuple[int, int]]) -> Iterator[Value]:
    """Like `behind`. `seen`: identity and depth of what was asked already: forty lines of `x = [x, x]` hold the first
    2^40 times."""
    if (id(value), depth) in seen:
        return
    seen.add((id(value), depth))
    yield value
    if depth > 12 or (not past_changes and isinstance(value, Call) and _makes_something_else(value)):
        return
    is_dict = isinstance(value, Collection) and value.kind == "dict"
    for part in value.parts if is_dict and past_changes else _parts(value):
        for option in options(part):
            yield from _behind(option, depth + 1, past_changes, seen)


def _makes_something_else(call: Call) -> bool:
    is_array = isinstance(call.callee, Api) and call.callee.is_(*_TAKING_DTYPE)
    return call.method == "map" or (is_array and call.argument(1, "dtype") is not None)


def mapped_functions(value: Value) -> Iterator[FunctionFacts]:
    """The functions of the user's that `Dataset.map` applies on the way to this value."""
    for source in behind(value):
        yield from functions_of_map(source)


def functions_of_map(source: Value) -> Iterator[FunctionFacts]:
    """The functions of the user's that this call of `Dataset.map` applies, of an object its `__call__`; none for any
    other value."""
    given_to_map = source.argument(0, "map_func") if isinstance(source, Call) and source.method == "map" else None
    for given in options(given_to_map):
        is_partial = isinstance(given, Call) and is_call_of(given, "functools.partial") and given.args
        function = given.args[0] if isinstance(given, Call) and is_partial else given
        if isinstance(function, Defined) and isinstance(function.of, FunctionFacts):
            yield function.of
        method = method_called(given)
        if method is not None:
            yield method


def widened_by_maps(facts: SourceFacts, value: Value) -> set[int]:
    """The ids of the values that a `Dataset.map` replaces by float32 ones, whatever their dtype was before."""
    ids: set[int] = set()
    for source in behind(value):
        returned = [result for function in functions_of_map(source) for result in _results(facts, function)]
        if isinstance(source, Call) and source.receiver is not None and returned:
            for place in range(max(map(len, returned))):
                if all(place < len(items) and facts.dtype_of(items[place]) in WIDE for items in returned):
                    ids |= _ids_at(source.receiver, place)
    return ids


def _results(facts: SourceFacts, function: FunctionFacts) -> Iterator[tuple[Value, ...]]:
    """The elements of the tuple that a function returns, each time; of anything else itself alone."""
    for returned in facts.returns_of(function):
        for result in options(returned.value):
            is_tuple = isinstance(result, Collection) and result.kind == "tuple"
            yield result.items if isinstance(result, Collection) and is_tuple else (result,)


def _ids_at(dataset: Value, place: int) -> set[int]:
    """The ids of the values from which a dataset takes part number `place` of its elements; where that is not seen, of
    everything that it is made of."""
    sources = [*behind(dataset)]
    pairs = [made for made in sources if isinstance(made, Collection) and made.kind == "tuple"]
    if pairs:
        sources = [made for pair in pairs for item in pair.items[place : place + 1] for made in behind(item)]
    return set(map(id, sources))


def _parts(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Item):
        return () if whole_table(value.of) is not None else tuple(_taken(value))
    if isinstance(value, Operation):  # x / 255.0 keeps what x is
        arrays = tuple(operand for operand in value.operands if not is_number(operand))
        return arrays if len(arrays) == 1 and len(value.operands) == 2 else ()
    if isinstance(value, Attribute) and value.name in SHAPING:
        return (value.of,)
    if isinstance(value, Collection) and value.kind in ("list", "tuple"):
        return value.items
    return _parts_of_call(value) if isinstance(value, Call) else ()


def _taken(item: Item, depth: int = 0) -> Iterator[Value]:
    """What an item is taken from; out of a list or tuple that the program writes out, the element itself: a pair of a
    name and an array is no array of names."""
    for option in options(item.of):
        holders = _taken(option, depth + 1) if isinstance(option, Item) and depth < MOST_NESTED else (option,)
        for holder in holders:
            place = known(item.index)
            if not isinstance(holder, Collection) or holder.kind == "dict":
                yield holder
            elif item.index is None:  # what a loop over it is given
                yield from holder.items
            else:
                yield (holder.entry(place) if isinstance(place, int) else None) or holder


def _parts_of_call(call: Call) -> tuple[Value, ...]:
    if isinstance(call.callee, Attribute):
        of, name = call.callee.of, call.callee.name
        is_table = isinstance(of, Item) or is_call_of(of, "pandas.DataFrame", "pandas.Series")
        if name in SHAPING or (name in ("map", "filter") and not is_table):  # a table's map puts other values there
            return (of,)
    if isinstance(call.callee, Api):
        last = call.callee.name.rpartition(".")[2]
        is_dataset = last in DATASETS and ".data." in call.callee.name
        if is_dataset or call.callee.name in PASSING or call.callee.is_(*PASSING) or last == "train_test_split":
            return call.args
    return ()


def _is_one_array(value: Collection) -> bool:
    """Whether it is fed as a whole: a list of strings is one array of text. A set is no array, whatever it holds."""
    texts = [isinstance(item, Known) and isinstance(item.value, str) for item in value.items]
    return value.kind == "set" or (bool(texts) and all(texts))
