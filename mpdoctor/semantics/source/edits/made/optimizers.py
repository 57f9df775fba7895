"""Edits of the calls with which a running program made its optimizers: their loss-scale arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.knowledge.wrapper_api import LOSS_SCALE_FACTOR
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import callee_replaced, put_around, with_keyword, without_keyword
from mpdoctor.semantics.source.edits.names import keras_name, with_import
from mpdoctor.semantics.source.texts.syntax_trees import called, location_of, tree_of

# Of a LossScaleOptimizer; without them Keras has a dynamic scale from 32768 on, doubled after 2000 finite steps.
LEFT_TO_KERAS = ("dynamic", "initial_scale", "dynamic_growth_steps")
SMALLER = "1024.0"
OWN = "mpdoctor.training"
OWN_WRAPPER = f"{OWN}.LossScaleOptimizer"


def usual_scale(facts: SourceFacts, made_at: Location, smaller: float | None = None) -> Iterator[tuple[str, Edit]]:
    """(a title, the edit) for each argument about the loss scale in the calls around this line. `smaller`: a fixed
    scale that was tried."""
    tree = tree_of(facts)
    for call in ast.walk(tree) if tree is not None else ():
        if not isinstance(call, ast.Call) or not call.lineno <= made_at.line <= (call.end_lineno or call.lineno):
            continue
        for keyword in call.keywords:
            if keyword.arg in LEFT_TO_KERAS:
                edit = without_keyword(facts, location_of(facts, call), keyword.arg)
                title = f"Leave `{keyword.arg}` to Keras"
            elif keyword.arg == LOSS_SCALE_FACTOR:
                number = SMALLER if smaller is None else f"{smaller!r}"
                edit = with_keyword(facts, location_of(facts, call), LOSS_SCALE_FACTOR, number)
                title = f"Give the optimizer {LOSS_SCALE_FACTOR}={number}"
            else:
                continue
            if edit is not None:
                yield title, edit


def with_scale(
    facts: SourceFacts, made_at: Location, class_name: str, argument: str, text: str | None
) -> tuple[str, tuple[Edit, ...]] | None:
    """(a title, the edit) that gives the optimizer which this line makes another loss scale, or without a text leaves
    it to Keras; None where the line does not show which call makes it, or in which argument it says its scale."""
    making = _makings(facts, made_at, class_name)
    if len(making) != 1 or not (_is_named(making[0], argument) or _says_no_scale(making[0])):
        return None
    place = location_of(facts, making[0])
    if text is None:
        edit, title = without_keyword(facts, place, argument), f"Leave `{argument}` to Keras"
    else:
        edit, title = with_keyword(facts, place, argument, text), f"Give the optimizer {argument}={text}"
    return (title, (edit,)) if edit is not None else None


def in_wrapper_from(
    facts: SourceFacts, made_at: Location, class_name: str, argument: str, text: str
) -> tuple[str, tuple[Edit, ...]] | None:
    """(a title, the edits): a LossScaleOptimizer with this argument around the optimizer that this line makes, which
    compile() would wrap itself; None where the line does not show which call makes it."""
    making = _makings(facts, made_at, class_name)
    wrapper = keras_name(facts, "mixed_precision.LossScaleOptimizer")
    if len(making) != 1 or wrapper is None:
        return None
    edits = put_around(facts, location_of(facts, making[0]), f"{wrapper}(", f", {argument}={text})")
    return (f"Start with {argument}={text}", tuple(edits)) if edits else None


def in_own_wrapper(facts: SourceFacts, made_at: Location, class_name: str, is_wrapper: bool) -> tuple[Edit, ...]:
    """mpdoctor.training's LossScaleOptimizer around the optimizer that this line makes, or in the place of Keras' own;
    () where the line does not show which call makes it."""
    making = _makings(facts, made_at, class_name)
    imported = with_import(facts, OWN)
    if len(making) != 1 or imported is None:
        return ()
    place = location_of(facts, making[0])
    instead = callee_replaced(facts, place, OWN_WRAPPER)
    edits = instead and [instead] if is_wrapper else put_around(facts, place, f"{OWN_WRAPPER}(", ")")
    return (*imported, *edits) if edits else ()


def _makings(facts: SourceFacts, made_at: Location, class_name: str) -> list[ast.Call]:
    """The calls around a line that make an object of this class. What programs call LossScaleOptimizer is
    LossScaleOptimizerV3 in Keras 2, and LossScaleOptimizerV1 the experimental one of TensorFlow 2.4."""
    written = class_name.removesuffix("V1").removesuffix("V3")
    tree = tree_of(facts)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    here = (call for call in calls if call.lineno <= made_at.line <= (call.end_lineno or call.lineno))
    return [call for call in here if called(call) in (class_name, written)]


def _is_named(call: ast.Call, argument: str) -> bool:
    return any(keyword.arg == argument for keyword in call.keywords)


def _says_no_scale(call: ast.Call) -> bool:
    """Whether a call of LossScaleOptimizer leaves the scale to its default. The second positional argument is `dynamic`
    in Keras 2 and the scale in Keras 3; in TensorFlow 2.4 `loss_scale` is an object."""
    return len(call.args) < 2 and not any(keyword.arg in (None, "loss_scale") for keyword in call.keywords)
