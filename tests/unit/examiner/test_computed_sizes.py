"""How large a batch of a strange model may be: traced, and not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from checking import needs_tensorflow

from mpdoctor.examiner.exceptions import Unusable

pytestmark = needs_tensorflow


def allowed(model: Callable[..., Any], *size: int) -> int:
    import tensorflow as tf

    from mpdoctor.examiner.stand_ins.computed_sizes import largest_batch

    made: Any = model
    return largest_batch(made, lambda samples: tf.TensorSpec([samples, *size], tf.float32))


def repeated(times: int) -> Callable[..., Any]:
    import tensorflow as tf

    return lambda inputs, training: tf.reduce_mean(tf.tile(inputs, [1, times]), axis=1)


def test_a_small_model_gets_whole_batches() -> None:
    assert allowed(repeated(1000), 4) == 32


def test_one_that_computes_more_gets_smaller_ones() -> None:
    """A tensor for each sample of 2^27 numbers, which fits, and 32 of them, which do not."""
    assert allowed(repeated(2**25), 4) == 23


@pytest.mark.parametrize("times", [2**27, 2**40])
def test_a_tensor_of_more_than_a_gibibyte_is_refused_by_the_operation_that_makes_it(times: int) -> None:
    with pytest.raises(Unusable, match=r"^the operation `Tile` of the model would compute a tensor of [\d,]+ numbers"):
        allowed(repeated(times), 4)


def test_many_tensors_that_together_are_too_large_are_refused() -> None:
    import tensorflow as tf

    def many(inputs: Any, training: bool) -> Any:
        return sum(tf.reduce_sum(tf.tile(inputs, [1, 2**26]) + float(number)) for number in range(10))

    with pytest.raises(Unusable, match=r"would compute [\d,]+ numbers for one sample, and .* 3,221,225,472 computed"):
        allowed(many, 4)


def test_what_a_constant_makes_counts_as_well() -> None:
    import tensorflow as tf

    with pytest.raises(Unusable, match="would compute"):
        allowed(lambda inputs, training: inputs + tf.reduce_sum(tf.zeros([2**20, 2**20])), 4)


def test_what_functions_within_it_compute_counts_as_well() -> None:
    import tensorflow as tf

    inner = tf.function(lambda inputs: tf.tile(inputs, [1, 2**28]))
    with pytest.raises(Unusable, match="Tile"):
        allowed(lambda inputs, training: inner(inputs), 4)


def test_a_size_that_the_graph_leaves_open_is_taken_for_the_samples() -> None:
    import tensorflow as tf

    from mpdoctor.examiner.stand_ins.computed_sizes import largest_batch

    saved = tf.function(lambda inputs: tf.tile(inputs, [1, 2**20]), input_signature=[tf.TensorSpec([None, 4])])
    model: Any = lambda inputs, training: saved(inputs)  # noqa: E731
    assert largest_batch(model, lambda samples: tf.TensorSpec([samples, 4])) == 32


def test_a_model_that_cannot_be_traced_is_left_to_its_training() -> None:
    def fails(inputs: Any, training: bool) -> Any:
        raise ValueError("no")

    assert allowed(fails, 4) == 32
