"""Edits of the calls that a running program was seen to make optimizers with: what they say of the loss scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import with_keyword, without_keyword
from mpdoctor.semantics.source.edits.made_layers import location_of, tree_of

# Of a LossScaleOptimizer; without them Keras has a dynamic scale from 32768 on, doubled after 2000 finite steps.
LEFT_TO_KERAS = ("dynamic", "initial_scale", "dynamic_growth_steps")
FACTOR = "loss_scale_factor"  # of any optimizer of Keras 3: fixed, and without it nothing is scaled
SMALLER = "1024.0"


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
            elif keyword.arg == FACTOR:
                number = SMALLER if smaller is None else f"{smaller!r}"
                edit = with_keyword(facts, location_of(facts, call), FACTOR, number)
                title = f"Give it {FACTOR}={number}"
            else:
                continue
            if edit is not None:
                yield title, edit
