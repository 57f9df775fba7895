"""Attributes in which a program counts, `self.steps += 1`, or that it turns on or off. What they hold at first is not
what they hold later."""

from __future__ import annotations

from mpdoctor.program.context import Context
from mpdoctor.program.values import Known, Unknown, Value
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined
from mpdoctor.source.syntax_nodes import SETTING_UP


def first_or_later(state: State, value: Known) -> Value:
    """What an attribute holds that the program counts up or turns on: a number or an answer, or an unknown value where
    that may have happened before it comes here."""
    if not isinstance(value.value, (bool, int, float)) or _is_first_time(state.context):
        return value
    return joined((value, Unknown(value.location)))


def _is_first_time(context: Context) -> bool:
    """Whether code runs before anything can have been counted: while an object is set up, or in no loop of a program
    that comes here by itself."""
    function = context.function
    if function is not None and function.name in SETTING_UP:
        return True
    return not context.loops and context.reached and (function is None or bool(context.callers))
