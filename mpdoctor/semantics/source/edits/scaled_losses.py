"""Edits that scale the loss of a training loop of the program's own."""

from __future__ import annotations

from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Call, Operation, options, walk
from mpdoctor.semantics.source.edits.expressions import argument_at, callee_text, put_around, replaced, text_of
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.edits.statements import line_behind, statement_at
from mpdoctor.semantics.source.optimizers.gradients import is_tape, target
from mpdoctor.semantics.wording import receiver_text

WRAPPER = "mixed_precision.LossScaleOptimizer"


def loss_scaled(facts: SourceFacts, apply: Call, gradient: Call, unscales: bool) -> list[Edit] | None:
    """A line that scales the loss behind the one that makes it, under the tape; in Keras 2 the gradients unscaled,
    where the loop does not do so already (`unscales`)."""
    of, place = receiver_text(facts, apply), argument_at(facts, gradient.location, 0, "target")
    name = text_of(facts, place) if place is not None else None
    losses = options(target(gradient))
    if not name or not name.isidentifier() or len(losses) != 1 or place is None:
        return None
    loss = losses[0]
    if not isinstance(loss, Call | Operation) or not _are_together(apply, gradient, loss):
        return None
    statement = statement_at(facts, loss.location)
    if statement is None or not statement.text.startswith(f"{name} = "):
        return None
    scaled = "scaled_loss" if "scaled_loss" not in facts.text else f"scaled_{name}"
    method = "scale_loss" if facts.keras.is_keras3 else "get_scaled_loss"
    line = line_behind(facts, loss.location, f"{scaled} = {of}.{method}({name})")
    given = replaced(facts, place, scaled)
    if line is None or given is None:
        return None
    if facts.keras.is_keras3 or unscales:
        return [line, given]
    around = put_around(facts, gradient.location, f"{of}.get_unscaled_gradients(", ")")
    return [line, given, *around] if around is not None else None


def wrapped_where_made(facts: SourceFacts, apply: Call) -> list[Edit] | None:
    """A LossScaleOptimizer around the one call of this file that makes the optimizer: that of the same library."""
    made = options(apply.receiver)
    if len(made) != 1 or not isinstance(made[0], Call):
        return None
    place = made[0].location
    library, module, _ = callee_text(facts, place).partition(".optimizers.")
    wrapper = f"{library}.{WRAPPER}" if module else keras_name(facts, WRAPPER)
    return put_around(facts, place, f"{wrapper}(", ")") if wrapper is not None else None


def _are_together(apply: Call, gradient: Call, loss: Call | Operation) -> bool:
    """Whether all of it stands in one function, and the loss is made under the tape."""
    under_tape = any(is_tape(one) for value in loss.context.withs for one in walk(value))
    return under_tape and loss.context.function is gradient.context.function is apply.context.function
