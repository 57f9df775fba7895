"""The call of the program's own function that built a model, as a text that can be written a second time."""

from __future__ import annotations

import ast

from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.texts.written import expression_written, text_of


def build_call_written(facts: SourceFacts, model: Call) -> str | None:
    """`build_model(10)`, where a function at the top of the file builds the model and is given constants alone: its
    text means the same wherever it stands. None for everything else."""
    callers, function = model.context.callers, model.context.function
    if not callers or function is None or function.owner is not None or callers[-1].path != facts.path:
        return None
    call = expression_written(facts, callers[-1])
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != function.name:
        return None
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = [node for argument in given for node in ast.walk(argument) if isinstance(node, ast.Name)]
    is_at_top = facts.lines[function.location.line - 1].startswith("def ")
    return text_of(facts, callers[-1]) if is_at_top and not names else None
