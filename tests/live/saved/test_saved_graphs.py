"""What is read from the graphs of functions that TensorFlow itself traced: dtypes, where results go, and how large they
can be; through calls, branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from checking import needs_tensorflow

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
