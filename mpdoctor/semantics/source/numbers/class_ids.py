"""Class ids: their use as an index, their casts on the way, the number of classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Api, Collection, Item, Value, is_api, known, options, walk
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.layers.output_layers import output_layers
from mpdoctor.semantics.source.numbers.constants import CASTS, numbers_from_value
from mpdoctor.semantics.source.programs.losses_and_metrics import compiled, function_of, prediction_of

PASSING = ("reshape", "squeeze", "expand_dims", "identity", "stop_gradient", "flatten", "maximum", "clip_by_value")
ROUNDING = ("round", "floor", "rint")
INDEXING = ("one_hot", "gather", "take", "embedding_lookup", "sparse_softmax_cross_entropy_with_logits")
SPARSE = ("sparse_categorical_crossentropy", "SparseCategoricalCrossentropy")
JOINING = ("concat", "concatenate", "stack")
SIZED = ("zeros", "ones", "eye", "add_weight", "normal", "uniform", "fill", "truncated_normal")
FLOATS = ("float32", "float64")
MOST_STEPS = 20
Indexing = tuple[Call, Value, Value]


def indexings(facts: SourceFacts) -> Iterator[Indexing]:
    """(call, the ids, the value whose size tells how many classes there are)."""
    by_name = [call for call, name in functions_called(facts) if name in INDEXING]
    for call in (*by_name, *facts.calls_named(*SPARSE), *facts.object_calls):
        name = function_named(call)
        if name == "one_hot":
            ids, sized = call.argument(0, "indices") or call.keyword("x"), call.argument(1, "depth")
        elif name in ("gather", "take", "embedding_lookup"):
            ids, sized = call.argument(1, "indices") or call.keyword("ids"), call.argument(0, "params")
        elif name == "sparse_softmax_cross_entropy_with_logits":
            ids, sized = call.argument(0, "labels"), call.argument(1, "logits")
        elif isinstance(call.callee, Call) and is_call_of(call.callee, "keras.layers.Embedding"):
            ids, sized = call.argument(0, "inputs"), call.callee.argument(0, "input_dim")
        elif _is_sparse_loss(call):
            ids, sized = call.argument(0, "y_true") or call.keyword("target"), prediction_of(call) or call.argument(1)
        else:
            continue
        if ids is not None and sized is not None:
            yield call, ids, sized


def casts_behind(ids: Value) -> Iterator[Call]:
    """The casts that the ids have been through, the last first. Of ids that are joined to others, `tf.concat([word,
    negatives], 1)`, only those of what the program is given: the others may be a start token, or a few numbers."""
    yield from _casts_in_line(ids)
    for part in _joined(ids):
        if isinstance(ids_before_casts(part), (Parameter, Item)):
            yield from _casts_in_line(part)


def _casts_in_line(ids: Value) -> Iterator[Call]:
    yield from (value for value in _chain(ids) if isinstance(value, Call) and is_api(value.callee, *CASTS))


def _joined(ids: Value) -> tuple[Value, ...]:
    """The values that ids are concatenated from."""
    last = list(_chain(ids))[-1:]
    parts = [value.argument(0) for value in last if isinstance(value, Call) and function_named(value) in JOINING]
    return tuple(item for part in parts if isinstance(part, Collection) and part.kind != "dict" for item in part.items)


def _chain(ids: Value) -> Iterator[Value]:
    """The ids, and what each of them is a cast, a part or another shape of."""
    for _ in range(MOST_STEPS):
        choices = options(ids)
        if len(choices) != 1:
            return
        value = choices[0]
        yield value
        inner: Value | None = None
        if isinstance(value, Item):
            inner = value.of
        elif isinstance(value, Call) and (
            is_api(value.callee, *CASTS) or function_named(value) in (*PASSING, *ROUNDING)
        ):
            inner = value.argument(0, "x") or value.keyword("tensor") or value.keyword("input")
        if inner is None:
            return
        ids = inner


def ids_before_casts(ids: Value) -> Value:
    """The ids as they were before the first cast."""
    last = next(iter(list(_casts_in_line(ids))[-1:]), None)
    before = ids if last is None else last.argument(0, "x") or last.keyword("tensor") or ids
    while isinstance(before, Call) and function_named(before) in PASSING and before.argument(0) is not None:
        before = before.argument(0) or before
    return before


def gives_floats(made: Value) -> bool:
    """Whether a `keras.Input` is one of floats."""
    given = made.keyword("dtype") if isinstance(made, Call) else None
    return given is None or known(given) is None or dtype_named(given) in FLOATS


def classes_behind(facts: SourceFacts, sized: Value) -> int:
    """How many classes a one_hot depth, a table or a model's output stands for; 0 where it is not known."""
    numbers = numbers_from_value(sized)
    if numbers:
        return int(min(numbers))
    classes = 0
    for part in walk(sized):
        if isinstance(part, Call) and (function_named(part) or part.method) in SIZED:
            classes = max(classes, _first_dimension(part))
        elif isinstance(part, Call) and isinstance(part.callee, Call):
            classes = max(classes, _units(facts, part.callee))
        elif isinstance(part, Call) and isinstance(part.callee, Instance):
            classes = max(classes, _units_of_itself(facts, part.callee))
        elif isinstance(part, Parameter) and part.function is not None:
            classes = max(classes, _units_of_predictions(facts, part.function))
    return classes


