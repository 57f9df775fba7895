"""Which calls apply gradients that come through float16 layers, of a loss that nothing scales."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import options, walk
from mpdoctor.semantics.source.layers.model_layers import layer_name, layers_of
from mpdoctor.semantics.source.loops.float16_layers import applied_in_float16, is_assumed_float16, is_float16
from mpdoctor.semantics.source.loops.functional_gradients import stateless_steps
from mpdoctor.semantics.source.loops.gradients import (
    is_taken_in_the_other_arm,
    is_wrapped_on_a_path,
    sources,
    target,
)
from mpdoctor.semantics.source.loops.loss_scale_signs import may_be_scaled, may_be_scaled_in
from mpdoctor.semantics.source.loops.resized_gradients import unscaled_on_the_way
from mpdoctor.semantics.source.loops.updates_by_hand import updates_by_hand
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_left_bare
from mpdoctor.semantics.source.programs.models import is_model


def unscaled_gradients(
    facts: SourceFacts, applied: Iterable[tuple[Call, Call]], reported: Container[Location] = ()
) -> Iterator[tuple[Call, Call, list[str]]]:
    """Those of these (apply call, tape.gradient call) by which a bare optimizer applies gradients of an unscaled loss,
    with the layers that compute in float16 on the way to it. Places in `reported` are left out: a step that is followed
    on each path to it is many calls."""
    for apply, gradient in applied:
        if apply.location in reported:
            continue
        loss = target(gradient)
        if apply.receiver is None or not is_left_bare(facts, apply.receiver) or may_be_scaled_in(facts, loss):
            continue
        if unscaled_on_the_way(facts, apply, gradient) or is_taken_in_the_other_arm(apply, gradient):
            continue
        if is_wrapped_on_a_path(facts, apply):
            continue  # MP401
        half = names_of_layers(applied_in_float16(facts, loss, apply, sources(gradient)))
        if half:
            yield apply, gradient, half


def unscaled_updates(facts: SourceFacts) -> Iterator[tuple[Call, Call, list[str]]]:
    """Where a program changes weights itself, `weight.assign_sub(rate * gradient)`: the assigning call and the
    tape.gradient call of an unscaled loss, with the layers that compute in float16 on the way to it."""
    for update, gradient in updates_by_hand(facts):
        loss = target(gradient)
        scaled = may_be_scaled_in(facts, loss) or is_taken_in_the_other_arm(update, gradient)
        half = [] if scaled else names_of_layers(applied_in_float16(facts, loss, update, sources(gradient)))
        if half:
            yield update, gradient, half


def stateless_unscaled(facts: SourceFacts) -> Iterator[tuple[Call, list[str]]]:
    """Like `unscaled_gradients`, for gradients that JAX took."""
    for apply, losses in stateless_steps(facts):
        if is_left_bare(facts, apply.receiver) and not any(may_be_scaled_in(facts, loss) for loss in losses):
            half = names_of_layers(layer for loss in losses for layer in applied_in_float16(facts, loss, apply))
            if half:
                yield apply, half


def minimized_unscaled(facts: SourceFacts) -> Iterator[tuple[Call, list[str]]]:
    """Calls of minimize() of a bare optimizer, in Keras 2, with the layers that compute in float16 whose weights it is
    given."""
    for call in facts.method_calls("minimize"):
        if _minimizes_unscaled(facts, call):
            models = [
                value for value in walk(call.argument(1, "var_list")) if isinstance(value, Call) and is_model(value)
            ]
            layers = [layer for model in models for layer in layers_of(facts, model)]
            half = names_of_layers(
                layer for layer in layers if is_float16(facts, layer) or is_assumed_float16(facts, layer)
            )
            if half:
                yield call, half


def _minimizes_unscaled(facts: SourceFacts, call: Call) -> bool:
    if facts.keras.is_keras3 or call.receiver is None or call.context.guarded:
        return False
    return is_left_bare(facts, call.receiver) and not _scales(facts, call)


def _scales(facts: SourceFacts, minimize: Call) -> bool:
    """Whether the loss that is minimized, or the function that gives it, may be scaled by hand."""
    loss = minimize.argument(0, "loss")
    functions = [
        option.of for option in options(loss) if isinstance(option, Defined) and isinstance(option.of, FunctionFacts)
    ]
    return may_be_scaled(loss) or any(may_be_scaled(r.value) for f in functions for r in facts.returns_of(f))


def names_of_layers(layers: Iterable[Call]) -> list[str]:
    """The names of layers as messages have them, each once."""
    return list(dict.fromkeys(str(layer_name(layer)) for layer in layers))
