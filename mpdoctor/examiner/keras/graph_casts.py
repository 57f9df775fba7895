"""Casts between 32 and 16 bits in a graph, those in the functions that it calls among them."""

from __future__ import annotations

import tensorflow as tf

WIDE = {tf.float32.as_datatype_enum, tf.float64.as_datatype_enum}
HALF = {tf.float16.as_datatype_enum, tf.bfloat16.as_datatype_enum}


def casts_in_graph(graph: tf.Graph) -> int:
    """A function that is called several times counts once."""
    definition = graph.as_graph_def()
    nodes = list(definition.node)
    for function in definition.library.function:
        nodes += function.node_def
    return sum(_changes_width(node) for node in nodes if node.op == "Cast")


def _changes_width(node: tf.compat.v1.NodeDef) -> bool:
    source, result = node.attr["SrcT"].type, node.attr["DstT"].type
    return (source in WIDE and result in HALF) or (source in HALF and result in WIDE)
