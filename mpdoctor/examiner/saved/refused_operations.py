"""What the graph of a SavedModel would do if it was loaded and trained, told before that: compute, or more.

Keras 2 runs a SavedModel's own functions: initialisers while it is loaded, those of layers whose class it does not know
in training. Each operation of every graph in the file is looked up in a list of those that compute and nothing else.

A gradient that a node names (`_gradient_op_type`) needs no look: TensorFlow finds it among the gradients that it
registered itself, or in a function of the same library, which is one of those looked at here.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.directories import SavedDirectory
from mpdoctor.examiner.saved.own_files import is_within, leads_out
from mpdoctor.knowledge.allow_lists.computing_ops import (
    COMPUTING,
    PRINTS,
    READS_VOCABULARY,
    SAVING,
    STREAMS,
    effect_of_operation,
)

if TYPE_CHECKING:
    import tensorflow as tf
    from tensorflow.core.framework.function_pb2 import FunctionDef


CALLS = ("PartitionedCall", "StatefulPartitionedCall")  # their inputs are the arguments of the function
NOT_LOADED = SAVING | {READS_VOCABULARY}
SAME = ("Identity", "StopGradient")
IF_TRUSTED = "If you trust the file, add --allow-code-in-file."


def refuse_operations(directory: SavedDirectory) -> None:
    """Refuse a graph that does more than compute. Raises Unusable, which names the first such operation, or the first
    file of the model that lies elsewhere."""
    for meta_graph in directory.meta_graphs:
        for node, function in _forbidden(meta_graph):
            _refuse(directory.name, node, function)
    _refuse_foreign_files(directory)


def _refuse(name: str, node: tf.compat.v1.NodeDef, function: str) -> None:
    effect = effect_of_operation(node.op)
    does = f": {effect}" if effect else ", which is none of those that only compute"
    where = f"in its function `{function}`" if function else "in its graph"
    raise Unusable(f"{name} holds the operation {node.op} (`{node.name}`, {where}){does}. {IF_TRUSTED}")


# --- operations -----------------------------------------------------------------------------------------------------
def _forbidden(meta_graph: tf.compat.v1.MetaGraphDef) -> Iterator[tuple[tf.compat.v1.NodeDef, str]]:
    """Nodes, with the function in which each stands, "" for the outermost graph. What saves, restores and initialises
    stands in that graph and in functions that nobody else calls, and neither is loaded."""
    apart = functions_apart(meta_graph)
    files = _VocabularyFiles(meta_graph, apart)
    for node in meta_graph.graph_def.node:
        if not (_computes(node) or node.op in NOT_LOADED):
            yield node, ""
    for function in meta_graph.graph_def.library.function:
        name = function.signature.name
        for node in function.node_def:
            if name in apart and node.op in NOT_LOADED:
                continue
            if not (_computes(node) or files.are_read_by(node, function)):
                yield node, name


def _computes(node: tf.compat.v1.NodeDef) -> bool:
    if node.op == PRINTS:  # what is not named is the default: stderr
        return "output_stream" not in node.attr or node.attr["output_stream"].s.decode("utf-8", "replace") in STREAMS
    return node.op in COMPUTING


def functions_apart(meta_graph: tf.compat.v1.MetaGraphDef) -> frozenset[str]:
    """Names of the functions that only the outermost graph calls: those of the saver, and of its initialisation. Keras
    loads objects and the functions that belong to them, and nothing of that graph but its constants."""
    graph = meta_graph.graph_def
    calls = {
        function.signature.name: {name for node in function.node_def for name in called_by(node)}
        for function in graph.library.function
    }
    called = _reached(calls, {name for node in graph.node for name in called_by(node)})
    kept = set(meta_graph.object_graph_def.concrete_functions) | (set(calls) - called)
    kept |= {gradient.gradient_func for gradient in graph.library.gradient}
    kept |= {gradient.gradient_func for gradient in getattr(graph.library, "registered_gradients", ())}
    return frozenset(called - _reached(calls, kept))


def _reached(calls: dict[str, set[str]], names: set[str]) -> set[str]:
    """The functions among these names, and all functions that they call, directly or through others."""
    reached: set[str] = set()
    left = [name for name in names if name in calls]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left.extend(called for called in calls[name] if called in calls)
    return reached


def called_by(node: tf.compat.v1.NodeDef) -> Iterator[str]:
    """Names of functions: of the operation itself, and of every attribute, whatever it is called."""
    yield node.op
    yield from _named_in(node.attr)


def _named_in(attributes: Any) -> Iterator[str]:
    """A function may be handed others, as attributes of its own."""
    for value in attributes.values():
        kind = value.WhichOneof("value")
        for called in [value.func] if kind == "func" else value.list.func if kind == "list" else ():
            yield called.name
            yield from _named_in(called.attr)


class _Places(NamedTuple):
    """The arguments of a function, with their numbers, and its nodes by their names."""

    arguments: dict[str, int]
    nodes: dict[str, list[tf.compat.v1.NodeDef]]

    @classmethod
    def of(cls, function: FunctionDef) -> _Places:
        places = cls({argument.name: number for number, argument in enumerate(function.signature.input_arg)}, {})
        for node in function.node_def:
            places.nodes.setdefault(node.name, []).append(node)
        return places


# --- vocabularies ---------------------------------------------------------------------------------------------------
class _VocabularyFiles:
    """Where the names of the files come from that initialisers read: from an asset of the model, or from elsewhere."""

    def __init__(self, meta_graph: tf.compat.v1.MetaGraphDef, apart: frozenset[str]) -> None:
        self._objects = meta_graph.object_graph_def.nodes
        self._bound = {
            name: list(function.bound_inputs)
            for name, function in meta_graph.object_graph_def.concrete_functions.items()
        }
        self._library = [
            function for function in meta_graph.graph_def.library.function if function.signature.name not in apart
        ]
        self._of_assets: set[tuple[str, str]] = set()  # tensors that were followed to assets, with the function of each
        self._places: dict[str, _Places] = {}

    @cached_property
    def _callers(self) -> dict[str, list[tuple[tf.compat.v1.NodeDef, FunctionDef]]]:
        """For each function the nodes that call it, with the function of each."""
        callers: dict[str, list[tuple[tf.compat.v1.NodeDef, FunctionDef]]] = {}
        for function in self._library:
            for node in function.node_def:
                for name in called_by(node):
                    callers.setdefault(name, []).append((node, function))
        return callers

    def are_read_by(self, node: tf.compat.v1.NodeDef, function: FunctionDef) -> bool:
        """Whether this node of a function reads a table, and from an asset of the model, whoever calls it."""
        if node.op != READS_VOCABULARY or len(node.input) < 2:
            return False
        seen = set(self._of_assets)
        left = [(node.input[1], function)]
        while left:
            tensor, place = left.pop()
            if (place.signature.name, tensor) not in seen:
                seen.add((place.signature.name, tensor))
                before = self._before(tensor, place)
                if before is None:
                    return False
                left += before
        self._of_assets = seen
        return True

    def _before(self, tensor: str, function: FunctionDef) -> list[tuple[str, FunctionDef]] | None:
        """The tensors, with the function of each, that this one is handed on from; [] for that of an asset, None for
        what may be anything."""
        name = function.signature.name
        if name not in self._places:
            self._places[name] = _Places.of(function)
        arguments, nodes = self._places[name]
        if tensor in arguments:
            return self._given(name, arguments[tensor], len(arguments))
        made_by = nodes.get(tensor.partition(":")[0], [])
        if len(made_by) != 1 or made_by[0].op not in SAME or not made_by[0].input:
            return None
        return [(made_by[0].input[0], function)]

    def _given(self, name: str, number: int, count: int) -> list[tuple[str, FunctionDef]] | None:
        """(input, function that gives it) for one argument of a function: by the object that it belongs to, and by its
        callers; None where it is not certain that these are all."""
        if name not in self._bound and name not in self._callers:
            return None
        if name in self._bound:  # the last arguments are those that a model keeps for the function
            place = number - (count - len(self._bound[name]))
            if place < 0 or not self._is_asset_object(self._bound[name][place]):
                return None
        calls = self._callers.get(name, [])
        if any(not _calls_plainly(node, name) or number >= len(node.input) for node, _ in calls):
            return None
        return [(node.input[number], caller) for node, caller in calls]

    def _is_asset_object(self, number: int) -> bool:
        """Whether it is an asset: a registered name would have another class take its place."""
        if not 0 <= number < len(self._objects):
            return False
        saved = self._objects[number]
        return saved.WhichOneof("kind") == "asset" and not getattr(saved, "registered_name", "")


def _calls_plainly(node: tf.compat.v1.NodeDef, name: str) -> bool:
    """Whether the node's inputs are the function's arguments, one by one."""
    return node.op in CALLS and "f" in node.attr and bool(node.attr["f"].func.name == name)


# --- files ----------------------------------------------------------------------------------------------------------
def _refuse_foreign_files(directory: SavedDirectory) -> None:
    for meta_graph in directory.meta_graphs:
        for asset in meta_graph.asset_file_def:
            plain = os.path.basename(asset.filename)
            if plain != asset.filename or "\0" in plain or plain in ("", ".", ".."):
                raise Unusable(
                    f"{directory.name} names the asset {asset.filename!r}, which is none of its own. {IF_TRUSTED}"
                )
    for folder in ("assets", "variables"):
        for path in _files_below(os.path.join(directory.path, folder)):
            shown_as = f"{directory.name}/{os.path.relpath(path, directory.path)}"
            if not is_within(path, directory.path):
                raise Unusable(leads_out(shown_as, directory.name))
            if not os.path.isdir(path) and not _is_regular(path):
                raise Unusable(f"{shown_as} is no regular file. Save the model again.")


def _files_below(folder: str) -> Iterator[str]:
    """The folder itself, which may be a link, too, and whatever is below."""
    if os.path.lexists(folder):
        yield folder
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.join(place, name)


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
