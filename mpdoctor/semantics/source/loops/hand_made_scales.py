"""A loss that the program multiplies by its own number, and gradients that it applies undivided."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.knowledge.api_names import CLIPPING
from mpdoctor.program.command_line import is_from_command_line, without_command_line
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, agreed, is_api, known, options
from mpdoctor.semantics.source.loops.float16_layers import applied_in_float16
from mpdoctor.semantics.source.loops.gradients import (
    applied_gradients,
    optimizer_scales,
    sources,
    target,
    until_gradients,
)
from mpdoctor.semantics.source.loops.loss_scale_signs import is_scaled_by, may_be_scaled_in, scale_by_hand
from mpdoctor.semantics.source.loops.resized_gradients import unscaled_on_the_way
from mpdoctor.semantics.source.loops.scaling import MULTIPLYING, is_scale
from mpdoctor.semantics.source.loops.updates_by_hand import rate_by_hand, updates_by_hand
from mpdoctor.semantics.source.programs.running_functions import functions_around
from mpdoctor.semantics.wording import expression_at, text_at

PLAIN = ("keras.optimizers.SGD", "keras.optimizers.legacy.SGD", "keras.optimizers.experimental.SGD")
RATES = ("learning_rate", "lr", "_learning_rate")
USUAL_RATE = 0.01  # SGD's own, in every Keras
LARGEST_RATE = 1.0  # of SGD; a rate that is no more than this with the scale in it was chosen with it in mind


def never_divided(facts: SourceFacts) -> Iterator[tuple[Call, int, str]]:
    """(apply call, or the one that changes a weight by hand, the factor, how it is written if it comes from the command
    line, else "") where the update is certainly too large by the factor, of the command line its default.

    Adam and its kin divide by the size of the gradients, clipping takes the size away, and a small learning rate may
    have been chosen for it: of these nothing is said."""
    for apply, gradient in applied_gradients(facts):
        factor = _factor(target(gradient))
        if factor is None or optimizer_scales(facts, apply) is not None or unscaled_on_the_way(facts, apply, gradient):
            continue
        if any(_clips(part) for part in until_gradients(apply)):
            continue
        half = applied_in_float16(facts, target(gradient), apply, sources(gradient))
        if _is_plain(facts, apply, factor) and any(half):
            yield apply, factor, _written_setting(facts, target(gradient))
    for update, gradient in updates_by_hand(facts):
        factor, rate = _factor(target(gradient)), rate_by_hand(update, gradient)
        if factor is None or rate is None or rate * factor <= LARGEST_RATE:
            continue
        if any(applied_in_float16(facts, target(gradient), update, sources(gradient))):
            yield update, factor, _written_setting(facts, target(gradient))


def scales_in_its_step(facts: SourceFacts, model: Value) -> bool:
    """Whether a model's own `train_step` may scale the loss by hand, so that its optimizer need not. `scale_loss` of an
    optimizer that is bare gives the loss back as it is."""
    own = class_of(model)
    step = own.find_method("train_step") if own is not None else None
    gradients = facts.method_calls("gradient") if step is not None else ()
    losses = [
        target(call) for call in gradients if step in (call.context.function, *functions_around(facts, call.context))
    ]
    return any(may_be_scaled_in(facts, loss) and not is_scaled_by(loss, "scale_loss") for loss in losses)


def scaled_by_hand(product: Value) -> tuple[Value, Value] | None:
    """(the loss, the scale) of `loss * 1024.0` and of `loss * optimizer.dynamic_scale`; None of another value."""
    operands = _operands(product)
    scales = [operand for operand in operands if scale_by_hand(operand) is not None or is_scale(operand)]
    if len(operands) != 2 or len(scales) != 1:
        return None
    return operands[operands[0] is scales[0]], scales[0]


def _operands(product: Value) -> tuple[Value, ...]:
    if isinstance(product, Operation):
        return product.operands if product.operator == "*" else ()
    return product.arguments(slice(2)) if isinstance(product, Call) and is_api(product.callee, *MULTIPLYING) else ()


def _factor(loss: Value | None) -> int | None:
    """The number that a loss is multiplied by, if it is the same on every path; else None."""
    return agreed(_one_factor(option) for option in options(loss))


def _written_setting(facts: SourceFacts, loss: Value | None) -> str:
    """The text of the setting that the loss is multiplied by, such as `args.scale`; "" where there is none."""
    factors = (operand for option in options(loss) for operand in _operands(option) if scale_by_hand(operand))
    settings = (choice for factor in factors for choice in options(factor) if is_from_command_line(choice))
    return next((text_at(facts, setting.location) for setting in settings), "")


def _one_factor(loss: Value) -> int | None:
    operands = _operands(loss)
    scales = [scale for operand in operands if (scale := scale_by_hand(operand)) is not None]
    return scales[0] if len(scales) == 1 and len(operands) == 2 else None


def _clips(value: Value) -> bool:
    return isinstance(value, Call) and ("clip" in value.method or "normalize" in value.method)


def _is_plain(facts: SourceFacts, apply: Call, factor: int) -> bool:
    """Whether its optimizer takes the gradients at their size, at a rate that leaves no room for the factor."""
    made = options(apply.receiver)
    return bool(made) and all(
        isinstance(optimizer, Call)
        and isinstance(optimizer.callee, Api)
        and optimizer.callee.is_(*PLAIN)
        and not optimizer.open
        and not any(optimizer.keyword(name) for name in CLIPPING)
        and _rate(facts, optimizer) * factor > LARGEST_RATE
        and not _is_changed(facts, optimizer)
        for optimizer in made
    )


def _rate(facts: SourceFacts, optimizer: Call) -> float:
    """The learning rate; 0.0 where it is not known, or is computed: the factor may be divided out there."""
    given = optimizer.argument(0, "learning_rate") or optimizer.keyword("lr")
    if given is None:
        return USUAL_RATE
    choices = without_command_line(given)
    if len(choices) != 1:
        return 0.0
    rate = known(choices[0])
    written = expression_at(facts, choices[0].location)
    is_plain = isinstance(rate, (int, float)) and isinstance(written, ast.Constant)
    return float(rate) if is_plain and isinstance(rate, (int, float)) else 0.0


def _is_changed(facts: SourceFacts, optimizer: Call) -> bool:
    """Whether its rate is set later, or read to be set with `assign`."""
    writes = any(write.name in RATES and optimizer in options(write.of) for write in facts.writes)
    return writes or any(read.name in RATES and optimizer in options(read.of) for read in facts.reads)
