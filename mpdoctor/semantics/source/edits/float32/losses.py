"""The edits that compute a loss in float32: its 16-bit predictions are cast, a last layer with a softmax or sigmoid is
made in float32, and casts to 16 bits name float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.finding import Edit, Fix
from mpdoctor.knowledge.api_names import PROBABILITIES
from mpdoctor.knowledge.python_idioms import is_bare_constant
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Attribute, Item, Value, known
from mpdoctor.semantics.source.edits.casts import cast, cast_around
from mpdoctor.semantics.source.edits.expressions import argument_replaced, put_around, unsafe_fix
from mpdoctor.semantics.source.edits.float32.outputs import output_in_float32
from mpdoctor.semantics.source.edits.statements import line_before, line_behind
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.output_activations import activations_of
from mpdoctor.semantics.source.layers.output_layers import output_layers
from mpdoctor.semantics.source.layers.precision import Precision, precision_of
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.programs.models import is_model
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of
from mpdoctor.semantics.source.texts.written import argument_at, text_of
from mpdoctor.semantics.wording import listed

LOSSES_OF_LAYERS = "losses"  # of a model or of a layer
LONGEST_NAME = 40  # characters of what advice quotes


def losses_in_float32(facts: SourceFacts, losses: Sequence[Value]) -> Fix | None:
    """The edits that compute each of the losses, summands of one, in float32: the predictions, cast after the model or
    in the loss function, the sum of `model.losses`, and any cast to 16 bits."""
    if any(_model_of_loss(facts, loss) for loss in losses):
        return None
    around = cast_around(facts)
    parts = dict.fromkeys(part for loss in losses for part in _parts_of_loss(facts, loss))
    if around is None or any(map(_cannot_be_cast, parts)):
        return None
    edits = [edit for part in parts for edit in _edits_of_part(facts, part, around)]
    needed = [edit for edit in edits if edit != []]
    return unsafe_fix("Compute the loss in float32", *needed) if needed else None


def way_to_float32(facts: SourceFacts, loss: Value) -> str:
    """What computes a loss in float32, as a clause of advice, in the program's own names for the predictions where it
    has short ones."""
    model = _model_of_loss(facts, loss)
    if model:
        return f"cast the predictions, `tf.cast(…, tf.float32)`, in `{model}.call()`, which computes this loss itself"
    predictions = _half_predictions(facts, loss)
    named = listed([f"`{prediction}`" for prediction in predictions]) if predictions else "the predictions"
    is_one = len(predictions) < 2
    if _gives_probabilities(facts, loss):
        layers = "the last layer" if is_one else f"the layers that {named} come from"
        return f'give {layers} `dtype="float32"`, as a cast behind a softmax or sigmoid brings back no digits'
    first, layers = predictions[0] if predictions else "predictions", "the last layer" if is_one else "their layers"
    return f'cast {named}, `tf.cast({first}, tf.float32)`, or give {layers} `dtype="float32"`'


def _model_of_loss(facts: SourceFacts, loss: Value) -> str:
    """The class of the program's own whose `call()` returns the loss, in 16 bits, as its output or one of several: a
    cast of that comes too late. "" for a loss that is computed from a model's output."""
    if not _is_half_output(precision_of(facts), loss):
        return ""
    made = loss.of if isinstance(loss, Item) else loss
    own = class_of(made.callee) if isinstance(made, Call) else None
    return own.name if own is not None and own.find_method("call") is not None else ""


def _half_predictions(facts: SourceFacts, loss: Value) -> list[str]:
    """What the file calls the 16-bit outputs of models from which a loss is computed: `model(x)`, or `mean` where
    `mean, spread = model(x)`. [] where one of them has no short name there."""
    precision, names = precision_of(facts), dict[str, None]()
    for part in _parts_of_loss(facts, loss):
        if _is_half_output(precision, part):
            name = _unpacked_into(facts, part) if isinstance(part, Item) else text_of(facts, part.location)
            if not name or len(name) > LONGEST_NAME or "\n" in name:
                return []
            names[name] = None
    return list(names)


def _gives_probabilities(facts: SourceFacts, loss: Value) -> bool:
    """Whether a model's output from which a loss is computed comes straight out of a softmax or sigmoid."""
    outputs = (part for part in _parts_of_loss(facts, loss) if _is_half_output(precision_of(facts), part))
    return any(not activations_of(facts, output).isdisjoint(PROBABILITIES) for output in outputs)


def _parts_of_loss(facts: SourceFacts, loss: Value) -> Iterator[Value]:
    """The loss, and what it is computed from, as far as the outputs of models."""
    precision, waiting, seen = precision_of(facts), [loss], {id(loss)}
    for part in waiting:  # which grows
        if is_model(part):
            continue  # a part of the model itself
        yield part
        is_whole = (
            _is_half_output(precision, part)
            or _is_cast_output(facts, part)
            or (isinstance(part, Call) and _sums_losses_of_layers(part))
        )
        if not is_whole and not _cannot_be_cast(part):
            waiting += [inner for inner in part.parts if id(inner) not in seen]
            seen.update(map(id, part.parts))


def _is_half_output(precision: Precision, part: Value) -> bool:
    """Whether it is what a model or a layer of Keras' own gives, or one of several outputs of it, in 16 bits."""
    made = part.of if isinstance(part, Item) else part
    if not isinstance(made, Call):
        return False
    layer = _layer_called(made)
    return (precision.of_layer(layer) if layer is not None else precision.of_model(made.callee)) in HALF


def _layer_called(call: Call) -> Call | None:
    """The layer of Keras' own, and no model, that is called."""
    layer = call.callee
    is_layer = isinstance(layer, Call) and layer_name(layer) is not None and class_of(layer) is None
    return layer if isinstance(layer, Call) and is_layer and not is_model(layer) else None


