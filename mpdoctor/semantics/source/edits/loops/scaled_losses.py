"""Edits of a training loop of the program's own: that scale its loss, unscale its gradients, and empty what they are
added up in."""

from __future__ import annotations

import ast
import dataclasses
import re

from mpdoctor.finding import Edit
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import options, walk
from mpdoctor.semantics.source.edits.expressions import put_around, replaced
from mpdoctor.semantics.source.edits.loops.under_tapes import behind_last_under_tape, reads_what_comes_later
from mpdoctor.semantics.source.edits.names import keras_name, tensorflow
from mpdoctor.semantics.source.edits.statements import line_behind, passed_on, statement_at
from mpdoctor.semantics.source.loops.gradients import UNSCALING, is_tape, is_without_tape, target
from mpdoctor.semantics.source.texts.syntax_trees import called
from mpdoctor.semantics.source.texts.written import argument_at, callee_text, expression_written, text_of
from mpdoctor.semantics.wording import receiver_text

WRAPPER = "mixed_precision.LossScaleOptimizer"


def loss_scaled(
    facts: SourceFacts, apply: Call, gradient: Call, unscales: bool, wrapper: str = ""
) -> list[Edit] | None:
    """The edits that scale the loss under the tape, in a line behind the one that computes it; in Keras 2 also those
    that unscale the gradients, unless the loop does so already (`unscales`). `wrapper`: what the LossScaleOptimizer is
    called there, where the gradients are applied by another one."""
    of, place = wrapper or receiver_text(facts, apply), argument_at(facts, gradient.location, 0, "target")
    name = text_of(facts, place) if place is not None else None
    if not name or not name.isidentifier() or place is None or not _is_called_alike(apply, gradient, of):
        return None
    scaled = _free_name(facts, f"scaled_{name}", of)
    method = "scale_loss" if facts.keras.is_keras3 else "get_scaled_loss"
    line = _line_behind_loss(facts, gradient, name, f"{scaled} = {of}.{method}({name})")
    given = replaced(facts, place, scaled)
    if line is None or given is None:
        return None
    if facts.keras.is_keras3 or unscales:
        return [line, given]
    around = put_around(facts, gradient.location, f"{of}.get_unscaled_gradients(", ")")
    return [line, given, *around] if around is not None else None


def _is_called_alike(apply: Call, gradient: Call, optimizer: str) -> bool:
    """Whether the optimizer has one name at both places: those of one function, or an attribute in two methods of one
    class."""
    here, there = apply.context.function, gradient.context.function
    if here is there:
        return True
    if here is None or there is None or here.owner is None or here.owner is not there.owner:
        return False
    return here.self_name == there.self_name and optimizer.startswith(f"{here.self_name}.")


def _free_name(facts: SourceFacts, name: str, optimizer: str) -> str:
    """The name for a scaled loss, with that of its optimizer where the file has the name already: two optimizers may
    scale one loss, and each has a scale of its own."""
    return f"{name}_of_{optimizer.rpartition('.')[2]}" if re.search(rf"\b{name}\b", facts.text) else name


def _line_behind_loss(facts: SourceFacts, gradient: Call, name: str, text: str) -> Edit | None:
    losses = options(target(gradient))
    loss = losses[0] if len(losses) == 1 else None
    if isinstance(loss, Call | Operation) and _is_made_beside(gradient, loss):
        statement = statement_at(facts, loss.location)
        if statement is not None and statement.text.startswith(f"{name} = "):
            is_too_early = reads_what_comes_later(facts, statement.location.end_line, text)
            return None if is_too_early else line_behind(facts, loss.location, text)
    return behind_last_under_tape(facts, gradient.location, name, text)


