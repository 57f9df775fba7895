"""Gradients without a tape, from where they are taken to the Keras optimizer that applies them: those that JAX takes of
a function, and those that PyTorch leaves in the variables."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Attribute, Collection, Item, Value, is_api, known, options
from mpdoctor.semantics.source.loops.gradients import given_to, until_gradients
from mpdoctor.semantics.source.loops.resized_gradients import unscaled_on_the_way

STATELESS_APPLY = "stateless_apply"
GRAD, VALUE_AND_GRAD = "jax.grad", "jax.value_and_grad"
MEANS = ("jax.lax.pmean", "jax.lax.psum")  # over devices: gradients as they are


def stateless_steps(facts: SourceFacts) -> Iterator[tuple[Call, list[Value]]]:
    """Each call that applies gradients taken by JAX, with the losses that the differentiated function returns."""
    for apply in facts.method_calls(STATELESS_APPLY):
        losses = [] if apply.context.guarded else _differentiated(facts, apply.argument(1, "grads"))
        if losses and apply.receiver is not None:
            yield apply, losses


def steps_behind_backward(facts: SourceFacts) -> Iterator[tuple[Call, list[Value]]]:
    """Each call that applies the gradients that `loss.backward()` has stored in the variables, with the losses of that
    function."""
    for apply in facts.method_calls(*APPLYING) if any(facts.method_calls("backward")) else ():
        parts = list(until_gradients(given_to(apply)))
        if apply.context.guarded or not any(isinstance(part, Attribute) and part.name == "grad" for part in parts):
            continue
        before = [call for call in facts.method_calls("backward") if _is_before(call, apply)]
        losses = [call.receiver for call in before if call.receiver is not None]
        if losses and apply.receiver is not None and not unscaled_on_the_way(facts, apply, apply):
            yield apply, losses


def _is_before(backward: Call, apply: Call) -> bool:
    mine, theirs = apply.context, backward.context
    return (mine.function, mine.run, mine.callers) == (theirs.function, theirs.run, theirs.callers) and (
        backward.order < apply.order
    )


def _differentiated(facts: SourceFacts, gradients: Value | None) -> list[Value]:
    """The losses that these are the gradients of; [] where one of them may be something else."""
    by_option = [_losses(facts, option) for option in options(gradients)]
    return [loss for losses in by_option for loss in losses] if all(by_option) else []


def _losses(facts: SourceFacts, gradients: Value) -> list[Value]:
    if isinstance(gradients, Call) and is_api(gradients.callee, *MEANS):
        return _differentiated(facts, gradients.argument(0, "x"))
    differentiating = _differentiating(gradients)
    if differentiating is None:
        return []
    functions = options(differentiating.argument(0, "fun"))
    known_ones = [option.of for option in functions if isinstance(option, Defined)]
    returned = [list(facts.returns_of(of)) for of in known_ones if isinstance(of, FunctionFacts)]
    if len(returned) < len(functions) or not all(returned):
        return []
    values = [event.value for events in returned for event in events]
    losses = [_first(value) for value in values] if _has_aux(differentiating) else values
    return [loss for loss in losses if loss is not None] if None not in losses else []


def _differentiating(gradients: Value) -> Call | None:
    """`jax.grad(loss)` where these are what it gives, or `jax.value_and_grad(loss)` where they are its second part."""
    taken, index = (gradients.of, known(gradients.index)) if isinstance(gradients, Item) else (gradients, None)
    made = _without_jit(taken.callee) if isinstance(taken, Call) else None
    if not isinstance(made, Call):
        return None
    if is_api(made.callee, VALUE_AND_GRAD):
        return made if index == 1 else None
    place = 0 if _has_aux(made) else None
    return made if is_api(made.callee, GRAD) and index == place else None


def _has_aux(differentiating: Call) -> bool:
    """Whether the function returns more than the loss."""
    return known(differentiating.keyword("has_aux")) is True


def _without_jit(function: Value) -> Value:
    while isinstance(function, Call) and is_api(function.callee, "jax.jit") and function.args:
        function = function.args[0]
    return function


def _first(returned: Value) -> Value | None:
    """The loss, beside which the function returns something else."""
    return returned.entry(0) if isinstance(returned, Collection) else None
