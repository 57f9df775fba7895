"""Tests that a program can answer in one way only: `if DEBUG:` behind `DEBUG = False`."""

from __future__ import annotations

import ast

from mpdoctor.program.values import MISSING, Value, certainly_known
from mpdoctor.source.existence_checks import attributes_asked
from mpdoctor.source.fixed_attributes import AttributesSet
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
    if script is None:
        return False
    question = name, len(script.imports), len(state.modules)  # what is imported later may set it, too
    answer = state.walk.set_once.get(question)
    if answer is None:
        modules = [script.attributes_set, *(module.attributes_set for module, _ in imports_of(script))]
        answer = not any(module.sets_any for module in modules) and _is_set_in_one(modules, name)
        state.walk.set_once[question] = answer
    return answer


def _is_set_in_one(modules: list[AttributesSet], name: str) -> bool:
    setting = [module for module in modules if module.may_set(name)]
    return len(setting) == 1 and setting[0].sets_once(name)
