"""The copy of a SavedModel that was judged: a directory with only the one graph that was checked, and the variables and
assets that were the model's own when they were opened."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, BinaryIO, Iterator

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import LARGEST_COPY
from mpdoctor.examiner.saved.directories import GRAPH, METADATA, SavedDirectory
from mpdoctor.examiner.saved.own_files import opened_own_file
from mpdoctor.examiner.saved.refused_operations import functions_apart

if TYPE_CHECKING:
    import tensorflow as tf


VARIABLES, ASSETS = "variables", "assets"


def judged_copy(directory: SavedDirectory, folder: str) -> str:
    """Written below `folder` under the directory's own name; gives its path.

    Of the outermost graph it keeps the constants, which are all that is loaded from there, and of the functions all but
    those that only that graph calls; of the files the variables and the assets that the graph names. Raises Unusable
    for one that lies elsewhere."""
    copy = os.path.join(folder, directory.name)
    os.makedirs(copy)
    with open(os.path.join(copy, GRAPH), "wb") as file:
        file.write(_judged(directory.meta_graph))
    if directory.metadata is not None:
        with open(os.path.join(copy, METADATA), "wb") as file:
            file.write(directory.metadata)
    for part, name in _files_loaded_by_place(directory):
        os.makedirs(os.path.join(copy, part), exist_ok=True)
        try:
            with opened_own_file(os.path.join(directory.path, part, name), directory.path, "Save it again.") as opened:
                _hand_on(opened, os.path.join(copy, part, name))
        except OSError as error:
            raise Unusable(f"{directory.name}/{part}/{name} can't be read: {error.strerror}.") from None
    return copy


def _files_loaded_by_place(directory: SavedDirectory) -> Iterator[tuple[str, str]]:
    """(folder, file) of each that is there."""
    folder = os.path.join(directory.path, VARIABLES)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if name.startswith(f"{VARIABLES}."):
            yield VARIABLES, name
    for name in sorted({asset.filename for asset in directory.meta_graph.asset_file_def}):
        path = os.path.join(directory.path, ASSETS, name)
        if name == os.path.basename(name) and "\0" not in name and os.path.isfile(path):
            yield ASSETS, name


def _hand_on(file: BinaryIO, place: str) -> None:
    """A copy of an open file, or where it is large a link to it: it then stays open as long as this process."""
    opened = f"/proc/self/fd/{file.fileno()}"
    if os.fstat(file.fileno()).st_size > LARGEST_COPY and os.path.exists(opened):
        os.symlink(f"/proc/self/fd/{os.dup(file.fileno())}", place)
        return
    with open(place, "wb") as copy:
        shutil.copyfileobj(file, copy, 2**20)


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