def _first_dimension(call: Call) -> int:
    name = function_named(call) or call.method
    given = call.argument(1 if name == "add_weight" else 0, "shape") or call.keyword("dims") or call.keyword("num_rows")
    if name == "add_weight" and not isinstance(given, Collection):
        given = call.argument(0)  # Keras 3 takes the shape first
    if isinstance(given, Collection):
        given = given.items[0] if given.items else None
    return int(min(numbers_from_value(given), default=0))


def _units(facts: SourceFacts, model: Value) -> int:
    """The units of the last Dense layer of a model, or of a Dense layer itself."""
    own = class_of(model)
    call = own.find_method("call") if own is not None else None
    behind = [event.value for event in facts.returns_of(call)] if call is not None else [model]
    if isinstance(model, Call) and own is None:
        behind = [*output_layers(facts, model), model]
    return _units_of_outputs(behind)


def _units_of_itself(facts: SourceFacts, model: Instance) -> int:
    """The number of outputs of `self(images)` in a method of a model."""
    call = model.of.find_method("call") if model.of.kind == "model" else None
    return _units_of_outputs([event.value for event in facts.returns_of(call)]) if call is not None else 0


def _units_of_outputs(outputs: Iterable[Value]) -> int:
    for value in outputs:
        dense = [layer for layer in walk(value) if is_call_of(layer, "keras.layers.Dense") and isinstance(layer, Call)]
        if dense:
            last = max(dense, key=lambda layer: layer.order)
            return int(min(numbers_from_value(last.argument(0, "units")), default=0))
    return 0


def _units_of_predictions(facts: SourceFacts, function: FunctionFacts) -> int:
    """The classes of the model that a loss function is compiled with, or whose output the program gives it."""
    models = [call.receiver for call, loss in compiled(facts, 1, "loss") if function_of(loss, "call") is function]
    models += [made.callee for made in _given_as_predictions(facts, function)]
    return min((_units(facts, option) for model in models for option in options(model)), default=0)


def _given_as_predictions(facts: SourceFacts, function: FunctionFacts) -> Iterator[Call]:
    """The calls of models whose outputs a loss of a class of the program's is called with."""
    for call in facts.object_calls:
        own = class_of(call.callee)
        if own is not None and own.kind == "loss" and own.find_method("call") is function:
            yield from (given for given in options(call.argument(1, "y_pred")) if isinstance(given, Call))


def _is_sparse_loss(call: Call) -> bool:
    made = call.callee.callee if isinstance(call.callee, Call) else call.callee
    return isinstance(made, Api) and public_name(made.name).rpartition(".")[2] in SPARSE and bool(call.args)
