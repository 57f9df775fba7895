"""The copy of a SavedModel that was judged: a directory with only the one graph that was checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mpdoctor.examiner.saved.directories import GRAPH, METADATA, SavedDirectory
from mpdoctor.examiner.saved.refused_operations import functions_apart

if TYPE_CHECKING:
    import tensorflow as tf


LOADED_BY_PLACE = ("variables", "assets")


def judged_copy(directory: SavedDirectory, folder: str) -> str:
    """Written below `folder` under the directory's own name; gives its path.

    Of the outermost graph it keeps the constants, which are all that is loaded from there, and of the functions all but
    those that only that graph calls. Variables and assets stay where they are: they are linked."""
    copy = os.path.join(folder, directory.name)
    os.makedirs(copy)
    with open(os.path.join(copy, GRAPH), "wb") as file:
        file.write(_judged(directory.meta_graph))
    if directory.metadata is not None:
        with open(os.path.join(copy, METADATA), "wb") as file:
            file.write(directory.metadata)
    for name in LOADED_BY_PLACE:
        place = os.path.join(directory.path, name)
        if os.path.isdir(place):
            os.symlink(os.path.abspath(place), os.path.join(copy, name))
    return copy


def _judged(meta_graph: tf.compat.v1.MetaGraphDef) -> bytes:
    """A SavedModel with what Keras loads of one graph."""
    from tensorflow.core.protobuf import saved_model_pb2

    saved_model = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    kept = saved_model.meta_graphs.add()
    kept.meta_info_def.CopyFrom(meta_graph.meta_info_def)
    kept.object_graph_def.CopyFrom(meta_graph.object_graph_def)
    kept.asset_file_def.extend(meta_graph.asset_file_def)
    graph, original = kept.graph_def, meta_graph.graph_def
    graph.versions.CopyFrom(original.versions)
    graph.node.extend(node for node in original.node if node.op == "Const")
    apart = functions_apart(meta_graph)
    graph.library.function.extend(
        function for function in original.library.function if function.signature.name not in apart
    )
    graph.library.gradient.extend(original.library.gradient)
    if hasattr(original.library, "registered_gradients"):  # since TensorFlow 2.5
        graph.library.registered_gradients.extend(original.library.registered_gradients)
    return bytes(saved_model.SerializeToString())
