"""The arm of an `if` in which each of several functions runs, where a name may hold any of them."""

from __future__ import annotations

import ast

from mpdoctor.program.context import Branch, Context
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Either, Value
from mpdoctor.source.interpreter.calls.callees import executed_function
from mpdoctor.source.interpreter.state.interpreter_state import State


def where_chosen(state: State, context: Context, node: ast.Call, callee: Either, number: int) -> Context:
    """The context in which one of several possible functions runs. After `step = a if fast else b`, each runs on a path
    of its own, as if it stood in an `if`; a loop over functions may run them one after the other."""
    if not all(_is_own_function(state, choice) for choice in callee.options):
        return context
    chosen = _arms_of_choice(state, callee)
    arms = (chosen[number],) if chosen else _arms_of_table(node, number, _runs_once(context))
    return context.but(branches=(*context.branches, *arms))


def _arms_of_table(node: ast.Call, number: int, runs_once: bool) -> tuple[Branch, ...]:
    """The arms of an `if … elif … elif …` by which one of several functions runs: a call that runs once, such as
    `table[name]()`, runs only one of them."""
    before = tuple(Branch(id(node) + earlier, taken=False) for earlier in range(number)) if runs_once else ()
    return (*before, Branch(id(node) + number, taken=True))


def _runs_once(context: Context) -> bool:
    """Whether code runs once in a program: other functions than `main()` may be called again, by a library too."""
    return context.loops == 0 and (context.function is None or context.function.name == "main")


def _arms_of_choice(state: State, callee: Either) -> list[Branch]:
    """The two arms of one `if` in which the functions were given the name; [] where they were not."""
    functions = [choice.of for choice in callee.options if isinstance(choice, Defined)]
    arms = [state.walk.chosen_in[id(of)] for of in functions if id(of) in state.walk.chosen_in]
    is_one_choice = len(arms) == len(callee.options) == 2 and arms[0].statement == arms[1].statement
    return arms if is_one_choice and arms[0].taken != arms[1].taken else []


def _is_own_function(state: State, callee: Value) -> bool:
    is_class = isinstance(callee, Defined) and isinstance(callee.of, ClassFacts)
    return not is_class and executed_function(state, callee)[0] is not None
