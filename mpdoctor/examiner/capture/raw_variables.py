"""The tf.Variables that a live layer keeps as attributes, beside its weights, and whether the loss depends on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Collection, Iterator

import tensorflow as tf

from mpdoctor.facts.layer import RawVariableFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer


def raw_variables_from_layer(
    layer: KerasLayer, loss: tf.Tensor | None, sources: Collection[int]
) -> tuple[RawVariableFacts, ...]:
    """The tf.Variables among a layer's attributes, but for those that the program trains itself. `loss`: what was
    differentiated last, None where nothing was. `sources`: the identities of the variables that it was differentiated
    by."""
    return tuple(
        RawVariableFacts(name, value.dtype.name, bool(value.trainable), _reaches(value, loss))
        for name, value in vars(layer).items()
        if isinstance(value, tf.Variable) and id(value) not in sources
    )


def _reaches(variable: tf.Variable, loss: tf.Tensor | None) -> bool | None:
    if loss is None or hasattr(loss, "numpy"):
        return None
    graph = getattr(loss, "graph", None)
    if graph is None:
        return None
    handle = _handle_in(graph, variable.handle)
    return handle is not None and any(
        op.type in ("ReadVariableOp", "ResourceGather") and op.inputs[0] is handle for op in _operations_behind(loss.op)
    )


def _handle_in(graph: tf.Graph, handle: tf.Tensor) -> tf.Tensor | None:
    """What stands for a variable inside of a graph, or a graph inside of that; None where it has no part in it."""
    outer = getattr(graph, "outer_graph", None)
    outside = handle if getattr(outer, "captures", None) is None else _handle_in(outer, handle)
    return next((inside for captured, inside in graph.captures if captured is outside or captured is handle), None)


def _operations_behind(operation: tf.Operation) -> Iterator[tf.Operation]:
    seen, waiting = {operation}, [operation]
    while waiting:
        reached = waiting.pop()
        yield reached
        for tensor in reached.inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                waiting.append(tensor.op)
