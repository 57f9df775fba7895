"""What a loaded model computes for a batch, told before anything of it is: layers of few weights may make terabytes of
a few numbers, in what they put out or on the way to it.

The model is traced by TensorFlow and not run. In the graph of the trace each operation has the shape of what it gives.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.stand_ins.synthetic_data import SAMPLES, specs_of_features

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasModel


BATCH = 32  # samples, of fit() that is not told
MOST_AT_ONCE = 2**28  # numbers in one tensor, for each sample: 1 GiB of float32
MOST_IN_BATCH = 3 * 2**30  # numbers in all tensors of a forward pass, of which most are given up before its end
UNKNOWN_SIZE = 16  # of a dimension that a graph leaves open
LONGEST_NAME = 100  # characters that a message repeats
TRIES = 4
# They hand on what others made.
HANDING_ON = frozenset(
    ["Enter", "Exit", "ExpandDims", "Identity", "IdentityN", "If", "Merge", "NextIteration", "PartitionedCall",
     "Placeholder", "PreventGradient", "ReadVariableOp", "Reshape", "Squeeze", "StatefulPartitionedCall", "StatelessIf",
     "StatelessWhile", "StopGradient", "Switch", "VariableV2", "While"]
)  # fmt: skip


class Computed(NamedTuple):
    """An operation, and how many numbers it computes."""

    name: str
    numbers: int


def most_samples(layer_hooks: LayerHooks, model: KerasModel) -> int:
    """The samples that may be made up for it, SAMPLES at most.

    Raises Unusable where one is too much."""
    if specs_of_features(model, 1) is None:
        return SAMPLES
    with layer_hooks.paused():
        batch = largest_batch(model, lambda samples: specs_of_features(model, samples))
    return SAMPLES if batch == BATCH else batch


def largest_batch(model: KerasModel, specs: Callable[[int], Any]) -> int:
    """How many samples may be given to the model at once, BATCH at most. `specs(n)`: the inputs of a batch of n
    samples.

    Raises Unusable where one sample is too much."""
    samples = BATCH
    for _ in range(TRIES):
        computed = _computed(model, specs(samples), samples)
        largest = max(computed, key=lambda operation: operation.numbers, default=Computed("", 0))
        if largest.numbers > MOST_AT_ONCE * samples:
            raise _too_large(largest, samples)
        whole = sum(operation.numbers for operation in computed)
        if whole <= MOST_IN_BATCH:
            return samples
        if samples == 1:
            raise Unusable(
                f"the model would compute {whole:,} numbers for one sample, and mpdoctor has at most {MOST_IN_BATCH:,} "
                "computed for a batch: examine the script that trains the model"
            )
        samples = max(1, min(samples - 1, samples * MOST_IN_BATCH // whole))
    raise _too_large(largest, samples)


def _too_large(largest: Computed, samples: int) -> Unusable:
    name = largest.name if len(largest.name) <= LONGEST_NAME else f"{largest.name[:LONGEST_NAME]}…"
    given = "one sample" if samples == 1 else f"{samples} samples"
    return Unusable(
        f"the operation `{name}` of the model would compute a tensor of {largest.numbers:,} numbers for {given}, and "
        f"mpdoctor has at most {MOST_AT_ONCE:,} computed at once for each: examine the script that trains the model"
    )


def _computed(model: KerasModel, given: Any, samples: int) -> list[Computed]:
    """The operations of the model; [] for one that cannot be traced, which is reported where it is trained."""
    call = tf.function(lambda inputs: model(inputs, training=True), autograph=False)
    try:
        graph = call.get_concrete_function(given).graph.as_graph_def(add_shapes=True)
    except Exception:  # of whatever the model computes, which raises again where it is trained
        return []
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return list(_numbers(nodes, samples))


def _numbers(nodes: Iterable[Any], samples: int) -> Iterator[Computed]:
    for node in nodes:
        if node.op not in HANDING_ON:
            for shape in node.attr["_output_shapes"].list.shape:
                if not shape.unknown_rank:
                    yield Computed(node.name, _product([dimension.size for dimension in shape.dim], samples))


def _product(sizes: list[int], samples: int) -> int:
    """The first size that is left open is taken for the number of samples."""
    left_open = [place for place, size in enumerate(sizes) if size < 0]
    known = math.prod(size for size in sizes if size >= 0)
    return known * samples * UNKNOWN_SIZE ** (len(left_open) - 1) if left_open else known
