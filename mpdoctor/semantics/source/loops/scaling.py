"""Which calls and operations scale a loss and unscale gradients, and whose loss scale they use."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, is_api, known, leaves, options, walk
from mpdoctor.semantics.source.loops.gradients import (
    factor_of,
    optimizer_scales,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.loss_scale_signs import is_scaled_by, may_be_scaled_in
from mpdoctor.semantics.source.optimizers.wrappers import wrapped, wrapper_calls
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import exclude_each_other, may_not_run

USUAL_SCALE = (2.0**15,)
FEWEST = 64  # a smaller number that gradients are divided by may be one of batches or replicas
# What a LossScaleOptimizer calls its scale, in any Keras.
SCALES = frozenset(("loss_scale", "dynamic_scale", "initial_scale", "_loss_scale"))
# Functions of TensorFlow and Keras that divide or multiply, and the positions of the two numbers.
DIVIDING = ("tensorflow.divide", "tensorflow.truediv", "tensorflow.divide_no_nan", "tensorflow.realdiv")
DIVIDING_OPS = ("keras.ops.divide", "keras.ops.true_divide", "keras.ops.divide_no_nan", "numpy.divide")
MULTIPLYING = ("tensorflow.multiply", "tensorflow.scalar_mul", "keras.ops.multiply", "numpy.multiply")
# A function that is given another and calls it on each gradient.
MAPPING = ("tensorflow.nest.map_structure", "keras.tree.map_structure", "builtins.map", "tree.map_structure")
PASSING_ON = ("cast", "float", "numpy", "value", "read_value", "convert_to_tensor", "identity", "stop_gradient")

MOST_NESTED = 20  # calls and operations around a model's losses or weights


def scaling_calls(loss: Value | None) -> Iterator[Call]:
    """The `scale_loss` and `get_scaled_loss` calls whose results a tape differentiates, on any path."""
    waiting, seen = [*leaves(loss)], set[int]()
    for option in waiting:
        if id(option) in seen:
            continue
        seen.add(id(option))
        if isinstance(option, Call) and option.method in SCALING and option.receiver is not None:
            yield option
        elif isinstance(option, Operation) and option.operator in ("*", "/"):  # `scaled / replicas`
            waiting += [leaf for operand in option.operands for leaf in leaves(operand)]


def scales(facts: SourceFacts, call: Call) -> bool:
    """Whether a scaling call multiplies by a loss scale: its receiver is a LossScaleOptimizer, or nothing says that it
    is none in a program of mixed precision. (In Keras 3 a bare optimizer's `scale_loss` gives the loss back.)"""
    if may_not_run(facts, call.context) or call.receiver is None:
        return False
    if call.method != ("scale_loss" if facts.keras.is_keras3 else "get_scaled_loss"):
        return False
    if wrapped(facts, call.receiver, call, certain=False):
        return True
    if call.method == "get_scaled_loss":
        return not any(_is_something_else(option) for option in options(call.receiver))
    return facts.shows_mixed_precision and not any(
        _is_something_else(option) or isinstance(option, Call) for option in options(call.receiver)
    )


def is_of_scaled_loss(facts: SourceFacts, gradient: Call, also: Context | None = None) -> bool:
    """Whether what a tape differentiates here was multiplied by a loss scale, on some path that leads here, and to what
    happens to the gradient in `also`."""
    places = (gradient.context, also or gradient.context)
    calls = (call for call in scaling_calls(target(gradient)) if scales(facts, call))
    products = (product for product, _ in products_with_scale(facts, gradient))
    return any(
        not any(exclude_each_other(scaling.context, place) for place in places) for scaling in (*calls, *products)
    )


def products_with_scale(facts: SourceFacts, gradient: Call) -> Iterator[tuple[Call | Operation, Value]]:
    """Each product of a loss and the scale of a LossScaleOptimizer that a tape differentiates, and that optimizer:
    `loss * optimizer.loss_scale`."""
    for loss in options(target(gradient)):
        if isinstance(loss, Call | Operation) and multiplied_by_scale(loss, ()):
            factors = loss.operands if isinstance(loss, Operation) else loss.arguments(slice(2))
            owners = (wrapper_of_scale(factor) for factor in factors if is_scale(factor, ()))
            yield from ((loss, owner) for owner in owners if owner and wrapped(facts, owner, loss, certain=False))


def unscaled_losses_of_layers(facts: SourceFacts, gradient: Call) -> Iterator[Call | Operation]:
    """The unscaled terms of a sum that a tape differentiates while another term is scaled: the model's own `losses`, or
    something computed from its weights alone."""
    terms = list(_terms(target(gradient)))
    if not any(is_scaled_by(term, *SCALING) for term in terms):
        return
    for term in terms:
        is_one = isinstance(term, Call | Operation) and (_is_of_model_losses(term) or _is_of_weights(term))
        if is_one and isinstance(term, Call | Operation) and not may_be_scaled_in(facts, term):
            yield term


def _terms(value: Value | None) -> Iterator[Value]:
    """The terms of a sum, each once, if each of them is certain."""
    waiting, seen = [value], set[int]()
    while waiting:
        choices = options(waiting.pop())
        if len(choices) != 1 or id(choices[0]) in seen:
            continue
        seen.add(id(choices[0]))
        if isinstance(choices[0], Operation) and choices[0].operator == "+":
            waiting += reversed(choices[0].operands)
        else:
            yield choices[0]


@asked_once
def _is_of_model_losses(term: Value, nested: int = MOST_NESTED) -> bool:
    """Whether it is `tf.add_n(model.losses)`, `0.1 * sum(self.losses)`, one of them, or a list of all, each perhaps
    cast; not what a function of the user's makes of them. `nested`: how many calls and operations are looked into."""
    if isinstance(term, Attribute):
        return term.name == "losses"
    if not nested:
        return False
    if isinstance(term, (Item, Collection)):
        parts = (term.of,) if isinstance(term, Item) else term.items
        return bool(parts) and all(_is_of_model_losses(part, nested - 1) for part in parts)
    if isinstance(term, Call):
        given = term.arguments(slice(1))
        return isinstance(term.callee, Api) and any(_is_of_model_losses(part, nested - 1) for part in given)
    is_product = isinstance(term, Operation) and term.operator in ("*", "/")
    return is_product and any(_is_of_model_losses(part, nested - 1) for part in term.parts)


@asked_once
def _is_of_weights(value: Value, nested: int = MOST_NESTED) -> bool:
    """Whether it is `tf.add_n([tf.nn.l2_loss(w) for w in model.trainable_weights])` or `1e-4 * penalty`: nothing but
    weights and numbers. `nested`: how many calls and operations are looked into."""
    choices = options(value)
    return nested > 0 and bool(choices) and all(_is_one_of_weights(choice, nested) for choice in choices)


def _is_one_of_weights(value: Value, nested: int) -> bool:
    while isinstance(value, Item):
        value = value.of
    if isinstance(value, Attribute):
        return value.name in WEIGHT_LISTS
    if isinstance(value, Operation):
        inner = value.operands
    elif isinstance(value, Collection):
        inner = value.items
    else:
        inner = value.given if isinstance(value, Call) and isinstance(value.callee, Api) else ()
    others = [part for part in inner if not isinstance(part, (Known, Api))]
    return bool(others) and all(_is_of_weights(part, nested - 1) for part in others)


def applied_by_its_scaler(facts: SourceFacts, apply: Call, gradient: Call) -> bool:
    """Whether the optimizer that applies a gradient is a LossScaleOptimizer: as the program makes it, or because it
    scaled the loss as well."""
    if optimizer_scales(facts, apply) is not None:
        return True
    calls = [call for call in scaling_calls(target(gradient)) if scales(facts, call)]
    return any(same_object(call.receiver, apply.receiver) for call in calls if call.receiver and apply.receiver)


def divided_by_scale(value: Value, numbers: tuple[float, ...] = USUAL_SCALE) -> bool:
    """Whether an operation or a call divides by a loss scale: `g / optimizer.dynamic_scale`, `g * (1 / scale)`,
    `g / 32768`."""
    if isinstance(value, Operation) and len(value.operands) == 2:
        left, right = value.operands
        if value.operator in ("/", "//"):
            return is_scale(right, numbers)
        return value.operator == "*" and (is_reciprocal(left, numbers) or is_reciprocal(right, numbers))
    if isinstance(value, Call) and is_api(value.callee, *DIVIDING, *DIVIDING_OPS):
        divisor = value.argument(1)
        return divisor is not None and is_scale(divisor, numbers)
    if isinstance(value, Call) and is_api(value.callee, *MULTIPLYING):
        return any(is_reciprocal(argument, numbers) for argument in value.arguments(slice(2)))
    return False


def multiplied_by_scale(value: Value, numbers: tuple[float, ...] = USUAL_SCALE) -> bool:
    """Whether an operation or a call multiplies by a loss scale."""
    if isinstance(value, Operation) and value.operator == "*":
        return any(is_scale(operand, numbers) for operand in value.operands)
    return (
        isinstance(value, Call)
        and is_api(value.callee, *MULTIPLYING)
        and any(is_scale(argument, numbers) for argument in value.arguments(slice(2)))
    )


def wrapper_of_scale(scale: Value) -> Value | None:
    """Whose scale it is: the optimizer of `optimizer.dynamic_scale`. None of a number."""
    owners = (part.of for part in walk(scale) if isinstance(part, Attribute) and part.name in SCALES)
    return next(owners, None)


def is_scale(value: Value, numbers: tuple[float, ...] = USUAL_SCALE) -> bool:
    """Whether a number is certainly a loss scale: an attribute of that name, or the number itself."""
    choices = options(value)
    return bool(choices) and all(_is_scale(choice, numbers) for choice in choices)


def is_reciprocal(value: Value, numbers: tuple[float, ...] = USUAL_SCALE) -> bool:
    if known(value) in [1 / number for number in numbers]:
        return True
    if isinstance(value, Operation) and value.operator == "/" and len(value.operands) == 2:
        return known(value.operands[0]) == 1 and is_scale(value.operands[1], numbers)
    if isinstance(value, Call) and is_api(value.callee, "tensorflow.reciprocal", "keras.ops.reciprocal"):
        divisor = value.argument(0)
        return divisor is not None and is_scale(divisor, numbers)
    return _is_passed_on(value) and any(is_reciprocal(part, numbers) for part in _inside(value))


def initial_scales(facts: SourceFacts) -> tuple[float, ...]:
    """The numbers that a program's loss scales start from."""
    given = [known(call.keyword("initial_scale")) for call in wrapper_calls(facts)]
    return (*USUAL_SCALE, *(float(number) for number in given if isinstance(number, (int, float)) and number >= FEWEST))


def mapped_functions(value: Value) -> Iterator[FunctionFacts]:
    """The user's functions that a call hands every gradient to: `tf.nest.map_structure(lambda g: …, gradients)`."""
    if isinstance(value, Call) and is_api(value.callee, *MAPPING):
        for function in options(value.argument(0, "func")):
            if isinstance(function, Defined) and isinstance(function.of, FunctionFacts):
                yield function.of


def with_mapped(facts: SourceFacts, value: Value) -> Iterator[Value]:
    """A value, and where it is a function mapped over gradients, what that function computes."""
    yield value
    for function in mapped_functions(value):
        for returned in facts.returns_of(function):
            yield from until_gradients(returned.value)


def holds_gradient(value: Value | None, gradient: Call, through_unscaling: bool = True) -> bool:
    """Whether a value was made from these gradients, before anybody unscaled them if `through_unscaling` is False."""
    stop = None if through_unscaling else _is_unscaled
    return any(part is gradient for part in until_gradients(value, stop))


def _is_unscaled(value: Value) -> bool:
    return unscales(value) or divided_by_scale(value)


def _is_scale(value: Value, numbers: tuple[float, ...]) -> bool:
    if isinstance(value, Attribute):
        return value.name in SCALES
    if known(value) in numbers:
        return True
    if isinstance(value, Call) and isinstance(value.callee, Attribute) and value.callee.name in SCALES:
        return True  # the experimental class: `optimizer.loss_scale()`
    return _is_passed_on(value) and any(is_scale(part, numbers) for part in _inside(value))


def _is_passed_on(value: Value) -> bool:
    return isinstance(value, Call) and value.method in PASSING_ON


def _inside(value: Value) -> tuple[Value, ...]:
    """The argument of a cast, a `float(…)` or a `.numpy()`."""
    assert isinstance(value, Call)
    return (value.receiver,) if isinstance(value.callee, Attribute) and value.receiver else value.arguments(slice(1))


def scales_by_factor(facts: SourceFacts, call: Call) -> bool:
    """Whether it is a `scale_loss` of Keras 3 that multiplies by the `loss_scale_factor` of a bare optimizer."""
    is_scaling = facts.keras.is_keras3 and call.method == "scale_loss" and not call.context.guarded
    return is_scaling and factor_of(call.receiver) is not None


def multiplies_loss(facts: SourceFacts, call: Call) -> bool:
    """Whether a scaling call gives the loss times a scale, of a LossScaleOptimizer or of a bare optimizer."""
    return scales(facts, call) or scales_by_factor(facts, call)


def _is_something_else(value: Value) -> bool:
    """Whether something else is known about it: an object of the user's own class, a bare optimizer, another library's
    object."""
    if class_of(value) is not None:
        return True
    return isinstance(value.callee if isinstance(value, Call) else value, Api)


def scales_in_keras2(facts: SourceFacts, optimizer: Value) -> bool:
    """Whether the program scales with the same object, and it is of no class of its own: in Keras 2 that is a
    LossScaleOptimizer. False up to TensorFlow 2.8, where it may be the experimental one, which has other attributes."""
    is_old = facts.keras.package == "tf.keras" and facts.keras.release < (2, 9)
    if facts.keras.is_keras3 or is_old or any(class_of(option) is not None for option in options(optimizer)):
        return False
    scaling = facts.method_calls("get_scaled_loss", "get_unscaled_gradients")
    return any(call.receiver is not None and same_object(call.receiver, optimizer) for call in scaling)
