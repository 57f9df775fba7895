"""Tensors of a step, marked so that their gradients are observed, wherever they lie in what a layer is given."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from mpdoctor.examiner.keras.private_state import give_mask, mask_of


def mapped(change: Callable[[tf.Tensor], object], structure: Any) -> Any:
    """The structure with `change` applied to every tensor in plain lists, tuples and dicts. Other containers are the
    user's own and stay."""
    if type(structure) is dict:
        return {key: mapped(change, value) for key, value in structure.items()}
    if type(structure) in (list, tuple):
        return type(structure)(mapped(change, value) for value in structure)
    return change(structure)


def with_gradient_seen(tensor: tf.Tensor, came_back: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """The tensor with its numbers and mask. On the way back `came_back` gets its gradient, and returns the one to hand
    on."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def passing(values: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        return tf.raw_ops.Identity(input=values), came_back

    marked = passing(tensor)
    mask = mask_of(tensor)
    if mask is not None:
        give_mask(marked, mask)
    return marked
