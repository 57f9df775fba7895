"""Data flow of a saved graph: producers and consumers of a tensor, through function calls, branches and loops.

Only the protocol buffer is read. A place is a node of the outermost graph or of a function, an argument of a function,
or one output of a call; a function that is called twice is looked at once.
"""

from __future__ import annotations

from typing import AbstractSet as Set
from typing import Any, Iterable, Iterator, Sequence, Tuple, Union

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.directories import EXPORT_AGAIN

Place = Tuple[Union[str, int], ...]  # (function, node) or (function, node, output); the outermost graph is ""
OUTERMOST = ""
MOST_CONNECTIONS = 3_000_000  # between places; a thousand layers have some 10,000
LONGEST_NAME = 200  # characters that a message repeats
MOST_DIGITS = 9  # of an output's number


class GraphFlow:
    """Every place of one GraphDef.

    inputs, users
        What a place is computed from, in order, and what is computed from it.
    nodes
        The NodeDef of the places that have one: an argument and the output of a call have none.
    """

    def __init__(self, graph: Any) -> None:
        self.inputs: dict[Place, list[Place]] = {}
        self.users: dict[Place, list[Place]] = {}
        self.nodes: dict[Place, tf.compat.v1.NodeDef] = {}
        self._connections = 0
        self._functions = {function.signature.name: function for function in graph.library.function}
        self._calls = {name: self._calls_in(function.node_def) for name, function in self._functions.items()}
        self._calls[OUTERMOST] = self._calls_in(graph.node)
        self._add(OUTERMOST, graph.node)
        for name, function in self._functions.items():
            self._add(name, function.node_def)

    def results(self, function: str) -> list[Place]:
        """What a function returns, in order."""
        if function not in self._functions:
            raise Unusable(
                f"The graph is damaged: it has no function {function[:LONGEST_NAME]!r}, which it names. {EXPORT_AGAIN}"
            )
        definition = self._functions[function]
        calls = self._calls[function]
        return [_place(function, definition.ret[output.name], calls) for output in definition.signature.output_arg]

    def arguments(self, function: str) -> list[Place]:
        return [(function, argument.name) for argument in self._functions[function].signature.input_arg]

    def tensor(self, name: str) -> Place:
        """The place of a tensor of the outermost graph: "StatefulPartitionedCall:1"."""
        head, _, index = name.partition(":")
        called = (OUTERMOST, head, _output_number(index or "0", name))
        return called if called in self.inputs else (OUTERMOST, head)

    def before(self, places: Iterable[Place]) -> set[Place]:
        """These places and all that they are computed from."""
        return _closure(places, self.inputs)

    def before_through(self, places: Iterable[Place], through: Set[Place]) -> set[Place]:
        """The places that these are computed from directly, or with only places of `through` between."""
        passed: set[Place] = set()
        left = [before for place in places for before in self.inputs.get(place, ())]
        while left:
            place = left.pop()
            if place not in passed:
                passed.add(place)
                left.extend(self.inputs.get(place, ()) if place in through else ())
        return passed

    def after(self, places: Iterable[Place], without: Iterable[str] = ()) -> set[Place]:
        """These places and all that is computed from them, save through operations of the kinds `without`."""
        stopped = frozenset(without)
        kept = {place: users for place, users in self.users.items() if self.op(place) not in stopped}
        return _closure(places, kept)

    def op(self, place: Place) -> str:
        """The operation at this place; "" for a place that is no node."""
        node = self.nodes.get(place)
        return "" if node is None else node.op

    # --- building -----------------------------------------------------------------------------------------------
    def _add(self, function: str, nodes: Sequence[tf.compat.v1.NodeDef]) -> None:
        calls = self._calls[function]
        for node in nodes:
            given = [_place(function, text, calls) for text in node.input if not text.startswith("^")]
            if node.name in calls:
                self._add_call(function, node, given)
            else:
                self.nodes[(function, node.name)] = node
                self._connect(given, (function, node.name))

    def _calls_in(self, nodes: Sequence[tf.compat.v1.NodeDef]) -> set[str]:
        return {node.name for node in nodes if any(True for _ in self._called(node))}

    def _called(self, node: tf.compat.v1.NodeDef) -> Iterator[tuple[str, str]]:
        """(attribute, function) for every function that a node calls."""
        if node.op in self._functions:
            yield "f", node.op
        for name, value in node.attr.items():
            for function in [value.func] if value.HasField("func") else value.list.func:
                if function.name in self._functions:
                    yield name, function.name

    def _add_call(self, function: str, node: tf.compat.v1.NodeDef, given: list[Place]) -> None:
        for attribute, callee in self._called(node):
            branches = attribute in ("then_branch", "else_branch", "branches")
            arguments = self.arguments(callee)
            for place, argument in zip(given[1:] if branches else given, arguments):
                self._connect([place], argument)
            if attribute == "cond":
                continue
            for number, result in enumerate(self.results(callee)):
                self._connect([result], (function, node.name, number))
                if attribute == "body" and number < len(arguments):  # the next round; or none at all
                    self._connect([result], arguments[number])
                    self._connect(given[number : number + 1], (function, node.name, number))

    def _connect(self, given: list[Place], place: Place) -> None:
        self._connections += 1 + len(given)
        if self._connections > MOST_CONNECTIONS:
            raise Unusable(
                f"The graph holds more than {MOST_CONNECTIONS:,} connections, which is as many as mpdoctor follows: no "
                f"model has so many. {EXPORT_AGAIN}"
            )
        self.inputs.setdefault(place, []).extend(given)
        for source in given:
            self.users.setdefault(source, []).append(place)


def _place(function: str, text: str, calls: set[str]) -> Place:
    """The place of an input: "node", "node:1", "node:output:1" or an argument."""
    name, *rest = text.split(":")
    return (function, name, _output_number(rest[-1], text) if rest else 0) if name in calls else (function, name)


def _output_number(text: str, tensor: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        named = f"it names a tensor {tensor[:LONGEST_NAME]!r}, and no output has such a number"
        raise Unusable(f"The graph is damaged: {named}. {EXPORT_AGAIN}")
    return int(text)


def _closure(places: Iterable[Place], neighbours: dict[Place, list[Place]]) -> set[Place]:
    reached, left = set(), list(places)
    while left:
        place = left.pop()
        if place not in reached:
            reached.add(place)
            left.extend(neighbours.get(place, ()))
    return reached


def dtype_of(node: tf.compat.v1.NodeDef, *attributes: str) -> str:
    """The dtype that a node names under the first of these attributes that it has, "" where it has none."""
    for name in attributes:
        if name in node.attr and node.attr[name].type:
            return dtype_name(node.attr[name].type)
    return ""


def dtype_name(number: int) -> str:
    """The name of the dtype with this number in a protocol buffer; reference dtypes have numbers of their own. Raises
    Unusable for an unknown number."""
    if not number or number not in types_pb2.DataType.values():
        raise Unusable(f"The graph is damaged: it names a dtype {number}, which TensorFlow has not. {EXPORT_AGAIN}")
    return str(tf.dtypes.as_dtype(number).name)
