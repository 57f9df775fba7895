"""What is read from the graphs of functions that TensorFlow itself traced: dtypes, where results go, and how large they
can be; through calls, branches and loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checking import needs_keras, needs_tensorflow

from mpdoctor.facts.saved.graph import OpFacts, SavedGraphFacts

pytestmark = needs_tensorflow


def facts_of(function: Callable[..., Any], dtype: str = "float16", **kept: Any) -> SavedGraphFacts:
    """Of a function of one tensor (batch, 8), as a SavedModel would hold it. `kept` are variables that it uses."""
    import tensorflow as tf
    from tensorflow.core.protobuf import meta_graph_pb2

    from mpdoctor.examiner.saved.graphs import graph_facts_from_proto

    signature = [tf.TensorSpec((None, 8), tf.as_dtype(dtype), name="x")]
    traced = tf.function(function, input_signature=signature).get_concrete_function()
    graph = meta_graph_pb2.MetaGraphDef(graph_def=traced.graph.as_graph_def())
    graph.meta_info_def.tags.append("serve")
    signature_def = graph.signature_def["serving_default"]
    for name, tensor, specs in [("x", traced.inputs[0], signature_def.inputs)] + [
        (f"output_{number}", tensor, signature_def.outputs) for number, tensor in enumerate(traced.outputs)
    ]:
        specs[name].name, specs[name].dtype = tensor.name, tensor.dtype.as_datatype_enum
        specs[name].tensor_shape.CopyFrom(tensor.shape.as_proto())
    return graph_facts_from_proto(graph, "exported", "it was exported")


def operation(facts: SavedGraphFacts, op: str, dtype: str = "float16") -> OpFacts:
    (found,) = facts.ops_in(dtype, frozenset({op}))
    return found


def test_signature_casts_and_tags() -> None:
    import tensorflow as tf

    facts = facts_of(lambda x: (tf.cast(tf.cast(x, "float32") * 2.0, "float16"), tf.cast(x, "int32")))
    (signature,) = facts.signatures
    given = signature.inputs[0]
    assert (given.name, given.dtype, given.shape) == ("x", "float16", (None, 8))
    assert [tensor.dtype for tensor in signature.outputs] == ["float16", "int32"]
    assert [(c.source, c.target, c.count) for c in facts.casts] == [
        ("float16", "float32", 1),
        ("float32", "float16", 1),
    ]
    assert facts.tags == ("serve",)


def exp(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(x)


def widened_exp(x: Any) -> Any:
    import tensorflow as tf

    return tf.cast(tf.reshape(tf.exp(x), (-1,)), "float32") + 1.0


def exp_used_twice(x: Any) -> Any:
    import tensorflow as tf

    made = tf.exp(x)
    return tf.cast(made, "float32"), made * made


def softmax_by_hand(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))


def log_sum_exp(x: Any) -> Any:
    import tensorflow as tf

    return tf.reduce_logsumexp(x, axis=-1)


def softmax_by_log_sum_exp(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(x - tf.reduce_logsumexp(x, axis=-1, keepdims=True))


def clipped_exp(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(tf.clip_by_value(x, -8.0, 8.0))


def badly_clipped_exp(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(tf.clip_by_value(x, -100.0, 100.0))


def gaussian(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(-tf.square(x))


def exp_of_another_maximum(x: Any) -> Any:
    import tensorflow as tf

    return tf.exp(x * 2 - tf.reduce_max(x))


def exp_in_a_loop(x: Any) -> Any:
    import tensorflow as tf

    return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, tf.exp(s)), (0, x))[1]


def exp_in_a_branch(x: Any) -> Any:
    import tensorflow as tf

    return tf.cond(tf.shape(x)[0] > 3, lambda: tf.exp(x), lambda: x)


def exp_in_a_function(x: Any) -> Any:
    import tensorflow as tf

    inner = tf.function(lambda y: tf.exp(y))
    return inner(x) + inner(x + 1)


def exp_widened_by_the_caller(x: Any) -> Any:
    import tensorflow as tf

    return tf.cast(tf.function(lambda y: tf.exp(y))(x), "float32")


def exp_of_constants(x: Any) -> Any:
    import tensorflow as tf

    return x * tf.exp(tf.cast(tf.range(8), "float16"))


EXPONENTIALS = [
    (exp, 1, 0, 0),
    (widened_exp, 1, 1, 0),
    (exp_used_twice, 1, 0, 0),
    (softmax_by_hand, 1, 0, 1),
    (log_sum_exp, 1, 0, 1),
    (softmax_by_log_sum_exp, 2, 0, 2),
    (clipped_exp, 1, 0, 1),
    (badly_clipped_exp, 1, 0, 0),
    (gaussian, 1, 0, 1),
    (exp_of_another_maximum, 1, 0, 0),
    (exp_in_a_loop, 1, 0, 0),
    (exp_in_a_branch, 1, 0, 0),
    (exp_in_a_function, 1, 0, 0),
    (exp_widened_by_the_caller, 1, 1, 0),
    (exp_of_constants, 1, 0, 1),
]


@pytest.mark.parametrize(
    ("function", "count", "widened", "limited"), [pytest.param(*row, id=row[0].__name__) for row in EXPONENTIALS]
)
def test_exponentials(function: Callable[[Any], Any], count: int, widened: int, limited: int) -> None:
    found = operation(facts_of(function), "Exp")
    assert (found.count, found.widened, found.limited) == (count, widened, limited)


def test_sums_and_powers() -> None:
    import tensorflow as tf

    def sums(x: Any) -> Any:
        weights = tf.nn.softmax(x)
        mask = tf.cast(x > 0, "float16")
        return tf.reduce_sum(x), tf.reduce_sum(weights), tf.reduce_sum(mask), tf.reduce_sum(weights + x)

    assert (operation(facts_of(sums), "Sum").count, operation(facts_of(sums), "Sum").limited) == (4, 2)
    powers = operation(facts_of(lambda x: (tf.pow(x, 3.0), tf.pow(tf.sigmoid(x), 2.0))), "Pow")
    assert (powers.count, powers.limited) == (2, 1)


def test_weighted_sums() -> None:
    import tensorflow as tf

    scale = tf.Variable(tf.ones(8, "float16"))

    def sums(x: Any) -> Any:
        mask = tf.cast(x > 0, "float16")
        attended = tf.reduce_sum(tf.nn.softmax(x) * x, axis=-1)
        scored = tf.reduce_sum(tf.tanh(x) * scale, axis=-1)
        return attended, scored, tf.reduce_sum(x * mask, axis=-1), tf.reduce_sum(x * scale, axis=-1)

    found = operation(facts_of(sums, kept=scale), "Sum")
    assert (found.count, found.limited) == (4, 2)


def test_matrix_products_in_the_midst_and_at_the_end() -> None:
    import tensorflow as tf

    first, second, head = (tf.Variable(tf.ones((8, 8))) for _ in range(3))
    shift = tf.constant([[1.0]] * 8)

    def network(x: Any) -> Any:
        x = tf.matmul(x, first)
        x = tf.cast(tf.matmul(tf.cast(x, "float16"), tf.cast(second, "float16")), "float32")
        positions = tf.matmul(tf.ones((tf.shape(x)[0], 8)), shift)  # of constants
        return tf.nn.softmax(tf.matmul(x, head)) + positions

    facts = facts_of(network, "float32", kept=(first, second, head))
    wide, half = operation(facts, "MatMul", "float32"), operation(facts, "MatMul")
    assert (wide.count, wide.inner) == (3, 1)
    assert (half.count, half.inner) == (1, 1)


def test_a_float32_branch_beside_a_16_bit_one() -> None:
    import tensorflow as tf

    weights = tf.Variable(tf.ones((8, 8)))

    def branches(x: Any) -> Any:
        return tf.matmul(x, weights), tf.matmul(tf.cast(x, "float16"), tf.cast(weights, "float16"))

    assert operation(facts_of(branches, "float32", kept=weights), "MatMul", "float32").inner == 1


def test_what_does_not_reach_an_output_is_passed_over() -> None:
    import tensorflow as tf

    def asserting(x: Any) -> Any:
        tf.debugging.assert_all_finite(tf.exp(x), "no")
        return x * 2

    assert not facts_of(asserting).ops_in("float16", frozenset({"Exp"}))


@pytest.mark.parametrize("name", ["x:zzz", ":::", "a:b:c", "x:-1"])
def test_a_tensor_without_a_number_is_told_as_damage(name: str) -> None:
    from tensorflow.core.framework import graph_pb2

    from mpdoctor.examiner.exceptions import Unusable
    from mpdoctor.examiner.saved.graph_flow import GraphFlow

    with pytest.raises(Unusable, match="is damaged: it names a tensor"):
        GraphFlow(graph_pb2.GraphDef()).tensor(name)


# --- graphs that nobody traced ----------------------------------------------------------------------------------------
HALF = 19


def put(graph: Any, name: str, op: str, *inputs: str, dtype: int = HALF) -> Any:
    """A node of a float16 operation."""
    node = graph.graph_def.node.add(name=name, op=op, input=inputs)
    node.attr["T"].type = dtype
    return node


def constant(graph: Any, size: int, **values: Any) -> None:
    node = put(graph, "c", "Const")
    node.attr["value"].tensor.dtype = HALF
    node.attr["value"].tensor.tensor_shape.dim.add(size=size)
    for key, value in values.items():
        setattr(node.attr["value"].tensor, key, value)
    put(graph, "least", "Minimum", "c", "x")
    put(graph, "y", "Exp", "least")


def ten_billion_elements(graph: Any) -> None:
    constant(graph, 10**10, tensor_content=b"")


def maximum_of_many(graph: Any) -> None:
    """Each sum names the next one twice."""
    put(graph, "log", "Log", "x")
    put(graph, "sum30", "Log", "x")
    for number in range(30):
        put(graph, f"sum{number}", "Add", "log", f"sum{number + 1}", f"sum{number + 1}")
    put(graph, "less", "Sub", "x", "sum0")
    put(graph, "y", "Exp", "less")


def long_way_to_a_cast(graph: Any, length: int = 10_000) -> None:
    products = [put(graph, f"product{number}", "MatMul", "x").name for number in range(length)]
    put(graph, "same0", "Identity", *products)
    for number in range(1, length):
        put(graph, f"same{number}", "Identity", f"same{number - 1}")
    cast = put(graph, "y", "Cast", f"same{length - 1}")
    cast.attr["DstT"].type = 1


@pytest.mark.parametrize("build", [ten_billion_elements, maximum_of_many, long_way_to_a_cast])
def test_a_graph_of_a_few_nodes_is_looked_at_in_seconds(build: Callable[[Any], None]) -> None:
    started = time.monotonic()
    assert facts_of_graph(build).nodes
    assert time.monotonic() - started < 10


def no_such_dtype(graph: Any) -> None:
    put(graph, "y", "Exp", "x", dtype=7777)


def content_of_another_size(graph: Any) -> None:
    constant(graph, 5, tensor_content=b"abc")


def number_of_5000_digits(graph: Any) -> None:
    graph.graph_def.library.function.add().signature.name = "f"
    put(graph, "call", "f")
    put(graph, "y", "Exp", "call:" + "9" * 5000)


def no_such_function(graph: Any) -> None:
    graph.object_graph_def.concrete_functions["nobody"].bound_inputs.append(1)
    graph.ClearField("signature_def")


def too_many_dimensions(graph: Any) -> None:
    from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=2**62)] * 200_000)
    put(graph, "y", "VarHandleOp").attr["shape"].shape.CopyFrom(shape)


def calls_with_many_results(graph: Any) -> None:
    function = graph.graph_def.library.function.add()
    function.signature.name = "f"
    for number in range(200):
        function.signature.output_arg.add(name=f"o{number}")
        function.ret[f"o{number}"] = "x:0"
        put(graph, f"call{number}", "f")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (no_such_dtype, "dtype 7777"),
        (content_of_another_size, "of the constant 'c' TensorFlow says"),
        (number_of_5000_digits, "it names a tensor 'call:999"),
        (no_such_function, "no function 'nobody'"),
        (too_many_dimensions, "a shape of 200,000 dimensions"),
        (calls_with_many_results, "more than 10,000 connections"),
    ],
)
def test_a_graph_that_nobody_can_have_made_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, build: Callable[[Any], None], words: str
) -> None:
    from mpdoctor.examiner.exceptions import Unusable
    from mpdoctor.examiner.saved import graph_flow

    monkeypatch.setattr(graph_flow, "MOST_CONNECTIONS", 10_000)

    with pytest.raises(Unusable) as told:
        facts_of_graph(build)
    assert words in str(told.value) and len(str(told.value)) < 500


def facts_of_graph(build: Callable[[Any], None]) -> SavedGraphFacts:
    """From an input `x` to an output `y`."""
    from tensorflow.core.protobuf import meta_graph_pb2

    from mpdoctor.examiner.saved.graphs import graph_facts_from_proto

    graph = meta_graph_pb2.MetaGraphDef()
    put(graph, "x", "Placeholder")
    graph.signature_def["serve"].inputs["x"].name = "x:0"
    graph.signature_def["serve"].outputs["y"].name = "y:0"
    build(graph)
    return graph_facts_from_proto(graph, "exported", "it was exported")


@pytest.mark.parametrize("readers", [1, 1000])
def test_a_long_way_to_a_vocabulary_is_followed_once(readers: int) -> None:
    from tensorflow.core.protobuf import meta_graph_pb2

    from mpdoctor.examiner.saved.directories import SavedDirectory
    from mpdoctor.examiner.saved.refused_operations import READS_VOCABULARY, refuse_operations

    graph = meta_graph_pb2.MetaGraphDef()
    function = graph.graph_def.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="same-1:output:0")
    length = 10_000
    for number in range(length):
        function.node_def.add(name=f"same{number}", op="Identity", input=[f"same{number - 1}:output:0"])
    for number in range(readers):
        function.node_def.add(name=f"r{number}", op=READS_VOCABULARY, input=["t", f"same{length - 1}:output:0"])
    graph.object_graph_def.nodes.add().asset.asset_file_def_index = 0
    graph.object_graph_def.concrete_functions["f"].bound_inputs.append(0)
    started = time.monotonic()
    refuse_operations(SavedDirectory("none", graph, (graph,)))
    assert time.monotonic() - started < 5


@needs_keras("tf_keras")
def test_metadata_and_graphs_of_more_parts_than_any_model(tmp_path: Path) -> None:
    from tensorflow.core.protobuf import saved_model_pb2

    from mpdoctor.examiner.exceptions import Unusable
    from mpdoctor.examiner.saved.directories import saved_directory_from_path

    saved = saved_model_pb2.SavedModel()
    graph = saved.meta_graphs.add()
    graph.graph_def.node.add(name="x", op="Placeholder")
    for _ in range(2):
        held = graph.object_graph_def.nodes.add().user_object
        held.identifier, held.metadata = "_tf_keras_model", '{"a": [' + "[]," * 300_000 + "1]}"
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())
    directory = saved_directory_from_path(str(tmp_path))
    with pytest.raises(Unusable, match="600,004 parts, and mpdoctor reads at most 500,000"):
        directory.keras_file("tf_keras")
    (tmp_path / "saved_model.pb").write_bytes(b"\x12\x00" * 2_100_000)
    with pytest.raises(Unusable, match="2,100,000 nodes, and mpdoctor reads at most 2,000,000"):
        saved_directory_from_path(str(tmp_path))
