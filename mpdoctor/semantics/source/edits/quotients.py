"""Edits of a division that a vanishing epsilon guards: as a call that returns 0 where the divisor is 0."""

from __future__ import annotations

import ast

from mpdoctor.finding import Fix
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import replaced, unsafe_fix
from mpdoctor.semantics.source.edits.names import keras_ops, tensorflow
from mpdoctor.semantics.source.numbers.epsilon_guards import (
    Guard,
    has_logarithm_taken,
    is_number_divided,
    without_guard,
)
from mpdoctor.semantics.source.texts.syntax_trees import tree_of
from mpdoctor.semantics.wording import expression_at, text_at


def divided_without_nan(facts: SourceFacts, guard: Guard) -> Fix | None:
    """The edit that writes `tf.math.divide_no_nan(a, b)` for `a / (b + 1e-9)`; None where it takes several lines, or
    the file names neither TensorFlow nor keras.ops."""
    place = guard.user.location
    tf, ops = _library(facts, guard)
    if place.line != place.end_line or not (tf or ops):
        return None
    instead = quotient_without_nan(facts, guard, tf, ops)
    return unsafe_fix("Return 0 for a divisor of 0", replaced(facts, place, instead)) if instead else None


def _library(facts: SourceFacts, guard: Guard) -> tuple[str, str]:
    """How the file calls TensorFlow, or else keras.ops, that divides there. Keras 3's symbolic tensors go through
    keras.ops alone: TensorFlow divides where the line, or its function, calls it already."""
    tf, ops = tensorflow(facts), keras_ops(facts)
    if tf is None or not facts.keras.is_keras3:
        return tf or "", ops or ""
    line, text = guard.user.location.line, text_at(facts, guard.user.location)
    nodes = ast.walk(tree_of(facts) or ast.Module([], []))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
    names = [node.id for node in ast.walk(around[-1]) if isinstance(node, ast.Name)] if around else []
    if f"{tf}." in text or (tf in names and not (ops and f"{ops}." in text)):
        return tf, ""
    return "", ops or ""


def quotient_without_nan(facts: SourceFacts, guard: Guard, tf: str, ops: str) -> str:
    """The quotient as a call that returns 0 where its divisor is 0: of TensorFlow, or of `ops` where `tf` is "". ""
    where it is not written as `a / b`, or its logarithm is taken."""
    quotient = expression_at(facts, guard.user.location)
    if not isinstance(quotient, ast.BinOp) or not isinstance(quotient.op, ast.Div):
        return ""
    if has_logarithm_taken(facts, guard.user):
        return ""
    above, below = ast.unparse(quotient.left), ast.unparse(without_guard(quotient.right, guard))
    if tf and tensorflow(facts) and is_number_divided(guard.user):
        times = "" if above in ("1", "1.0") else f"{above} * "
        return f"{times}{tf}.math.reciprocal_no_nan({below})"  # up to 2.10 the other refuses a number
    return f"{f'{tf}.math' if tf else ops}.divide_no_nan({above}, {below})"