def named_apart(facts: SourceFacts, scaling: Call, gradients: list[Call]) -> list[Edit] | None:
    """A name of its own for the scaled loss of `loss = optimizer.scale_loss(loss)`, by which it is differentiated: what
    else says `loss` means the unscaled one. None where the line has another form, or another function differentiates
    it."""
    statement, given = statement_at(facts, scaling.location), argument_at(facts, scaling.location, 0, "loss")
    name = text_of(facts, given) if given is not None else None
    if statement is None or not name or not name.isidentifier() or not statement.text.startswith(f"{name} = "):
        return None
    if statement.text.partition(" = ")[2] != text_of(facts, scaling.location) or not gradients:
        return None
    scaled = _free_name(facts, f"scaled_{name}", receiver_text(facts, scaling))
    start = statement.location
    place = dataclasses.replace(start, end_line=start.line, end_column=start.column + len(name))
    edits = [replaced(facts, place, scaled)]
    for gradient in gradients:
        target_place = argument_at(facts, gradient.location, 0, "target")
        here, there = scaling.context, gradient.context
        if target_place is None or text_of(facts, target_place) != name:
            return None
        if here.function is not there.function or here.branches != there.branches:
            return None
        edits.append(replaced(facts, target_place, scaled))
    return [edit for edit in edits if edit is not None] if None not in edits else None


def unscaled_at_tape(facts: SourceFacts, unscaling: Call, gradient: Call) -> list[Edit] | None:
    """The gradients unscaled as they come from the tape (Keras 2), and not once more where they were until now."""
    if unscaling.context.function is not gradient.context.function:
        return None
    if unscaling.context.branches != gradient.context.branches:
        return None
    before = f"{receiver_text(facts, unscaling)}.get_unscaled_gradients("
    around, without = put_around(facts, gradient.location, before, ")"), passed_on(facts, unscaling.location)
    if around is None or without is None:
        return None
    return [*around, *(without if isinstance(without, list) else [without])]


def zeroed_behind(facts: SourceFacts, apply: Call) -> Edit | None:
    """A loop behind a call that applies variables: it sets them to zero."""
    tf, store = tensorflow(facts), _text_of_store(expression_written(facts, apply.location))
    first = line_behind(facts, apply.location, f"for kept in {store}:") if tf is not None and store else None
    if first is None:
        return None
    indent = first.text[: len(first.text) - len(first.text.lstrip())]
    return Edit(first.location, f"{first.text}{indent}    kept.assign({tf}.zeros_like(kept))")


def _text_of_store(written: ast.expr | None) -> str:
    """The list of gradient sums in `apply(sums, …)` or `apply_gradients(zip(opt.get_unscaled_gradients(sums), …))`, as
    text; "" for anything else."""
    if isinstance(written, ast.Call):
        inner = called(written) in (*APPLYING, "zip", "list", UNSCALING) and written.args
        return _text_of_store(written.args[0]) if inner else ""
    if isinstance(written, ast.ListComp) and len(written.generators) == 1:
        (generator,) = written.generators
        element = written.elt
        if isinstance(element, ast.Call) and called(element) in ("read_value", "value") and not element.args:
            element = element.func.value if isinstance(element.func, ast.Attribute) else element
        same = isinstance(element, ast.Name) and ast.unparse(element) == ast.unparse(generator.target)
        return _text_of_store(generator.iter) if same and not generator.ifs else ""
    return ast.unparse(written) if isinstance(written, ast.Name | ast.Attribute) else ""


def wrapped_where_made(facts: SourceFacts, apply: Call) -> list[Edit] | None:
    """A LossScaleOptimizer around the one call of this file that makes the optimizer: that of the same library."""
    made = options(apply.receiver)
    if len(made) != 1 or not isinstance(made[0], Call):
        return None
    place = made[0].location
    library, module, _ = callee_text(facts, place).partition(".optimizers.")
    wrapper = f"{library}.{WRAPPER}" if module else keras_name(facts, WRAPPER)
    return put_around(facts, place, f"{wrapper}(", ")") if wrapper is not None else None


def _is_made_beside(gradient: Call, loss: Call | Operation) -> bool:
    """Whether it is made under the tape, where one is needed, in the function that differentiates it."""
    under_tape = any(is_tape(part) for value in loss.context.withs for part in walk(value))
    return (under_tape or is_without_tape(gradient)) and loss.context.function is gradient.context.function
