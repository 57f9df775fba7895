"""Comprehensions: lists, sets, dicts and generators that are made of what another container holds."""

from __future__ import annotations

import ast

from mpdoctor.program.events import Call
from mpdoctor.program.values import MISSING, Collection, Known, Value, certainly_known, is_api, known
from mpdoctor.source.existence_checks import asks_whether_it_works
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.containers.elements import contents_of, element_of, iterated
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Scope
from mpdoctor.source.joining import tells_of_all

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
MOST_UNROLLED = 4  # elements of a comprehension that are followed one by one
MOST_COPIED = 16  # entries of a dict or list that is copied by a comprehension which calls nothing
MOST_UNROLLING = 2  # comprehensions inside one another that are followed so


def evaluate_comprehension(state: State, node: Comprehension) -> Value:
    """The list, set or dict that a comprehension makes: over a few known elements with an item for each, else with one
    that stands for all."""
    before, outer = state.scope, state.context
    state.scope = Scope(before.enclosing_function if before.is_class else before)
    first = iterated(state, evaluate(state, node.generators[0].iter))
    elements = _few_elements(node, contents_of(first))
    made = None
    if elements is not None and state.walk.unrolling < MOST_UNROLLING:
        state.walk.unrolling += 1
        made = _evaluate_for_each(state, node, elements)
        state.walk.unrolling -= 1
    if made is None:
        made = _evaluate_for_any(state, node, first)
    state.scope, state.context = before, outer
    return made


def _few_elements(node: Comprehension, iterable: Value) -> tuple[Value, ...] | None:
    """The elements that a comprehension iterates over, if it has one iterable that is short and fully known; None where
    the results could not be told apart."""
    if len(node.generators) > 1 or isinstance(node, ast.SetComp):
        return None
    makes = node.value if isinstance(node, ast.DictComp) else node.elt
    calls = any(isinstance(inner, ast.Call) for inner in ast.walk(makes))
    if not calls and not isinstance(node, ast.DictComp) and not isinstance(makes, ast.Name):
        return None
    if isinstance(iterable, Call) and is_api(iterable.callee, "builtins.range") and len(iterable.args) == 1:
        count = known(iterable.args[0])
        is_few = type(count) is int and 0 < count <= MOST_UNROLLED
        return tuple(Known(iterable.location, number) for number in range(count)) if is_few else None
    if not isinstance(iterable, Collection) or iterable.open or iterable.kind == "set":
        return None
    elements = iterable.keys if iterable.kind == "dict" else iterable.items
    return elements if 0 < len(elements) <= (MOST_UNROLLED if calls else MOST_COPIED) else None


def _evaluate_for_each(state: State, node: Comprehension, elements: tuple[Value, ...]) -> Value | None:
    """The results of a comprehension for each element; None where a condition leaves open which elements it takes."""
    keys: list[Value] = []
    items: list[Value] = []
    for element in elements:
        assign(state, node.generators[0].target, element)
        answers = [certainly_known(evaluate(state, condition)) for condition in node.generators[0].ifs]
        if MISSING in answers:
            return None
        if not all(answers):
            continue
        if isinstance(node, ast.DictComp):
            keys.append(evaluate(state, node.key))
        items.append(evaluate(state, node.value if isinstance(node, ast.DictComp) else node.elt))
    kind = "dict" if isinstance(node, ast.DictComp) else "list"
    return Collection(state.place(node), kind, tuple(items), tuple(keys))


def _evaluate_for_any(state: State, node: Comprehension, first: Value) -> Value:
    outer = state.context
    state.context = state.context.but(loops=outer.loops + 1, comprehensions=outer.comprehensions + 1)
    for generator in node.generators:
        iterable = first if generator is node.generators[0] else iterated(state, evaluate(state, generator.iter))
        assign(state, generator.target, element_of(iterable, state.place(generator.target)))
        for condition in generator.ifs:
            if asks_whether_it_works(condition, evaluate(state, condition)):
                state.context = state.context.but(guarded=True)
    if isinstance(node, ast.DictComp):
        keys: tuple[Value, ...] = (evaluate(state, node.key),)
        items: tuple[Value, ...] = (evaluate(state, node.value),)
        kind = "dict"
    else:
        keys, items = (), (evaluate(state, node.elt),)
        kind = "set" if isinstance(node, ast.SetComp) else "list"
    return Collection(state.place(node), kind, items, keys, open=True, uniform=tells_of_all(items[0]))
