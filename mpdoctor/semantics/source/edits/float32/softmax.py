"""Replaces a softmax or softplus written by hand, `exp(x) / sum(exp(x))` or `log(1 + exp(x))`, by Keras' or
TensorFlow's."""

from __future__ import annotations

from mpdoctor.facts.location import holds
from mpdoctor.finding import Edit
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, known, options
from mpdoctor.semantics.source.edits.expressions import replaced
from mpdoctor.semantics.source.edits.names import advice_in_names_of, name_of
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.texts.written import argument_at, argument_text, text_of

FUNCTION = "tf.nn.softmax"
SOFTPLUS = "tf.nn.softplus"


def softmax_instead(facts: SourceFacts, total: Call) -> Edit | None:
    """The edit that writes a softmax in the place of exponentials divided by their sum; None where it is not certain
    that they are one. `total`: the sum, over one axis and with `keepdims`."""
    axis = argument_text(facts, total.location, "axis", 1)
    is_kept = True in (known(total.keyword("keepdims")), known(total.keyword("keep_dims")))
    divisions = [operation for operation in facts.operations if _divides_by(operation, total)]
    if axis is None or not is_kept or not isinstance(known(total.argument(1, "axis")), int) or len(divisions) != 1:
        return None
    given, softmax = _exponents(facts, divisions[0], total), _spelled(facts, FUNCTION)
    if given is None or softmax is None:
        return None
    return replaced(facts, divisions[0].location, f"{softmax}({given}, axis={axis})")


def is_softplus(event: Call | Operation) -> bool:
    """Whether it is `log(1 + exp(x))` or `log1p(exp(x))`."""
    return isinstance(event, Call) and _exponential_of_softplus(event) is not None


def softplus_instead(facts: SourceFacts, logarithm: Call) -> Edit | None:
    """The edit that writes a softplus in the place of the logarithm, whose exponential stands in it."""
    exponential, softplus = _exponential_of_softplus(logarithm), _spelled(facts, SOFTPLUS)
    if exponential is None or softplus is None or not holds(logarithm.location, exponential.location):
        return None
    given = _argument(facts, exponential)
    return replaced(facts, logarithm.location, f"{softplus}({given})") if given is not None else None


def _exponential_of_softplus(logarithm: Call) -> Call | None:
    given, name = logarithm.argument(0, "x"), function_named(logarithm)
    if name == "log1p":
        return _exponential(given)
    choices = options(given)
    total = choices[0] if len(choices) == 1 else None
    if name != "log" or not isinstance(total, Operation) or total.operator != "+" or len(total.operands) != 2:
        return None
    ones = [operand for operand in total.operands if known(operand) in (1, 1.0)]
    others = [operand for operand in total.operands if operand not in ones]
    return _exponential(others[0]) if len(ones) == len(others) == 1 else None


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


def _spelled(facts: SourceFacts, function: str) -> str | None:
    """The name of TensorFlow's function in this file; None where the file imports nothing that has it."""
    spelled = advice_in_names_of(facts, function)
    return spelled if spelled != function or name_of(facts, "tensorflow", "tensorflow.compat.v2") == "tf" else None