def _is_cast_output(facts: SourceFacts, part: Value) -> bool:
    """Whether it is a model's 16-bit output that is cast to another dtype at once."""
    if not (isinstance(part, Call) and is_cast(part)):
        return False
    given, dtype = part.argument(0, "x"), dtype_named(part.argument(1, "dtype"), facts.keras)
    is_output = given is not None and _is_half_output(precision_of(facts), given)
    return is_output and dtype is not None and dtype not in HALF


def _edits_of_part(facts: SourceFacts, part: Value, around: tuple[str, str]) -> Iterator[Edit | list[Edit] | None]:
    precision = precision_of(facts)
    if isinstance(part, Call) and _sums_losses_of_layers(part):
        yield _cast_each(facts, part, around)
    elif not _is_half_output(precision, part):
        yield from _edits_in_part(facts, part, around)
    elif isinstance(part, Item):
        yield _cast_behind_unpacking(facts, part, around)
    elif isinstance(part, Call) and not activations_of(facts, part).isdisjoint(PROBABILITIES):
        yield _probabilities_in_float32(facts, part)
    elif isinstance(part, Call):
        yield cast(facts, part.location)


def _probabilities_in_float32(facts: SourceFacts, prediction: Call) -> list[Edit] | None:
    """The edits of a model's last layers, which end in a softmax or sigmoid: a cast would come behind the rounding, and
    hide from Keras 3 the logits from which it computes a cross-entropy. None where they are not known, or cannot be
    made from this file."""
    if not isinstance(prediction.callee, Call):
        return None
    layer = _layer_called(prediction)
    layers = [layer] if layer is not None else output_layers(facts, prediction.callee)
    edits = [output_in_float32(facts, last) for last in layers]
    return [edit for of_layer in edits for edit in of_layer or ()] if None not in edits else None


def _cast_behind_unpacking(facts: SourceFacts, output: Item, around: tuple[str, str]) -> Edit | None:
    name = _unpacked_into(facts, output)
    return line_behind(facts, output.of.location, f"{name} = {name.join(around)}") if name else None


def _unpacked_into(facts: SourceFacts, output: Item) -> str:
    """`mean` for the first output of a model in `mean, spread = model(x)`; "" where it is not unpacked into names."""
    number, place = known(output.index), output.of.location
    for node in ast.walk(tree_of(facts) or ast.Module([], [])):
        if isinstance(node, ast.Assign) and location_of(facts, node.value) == place and isinstance(number, int):
            (target, *others) = node.targets
            names = target.elts if isinstance(target, ast.Tuple) and not others else []
            is_plain = all(isinstance(name, ast.Name) for name in names)
            name = names[number] if is_plain and -len(names) <= number < len(names) else None
            return name.id if isinstance(name, ast.Name) else ""
    return ""


def _edits_in_part(facts: SourceFacts, part: Value, around: tuple[str, str]) -> Iterator[Edit | list[Edit] | None]:
    """The edits of one part of the loss itself, and not of what it is computed from."""
    if isinstance(part, Parameter) and _is_half_prediction(precision_of(facts), part):
        yield _cast_at_start(facts, part, around)
    if isinstance(part, Call) and is_cast(part) and _names_half(facts, part):
        wide = around[1].removeprefix(", ").removesuffix(")")
        yield argument_replaced(facts, part.location, "dtype", 1, wide)


def _cannot_be_cast(part: Value) -> bool:
    if isinstance(part, Call) and is_cast(part) and _is_compute_dtype(part.argument(1, "dtype")):
        return True  # the numbers that it is added to may be of that dtype as well
    return (
        isinstance(part, Attribute) and part.name == LOSSES_OF_LAYERS
    )  # in a list with others, or one after the other


def _is_compute_dtype(given: Value | None) -> bool:
    """Whether it is an attribute such as `policy.compute_dtype` or `model.compute_dtype`."""
    return isinstance(given, Attribute) and given.name == "compute_dtype"


def _cast_each(facts: SourceFacts, sum_of_losses: Call, around: tuple[str, str]) -> list[Edit] | None:
    summed = argument_at(facts, sum_of_losses.location, 0)
    each = f"[{'part'.join(around)} for part in "
    return put_around(facts, summed, each, "]") if summed is not None else None


def _sums_losses_of_layers(call: Call) -> bool:
    """Whether it is `sum(model.losses)`: activity regularizers return numbers in the layer's own dtype."""
    summed = call.argument(0)
    return isinstance(summed, Attribute) and summed.name == LOSSES_OF_LAYERS and call.argument(1) is None


def _names_half(facts: SourceFacts, call: Call) -> bool:
    """Whether a cast names a 16-bit dtype itself, rather than the dtype of another tensor, which may change."""
    given = call.argument(1, "dtype")
    return not isinstance(given, Attribute) and dtype_named(given, facts.keras) in HALF


def _is_half_prediction(precision: Precision, value: Parameter) -> bool:
    return value.function is not None and precision.half(value, Context(function=value.function)) is not None


def _cast_at_start(facts: SourceFacts, value: Parameter, around: tuple[str, str]) -> Edit | None:
    """The edit in the function that has the prediction as a parameter."""
    assert value.function is not None
    name, place = value.name, value.function.location
    for node in ast.walk(tree_of(facts) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and node.name == value.function.name and node.lineno == place.line:
            first = next((line for line in node.body if not is_bare_constant(line)), node.body[0])
            return line_before(facts, location_of(facts, first), f"{name} = {name.join(around)}")
    return None
