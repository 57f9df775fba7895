"""A SavedModel directory: what wrote it, its graph, and the Keras model in it where Keras 2's `save` left one.

Only protocol buffers are read; no function of the graph and no code in a configuration is run."""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import SavedFile, refuse_many_parts
from mpdoctor.examiner.saved.counted_messages import parsed
from mpdoctor.examiner.saved.own_files import opened_own_file
from mpdoctor.facts.saved.file import SavedFileFacts

if TYPE_CHECKING:
    import tensorflow as tf


GRAPH = "saved_model.pb"
METADATA = "keras_metadata.pb"
MOST_NODES = 2_000_000  # of all graphs and functions; the largest models have some 100,000
LARGEST_GRAPH, LARGEST_METADATA = 2**29, 2**28  # bytes: weights lie in variables/
EXPORT_AGAIN = "Write it again with model.export() or tf.saved_model.save()."


@dataclass(frozen=True)
class SavedDirectory:
    """`meta_graph` is the graph to look at: the one that serves, of all `meta_graphs` in the file. `metadata` is what
    stands in Keras' own file beside it, None where there is none."""

    path: str
    meta_graph: tf.compat.v1.MetaGraphDef
    meta_graphs: tuple[Any, ...]
    metadata: bytes | None = None

    @property
    def name(self) -> str:
        return os.path.basename(os.path.normpath(self.path))

    @property
    def has_keras_model(self) -> bool:
        """Whether Keras 2's `save` wrote it: TensorFlow before 2.5 kept Keras' metadata inside of the graph."""
        return self.metadata is not None or any(self._embedded_metadata())

    def facts(self) -> SavedFileFacts:
        """Keras 2 has the version of its TensorFlow, or one like it."""
        return SavedFileFacts(self.name, "saved-model", self.meta_graph.meta_info_def.tensorflow_version)

    def keras_file(self, package: str) -> SavedFile:
        """The Keras model in it, as `package` (the Keras 2 at hand) writes its metadata. Where both are there, Keras
        reads the file, and that of TensorFlow 2.4 what lies in the graph: both are judged."""
        texts = [*self._metadata_beside(package), *self._embedded_metadata()]
        version = self.facts().keras_version
        return SavedFile(self.path, "saved-model", _configuration(texts, self.name), keras_version=version)

    def _metadata_beside(self, package: str) -> list[str]:
        from google.protobuf.message import DecodeError

        shown_as = f"{self.name}/{METADATA}"
        try:
            metadata = parsed(self.metadata or b"", _metadata_class(package), shown_as, "Save the model again.")
        except DecodeError:
            raise Unusable(f"{shown_as} is damaged. Save the model again.") from None
        return [node.metadata for node in metadata.nodes]

    def _embedded_metadata(self) -> Iterator[str]:
        for node in self.meta_graph.object_graph_def.nodes:
            is_keras = node.WhichOneof("kind") == "user_object" and node.user_object.identifier.startswith("_tf_keras")
            if is_keras and node.user_object.metadata:
                yield node.user_object.metadata


def saved_directory_from_path(path: str) -> SavedDirectory:
    """The SavedModel in a directory. Raises Unusable where there is none."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    name = os.path.basename(os.path.normpath(path))
    content, shown_as = _content(os.path.join(path, GRAPH), name, LARGEST_GRAPH), f"{name}/{GRAPH}"
    try:
        saved_model = parsed(content, saved_model_pb2.SavedModel, shown_as, EXPORT_AGAIN)
    except DecodeError:
        raise Unusable(f"{shown_as} {_other_kind(content, shown_as)}. {EXPORT_AGAIN}") from None
    _refuse_many_nodes(saved_model, name)
    graphs = [
        meta_graph
        for meta_graph in saved_model.meta_graphs
        if meta_graph.graph_def.node or meta_graph.graph_def.library.function
    ]
    serving = [graph for graph in graphs if "serve" in graph.meta_info_def.tags]
    if not graphs:
        raise Unusable(f"{shown_as} {_other_kind(content, shown_as)}. {EXPORT_AGAIN}")
    beside = os.path.join(path, METADATA)
    metadata = _content(beside, name, LARGEST_METADATA) if os.path.lexists(beside) else None
    return SavedDirectory(path, (serving or graphs)[0], tuple(saved_model.meta_graphs), metadata)


def _refuse_many_nodes(saved_model: Any, name: str) -> None:
    """Refuse a graph of too many nodes: two bytes make an empty node, and each look at it costs as much as at a true
    one."""
    count = len(saved_model.meta_graphs)
    if count <= MOST_NODES:
        count += sum(
            len(meta_graph.graph_def.node)
            + len(meta_graph.object_graph_def.nodes)
            + sum(1 + len(function.node_def) for function in meta_graph.graph_def.library.function)
            for meta_graph in saved_model.meta_graphs
        )
    if count > MOST_NODES:
        raise Unusable(
            f"{name}/{GRAPH} holds {count:,} nodes, and mpdoctor reads at most {MOST_NODES:,}: no model has so many. "
            f"{EXPORT_AGAIN}"
        )


def _content(path: str, name: str, most: int) -> bytes:
    shown_as = f"{name}/{os.path.basename(path)}"
    try:
        with opened_own_file(path, os.path.dirname(path), EXPORT_AGAIN) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise Unusable(f"{shown_as} has {size:,} bytes: that of no model does, so it was not opened.")
            return file.read(most)
    except OSError as error:
        raise Unusable(f"{shown_as} can't be read: {error.strerror}.") from None


def _other_kind(content: bytes, shown_as: str) -> str:
    from google.protobuf.message import DecodeError
    from tensorflow.core.framework import graph_pb2

    if not content:
        return "is empty"
    if content.startswith(b"version https://git-lfs"):
        return "is a pointer of Git LFS and not the file itself (git lfs pull fetches it)"
    try:
        graph = parsed(content, graph_pb2.GraphDef, shown_as, EXPORT_AGAIN)
    except DecodeError:
        return "is damaged, or no SavedModel"
    if any(node.op for node in graph.node):
        return "is a frozen graph of TensorFlow 1 and no SavedModel"
    return "holds no graph: it is damaged, or no SavedModel"


def _metadata_class(package: str) -> Any:
    return importlib.import_module(f"{package}.protobuf.saved_metadata_pb2").SavedMetadata


def _configuration(texts: list[str], name: str) -> Any:
    """The root's configuration, with those of its parts beside it."""
    refuse_many_parts(texts, f"{name}/{METADATA}")
    try:
        parts = [json.loads(text) for text in texts if text]
    except (ValueError, RecursionError):
        raise Unusable(f"{name}/{METADATA} holds metadata that is no JSON. Save the model again.") from None
    root = parts[0] if parts and isinstance(parts[0], dict) else {}
    return {**root, "parts": parts[1:]}
