"""A failing batch, run again with the layers observed: the first layer whose output is not finite, and what led up to
it. Costs nothing on steps that don't need it."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from mpdoctor.examiner.ownership import class_location
from mpdoctor.examiner.watch import LayerWatch, dtype_name, flat_tensors
from mpdoctor.facts.training import CulpritFacts, TensorFacts

FRAMES = 6
LIMIT = 65504.0
SMALLEST_NORMAL = 2.0**-14


class LayerObserver:
    """Watches eager layer calls until the first output that is not finite.

    Inner layers return before outer ones, so the first is also the innermost."""

    def __init__(self, watch: LayerWatch) -> None:
        self._watch = watch
        self._frames: list[TensorFacts] = []
        self._culprit: CulpritFacts | None = None

    def __enter__(self) -> LayerObserver:
        self._watch.observer = self._see
        return self

    def __exit__(self, *error: Any) -> None:
        self._watch.observer = None

    def culprit(self, step: int) -> CulpritFacts | None:
        """What was seen since the last call, as the culprit of this step."""
        found, self._culprit, self._frames = self._culprit, None, []
        if found is None:
            return None
        return CulpritFacts(step, found.overflow, found.frames, found.inputs_finite)

    def _see(self, layer: Any, inputs: Any, outputs: Any) -> None:
        if self._culprit is not None:
            return
        for tensor in flat_tensors(outputs):
            if not _is_readable(tensor):
                continue
            facts = tensor_from_output(self._watch, layer, tensor)
            if facts.nonfinite:
                finite = all(_is_finite(t) for t in flat_tensors(inputs) if _is_readable(t))
                self._culprit = CulpritFacts(0, facts, tuple(self._frames[-FRAMES:]), finite)
                return
            self._frames.append(facts)


def culprit_from_replay(watch: LayerWatch, run: Callable[[], Any], step: int) -> CulpritFacts | None:
    """`run()` repeats the failing step eagerly and changes nothing that lasts."""
    with LayerObserver(watch) as observer:
        run()
        return observer.culprit(step)


def tensor_from_output(watch: LayerWatch, layer: Any, tensor: Any) -> TensorFacts:
    values = tf.abs(tf.cast(tensor, tf.float32))
    finite = tf.boolean_mask(values, tf.math.is_finite(values))
    nonzero = tf.boolean_mask(finite, finite > 0)
    count = max(int(tf.size(values)), 1)
    return TensorFacts(
        layer=layer.name,
        layer_class=type(layer).__name__,
        dtype=dtype_name(tensor),
        shape=tuple(int(size) for size in tensor.shape),
        largest=float(tf.reduce_max(finite)) if int(tf.size(finite)) else 0.0,
        smallest=float(tf.reduce_min(nonzero)) if int(tf.size(nonzero)) else 0.0,
        near_limit=_share(finite > 0.9 * LIMIT),
        subnormal=_share(nonzero < SMALLEST_NORMAL),
        nonfinite=1.0 - int(tf.size(finite)) / count,
        location=watch.made_at(layer) or class_location(type(layer)),
    )


def _share(flags: Any) -> float:
    count = int(tf.size(flags))
    return float(tf.reduce_sum(tf.cast(flags, tf.float64))) / count if count else 0.0


def _is_readable(tensor: Any) -> bool:
    """A floating-point tensor with values, not a symbolic one."""
    return tf.is_tensor(tensor) and tensor.dtype.is_floating and hasattr(tensor, "numpy")


def _is_finite(tensor: Any) -> bool:
    return bool(tf.reduce_all(tf.math.is_finite(tensor)))
