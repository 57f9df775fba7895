"""Tests that a program can answer in one way only: `if DEBUG:` behind `DEBUG = False`."""

from __future__ import annotations

import ast

from mpdoctor.program.values import MISSING, Value, certainly_known
from mpdoctor.source.existence_checks import attributes_asked
from mpdoctor.source.fixed_attributes import sets
from mpdoctor.source.interpreter.state.interpreter_state import State


def certain_answer(state: State, test: ast.expr, value: Value) -> object:
    """The answer to a test whose value is known and cannot be another one in another object, or later; MISSING where it
    may."""
    answer = certainly_known(value)
    return answer if answer is not MISSING and is_fixed(state, test) else MISSING


def is_fixed(state: State, test: ast.expr) -> bool:
    """Whether what a test reads is the same in all objects of the program."""
    return all(_is_set_once(state, name) for name in attributes_asked(test))


def _is_set_once(state: State, name: str) -> bool:
    """Whether one module sets attributes of that name, each class once to a constant, and no other module does."""
    modules = state.modules.values()
    homes = [module for module in modules if name in module.source.text and name in module.fixed_attributes]
    others = (module for module in modules if module not in homes)
    return len(homes) == 1 and not any(module.sets_any_attribute or sets(module.source.text, name) for module in others)
