"""Tests that a program can answer in one way only: `if DEBUG:` behind `DEBUG = False`."""

from __future__ import annotations

import ast

from mpdoctor.program.values import MISSING, Value, certainly_known
from mpdoctor.source.existence_checks import attributes_asked
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import imports_of


def certain_answer(state: State, test: ast.expr, value: Value) -> object:
    """The answer to a test whose value is known and cannot be another one in another object, or later; MISSING where it
    may."""
    answer = certainly_known(value)
    return answer if answer is not MISSING and is_fixed(state, test) else MISSING


def is_fixed(state: State, test: ast.expr) -> bool:
    """Whether what a test reads is the same in all objects of the program."""
    return all(_is_set_once(state, name) for name in attributes_asked(test))


def _is_set_once(state: State, name: str) -> bool:
    """Whether one module of the program sets attributes of that name, each class once to a constant. Of a module that
    is walked apart from what imports it nobody knows."""
    script = state.walk.script
    modules = [] if script is None else [script, *(module for module, _ in imports_of(script))]
    setting = [module for module in modules if module.attributes_set.may_set(name)]
    return len(setting) == 1 and setting[0].attributes_set.sets_once(name)
