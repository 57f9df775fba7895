"""Replaces a softmax written by hand, `exp(x) / sum(exp(x))`, by Keras' or TensorFlow's."""

from __future__ import annotations

from mpdoctor.finding import Edit
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, known, options
from mpdoctor.semantics.source.edits.expressions import argument_at, argument_text, holds, replaced, text_of
from mpdoctor.semantics.source.edits.names import advice_in_names_of, name_of
from mpdoctor.semantics.source.function_names import function_named

FUNCTION = "tf.nn.softmax"


def softmax_instead(facts: SourceFacts, total: Call) -> Edit | None:
    """The edit that writes a softmax in the place of exponentials divided by their sum; None where it is not certain
    that they are one. `total`: the sum, over one axis and with `keepdims`."""
    axis = argument_text(facts, total.location, "axis", 1)
    is_kept = True in (known(total.keyword("keepdims")), known(total.keyword("keep_dims")))
    divisions = [operation for operation in facts.operations if _divides_by(operation, total)]
    if axis is None or not is_kept or not isinstance(known(total.argument(1, "axis")), int) or len(divisions) != 1:
        return None
    given, softmax = _exponents(facts, divisions[0], total), _softmax(facts)
    if given is None or softmax is None:
        return None
    return replaced(facts, divisions[0].location, f"{softmax}({given}, axis={axis})")


def _divides_by(operation: Operation, total: Call) -> bool:
    return operation.operator == "/" and len(operation.operands) == 2 and operation.operands[1] is total


def _exponents(facts: SourceFacts, division: Operation, total: Call) -> str | None:
    """What is exponentiated above and below, as it is written there: `x` of `exp(x)`. Where a name stands for the
    exponentials, the line before must have bound it, so that `x` is still the same."""
    above, below = (_exponential(value) for value in (division.operands[0], total.argument(0, "x")))
    if above is None or below is None:
        return None
    texts = {_argument(facts, above), _argument(facts, below)}
    if len(texts) != 1 or (above is not below and None in texts):
        return None
    given = texts.pop()
    if given is None or holds(division.location, above.location):
        return given
    exponentials = (text_of(facts, division.location) or "").partition("/")[0].strip()
    is_line_before = above is below and above.location.end_line == division.location.line - 1
    return given if is_line_before and given.isidentifier() and given != exponentials else None


def _exponential(value: Value | None) -> Call | None:
    choices = options(value)
    only = choices[0] if len(choices) == 1 else None
    return only if isinstance(only, Call) and function_named(only) == "exp" else None


def _argument(facts: SourceFacts, exponential: Call) -> str | None:
    place = argument_at(facts, exponential.location, 0, "x")
    return text_of(facts, place) if place is not None else None


def _softmax(facts: SourceFacts) -> str | None:
    """The name of the softmax in this file; None where the file imports nothing that has it."""
    spelled = advice_in_names_of(facts, FUNCTION)
    return spelled if spelled != FUNCTION or name_of(facts, "tensorflow", "tensorflow.compat.v2") == "tf" else None
