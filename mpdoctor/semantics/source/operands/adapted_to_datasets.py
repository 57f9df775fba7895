"""Layers that learn from a `tf.data.Dataset`."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, options

DATASET = "tensorflow.data.Dataset."
FROM_FILES = tuple(
    f"keras.{place}.{name}_dataset_from_directory"
    for place in ("utils", "preprocessing")
    for name in ("image", "text", "audio")
)
# Methods of a dataset that give a dataset.
GIVING_DATASETS = frozenset(
    ("map", "batch", "padded_batch", "unbatch", "shuffle", "prefetch", "cache", "take", "skip", "repeat", "filter")
)


def adapted_to_datasets(facts: SourceFacts, layer: str) -> Iterator[tuple[Call, Call]]:
    """The calls of `adapt` that certainly give a dataset to a layer of this library class, each with the call that
    makes the layer."""
    for call in facts.method_calls("adapt"):
        given = options(call.argument(0, "data"))
        if given and all(map(_is_dataset, given)):
            receivers = options(call.receiver)
            made = [receiver for receiver in receivers if isinstance(receiver, Call) and is_call_of(receiver, layer)]
            if made and len(made) == len(receivers):
                yield call, made[0]


def _is_dataset(value: Value | None) -> bool:
    while isinstance(value, Call):
        if isinstance(value.callee, Api):
            return value.callee.name.startswith(DATASET) or is_call_of(value, *FROM_FILES)
        if value.method not in GIVING_DATASETS:
            return False
        value = value.receiver
    return False
