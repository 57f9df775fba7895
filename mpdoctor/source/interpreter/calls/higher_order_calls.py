"""Functions that call at once the function that they are given, for each element: functools.reduce, map,
tf.nest.map_structure, tf.while_loop, tf.scan and a dataset of a generator; OmegaConf, which makes settings of a class
that it is given; and the commands that Hydra and click make of a function."""

from __future__ import annotations

from collections.abc import Callable

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Api, Collection, Value, is_api, options
from mpdoctor.source.interpreter.call_inlining import inline_uncalled
from mpdoctor.source.interpreter.calls.callees import closure_of
from mpdoctor.source.interpreter.containers.elements import element_of
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.joining import joined

MOST_ELEMENTS = 12  # of one list that are followed one by one
MAP_STRUCTURE = ("tensorflow.nest.map_structure", "keras.tree.map_structure", "tree.map_structure")
LOOPS = ("tensorflow.while_loop", "keras.ops.while_loop")
CARRYING = ("tensorflow.scan", "tensorflow.foldl", "tensorflow.foldr")
MERGING = ("omegaconf.OmegaConf.merge", "omegaconf.OmegaConf.structured")
FROM_GENERATOR = "tensorflow.data.Dataset.from_generator"
_HIGHER_ORDER = frozenset(
    ("functools.reduce", "builtins.map", FROM_GENERATOR, *MAP_STRUCTURE, *LOOPS, *CARRYING, *MERGING)
)

Apply = Callable[[Value, tuple[Value, ...]], Value]  # calls the first with the others


def result_of_higher_order(state: State, call: Call, apply: Apply) -> Value | None:
    """The result of such a function; None for other functions, or where what it is given cannot be followed."""
    if call.open or not isinstance(call.callee, Api) or not call.args:
        return None
    name = call.callee.name
    if name not in _HIGHER_ORDER:
        return None
    if name in MERGING:
        from mpdoctor.source.interpreter.calls.structured_settings import merged_settings  # few programs use it

        return merged_settings(state, call.args, call.location, lambda settings: apply(settings, ()))
    function, *rest = call.args
    if not all(isinstance(choice, (Api, Defined, Call)) for choice in options(function)):
        return None
    if name == "functools.reduce" and len(rest) in (1, 2):
        return _result_of_reduce(state, function, rest, call.location, apply)
    if name == "builtins.map" and rest:
        return _result_of_map(state, function, rest, call.location, apply)
    if name in MAP_STRUCTURE and rest:
        return _mapped_structure(state, function, rest, call.location, apply)
    if name in LOOPS and len(rest) > 1:
        return _result_of_while_loop(function, rest, apply)
    if name == FROM_GENERATOR and call.argument(3, "args") is None:
        _repeated(state, lambda: apply(function, ()))  # an event of its own; the dataset gives tensors of its elements
        return call
    return _result_of_scan(state, call, function, apply) if name in CARRYING else None


def _result_of_reduce(
    state: State, function: Value, rest: list[Value], location: Location, apply: Apply
) -> Value | None:
    elements = _elements(rest[0])
    if elements is None:
        element = element_of(rest[0], location)
        start = rest[1] if len(rest) > 1 else element
        return joined((start, _repeated(state, lambda: apply(function, (start, element)))))
    if len(rest) > 1:
        elements = (rest[1], *elements)
    if not elements:
        return None
    value = elements[0]
    for element in elements[1:]:
        value = apply(function, (value, element))
    return value


def _result_of_map(state: State, function: Value, rest: list[Value], location: Location, apply: Apply) -> Value:
    columns = [_elements(given) for given in rest]
    if all(column is not None for column in columns):
        rows = zip(*(column for column in columns if column is not None), strict=False)
        return Collection(location, "list", tuple(apply(function, row) for row in rows))
    return _for_any(state, function, rest, location, apply)


def _mapped_structure(state: State, function: Value, rest: list[Value], location: Location, apply: Apply) -> Value:
    """The result of `tf.nest.map_structure`, leaf by leaf; of what is no list, tuple or dict that the program writes
    out, one leaf stands for all."""
    first = rest[0]
    if not isinstance(first, Collection) or first.uniform or _elements(first) is None:
        return _for_any(state, function, rest, location, apply)
    leaves = []
    for number, item in enumerate(first.items):
        others = [_element_at(given, number, location) for given in rest[1:]]
        is_nested = isinstance(item, Collection)
        leaves.append(
            _mapped_structure(state, function, [item, *others], location, apply)
            if is_nested
            else apply(function, (item, *others))
        )
    return Collection(location, first.kind, tuple(leaves), first.keys)


def _element_at(given: Value, number: int, location: Location) -> Value:
    elements = _elements(given)
    return element_of(given, location) if elements is None or number >= len(elements) else elements[number]


def _for_any(state: State, function: Value, rest: list[Value], location: Location, apply: Apply) -> Value:
    """A list in which the result of one call stands for all elements, as in a comprehension."""
    row = tuple(element_of(given, location) for given in rest)
    made = _repeated(state, lambda: apply(function, row))
    return Collection(location, "list", (made,), open=True, uniform=True)


def _result_of_while_loop(condition: Value, rest: list[Value], apply: Apply) -> Value | None:
    body, variables = rest[0], rest[1]
    held = _elements(variables)
    if held is None:
        return None
    apply(condition, held)
    after = apply(body, held)
    if not isinstance(after, Collection) or len(after.items) != len(held):
        return None
    items = tuple(joined(pair) for pair in zip(held, after.items, strict=True))
    return Collection(after.location, "tuple", items)


def _result_of_scan(state: State, call: Call, function: Value, apply: Apply) -> Value | None:
    """`tf.scan(lambda carry, row: carry + row, rows, tf.zeros(8))`: for each row, with what it gave for the one before.
    It gives a tensor."""
    rows, start = call.argument(1, "elems"), call.argument(2, "initializer")
    if rows is None:
        return None
    columns = rows.items if isinstance(rows, Collection) else (rows,)
    row = tuple(element_of(column, call.location) for column in columns)
    of_a_row = row[0] if not isinstance(rows, Collection) else Collection(call.location, "tuple", row)
    _repeated(state, lambda: apply(function, (of_a_row if start is None else start, of_a_row)))
    return call


def _repeated(state: State, make: Callable[[], Value]) -> Value:
    outer = state.context
    state.context = outer.but(loops=outer.loops + 1, comprehensions=outer.comprehensions + 1)
    made = make()
    state.context = outer
    return made


def _elements(value: Value) -> tuple[Value, ...] | None:
    """The elements of a list, tuple or dict that is fully known and not too long; else None."""
    if not isinstance(value, Collection) or value.open or value.kind == "set" or len(value.items) > MOST_ELEMENTS:
        return None
    return value.items


def run_command(state: State, callee: Value) -> None:
    """Follow the function that Hydra or click calls with what the command line says, where the program calls it."""
    command = callee
    while isinstance(command, Call) and len(command.args) == 1 and _makes_command(command.callee):
        command = command.args[0]
    closure = closure_of(state, command) if command is not callee and isinstance(command, Defined) else None
    if closure is not None and id(closure.facts) not in state.walk.executed:
        inline_uncalled(state, closure)


def _makes_command(decorator: Value) -> bool:
    maker = decorator.callee if isinstance(decorator, Call) else decorator
    return is_api(maker, "hydra.main", "click.command", "click.option", "click.argument")
