"""Gradients from where a tape takes them to where an optimizer applies them, as the source shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeGuard

from mpdoctor.knowledge.api_names import TAPE
from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation, Read
from mpdoctor.program.instances import is_instance_of, is_of_super
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Attribute, Item, Value, agreed, is_api, known, options, walk
from mpdoctor.semantics.source.loops.loss_scale_signs import may_be_scaled
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, wrapped
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import exclude_each_other, may_not_run
from mpdoctor.semantics.source.programs.separate_questions import may_happen_together
from mpdoctor.semantics.source.texts.written import text_of

UNSCALING = "get_unscaled_gradients"
# Methods of a tape, the gradients of a sum and those of each example; and the function that takes them in a graph.
GRADIENTS = ("gradient", "jacobian", "gradients")
IN_GRAPHS = ("tensorflow.gradients", "tensorflow.compat.v1.gradients", "keras.backend.gradients")
# Libraries whose calls hand gradients on at their own size, but for those that multiply.
TRANSPARENT_ROOTS = ("builtins", "tensorflow", "keras", "tf_keras", "horovod", "numpy")
KEEPING_NUMBERS = (
    *("builtins.float", "builtins.int", "tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.cast"),
    "keras.ops.cast",
)


@lru_cache(maxsize=1)
def applied_gradients(facts: SourceFacts) -> tuple[tuple[Call, Call], ...]:
    """Every (apply call, tape.gradient call) where the first applies the result of the second. Left out are guarded
    calls, and those in a base class whose subclasses decide what is differentiated. Cached: a dozen rules ask."""
    return tuple(_applied_gradients(facts))


def _applied_gradients(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    for apply in facts.method_calls(*APPLYING):
        if may_not_run(facts, apply.context):
            continue
        for part in until_gradients(given_to(apply)):
            if (
                is_gradient_call(part)
                and isinstance(part, Call)
                and not may_not_run(facts, part.context)
                and not _is_nothing(target(part))
            ):
                yield apply, part


def given_to(apply: Call) -> Value | None:
    """The gradients, or the pairs of gradients and variables, that an apply call is given."""
    return apply.argument(0) or apply.keyword("grads_and_vars") or apply.keyword("grads")


def gradient_calls(facts: SourceFacts) -> list[Call]:
    """The calls that give the gradients of a sum."""
    return [call for call in (*facts.method_calls("gradient"), *facts.calls_of(*IN_GRAPHS)) if is_gradient_call(call)]


def is_gradient_call(value: Value) -> bool:
    """Whether it is a `gradient(…)` or `jacobian(…)` of a GradientTape, or of what was made from one (Horovod's); or
    `tf.gradients(…)`."""
    if not isinstance(value, Call) or value.method not in GRADIENTS:
        return False
    if value.receiver is None or value.method == "gradients":
        return is_api(value.callee, *IN_GRAPHS)
    return any(map(is_tape, walk(value.receiver))) or _is_inherited_from_tape(value)


def is_without_tape(gradient: Call) -> bool:
    """Whether a call that gives gradients takes them in a graph, where the loss may be made anywhere before."""
    return gradient.method == "gradients"


def unscales(value: Value) -> TypeGuard[Call]:
    """Whether it is what `get_unscaled_gradients` gives."""
    return isinstance(value, Call) and value.method == UNSCALING


def is_tape(value: Value) -> bool:
    """Whether it is a GradientTape, or an object of a class of the user's below it."""
    return isinstance(value, (Call, Instance)) and is_instance_of(value, TAPE)


def _is_inherited_from_tape(call: Call) -> bool:
    """Whether it is `super().gradient(…)` in a class below GradientTape."""
    own = call.context.owner if is_of_super(call) else None
    return own is not None and any(base.is_(TAPE) for base in own.library_bases())


def optimizer_scales(facts: SourceFacts, apply: Call) -> str | None:
    """What makes the optimizer of an apply call scale: "wrapper", or "factor" for Keras 3's `loss_scale_factor`.

    An optimizer that is a wrapper on one path only counts where the apply call stands on every path, or on one that
    other questions decide about, or where it has unscaled the gradients itself."""
    if apply.receiver is None:
        return None
    on_every_path = not apply.context.branches or _is_asked_apart(facts, apply)
    if wrapped(facts, apply.receiver, apply, certain=not on_every_path):
        is_certain = all(wrapped(facts, receiver, apply) for receiver in _receivers_at(facts, apply))
        return "wrapper" if on_every_path or is_certain or _has_unscaled(apply) else None
    if is_wrapped_by_own_compile(facts, apply.receiver, apply):
        return "wrapper"
    return "factor" if facts.keras.is_keras3 and factor_of(apply.receiver) is not None else None


def is_wrapped_by_own_compile(facts: SourceFacts, optimizer: Value | None, event: Call | Read) -> bool:
    """Whether the program asks `self.optimizer` here, and compile() of that model has wrapped the bare optimizer that
    the model's class put there: Keras writes the wrapper into the same attribute (measured in TensorFlow 2.15 and Keras
    3.15)."""
    if ".optimizer" not in (text_of(facts, event.location) or ""):
        return False
    models = (own for own in facts.classes if own.kind == "model" and "optimizer" in own.attributes)
    return any(
        any(option is optimizer for option in options(own.attributes["optimizer"]))
        and wrapped(facts, Attribute(event.location, Instance(event.location, own), "optimizer"), event)
        for own in models
    )


def _is_asked_apart(facts: SourceFacts, apply: Call) -> bool:
    """Whether what decides about a wrapper of the optimizer is independent of what decides about the apply call."""
    made = [option for option in options(apply.receiver) if isinstance(option, Call)]
    wrappers = (call for call in made if is_api(call.callee, WRAPPER))
    return any(may_happen_together(facts, wrapper.context, apply.context) for wrapper in wrappers)


def is_wrapped_on_a_path(facts: SourceFacts, apply: Call) -> bool:
    """Whether the optimizer of an apply call is a wrapper on some path, as behind `if args.amp:`."""
    return any(wrapped(facts, receiver, apply, certain=False) for receiver in _receivers_at(facts, apply))


def _receivers_at(facts: SourceFacts, call: Call) -> list[Value]:
    """The objects whose method is called there: where it may be one of several, each has an event of its own."""
    calls = (other for other in facts.method_calls(call.method) if other.location == call.location)
    return [other.receiver for other in calls if other.receiver is not None]


def target(gradient: Call) -> Value | None:
    """The value that is differentiated."""
    return gradient.argument(0, "target") or gradient.keyword("ys") or gradient.keyword("loss")


def sources(gradient: Call) -> Value | None:
    """The values, or the lists of weights, by which it is differentiated."""
    return gradient.argument(1, "sources") or gradient.keyword("xs") or gradient.keyword("variables")


def _is_nothing(loss: Value | None) -> bool:
    """Whether it is None, or was made from None: what a method gives that the subclasses have to write. No program
    takes the step of the base class itself."""
    waiting: list[Value] = [] if loss is None else [loss]
    seen = {id(loss)}
    for part in waiting:
        made_of = (part.of,) if isinstance(part, Item) else part.operands if isinstance(part, Operation) else ()
        waiting += [inner for inner in made_of if id(inner) not in seen]
        seen.update(map(id, made_of))
    return any(known(part) is None for part in waiting)


def is_taken_in_the_other_arm(apply: Call, gradient: Call) -> bool:
    """Whether the gradients that are applied come from two arms of an `if`, of which the other one scales its loss or
    unscales: the program tells apart itself whether its optimizer is a wrapper."""
    return any(
        isinstance(part, Call)
        and (unscales(part) or is_gradient_call(part))
        and exclude_each_other(part.context, gradient.context)
        and (unscales(part) or may_be_scaled(target(part)))
        for part in until_gradients(given_to(apply))
    )


def calls_on_the_way(apply: Call, method: str) -> bool:
    """Whether the gradients pass through a method of this name before they are applied."""
    return any(isinstance(part, Call) and part.method == method for part in until_gradients(given_to(apply)))


def _has_unscaled(apply: Call) -> bool:
    """Whether the optimizer that applies the gradients has unscaled them: no bare optimizer can (Keras 2)."""
    receivers = [part.receiver for part in until_gradients(given_to(apply)) if unscales(part)]
    return any(
        receiver is not None and apply.receiver is not None and same_object(receiver, apply.receiver)
        for receiver in receivers
    )


def until_gradients(value: Value | None, stop: Callable[[Value], bool] | None = None) -> Iterator[Value]:
    """The value and what it was made from, but nothing of what a `tape.gradient` was given, nor of the model
    whose weights are listed beside the gradients, nor of the optimizer that unscales them (whose learning rate may be
    a product), nor of what `stop` says."""
    waiting = [] if value is None else [value]
    seen = set(waiting)
    for item in waiting:
        yield item
        method = item.method if isinstance(item, Call) else ""  # most are none
        if (method in GRADIENTS and is_gradient_call(item)) or lists_weights(item):
            continue
        if stop is not None and stop(item):
            continue
        for part in item.given if method == UNSCALING and unscales(item) else item.parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)


def lists_weights(value: Value) -> TypeGuard[Attribute]:
    """Whether it is a list of weights that a model or a layer has, as `model.trainable_variables`."""
    return isinstance(value, Attribute) and value.name in WEIGHT_LISTS


def factor_of(optimizer: Value | None) -> float | None:
    """The `loss_scale_factor` with which an optimizer of Keras 3 is certainly made; None without one."""
    made = options(optimizer)
    factor = agreed(known(option.keyword("loss_scale_factor")) if isinstance(option, Call) else None for option in made)
    return float(factor) if isinstance(factor, (int, float)) and factor not in (0, 1) else None
