"""Watches the call of each layer in a step, with an optimizer that hands out its gradients and applies none."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any, Callable, Iterator

import tensorflow as tf

Call = Callable[..., Any]


@contextlib.contextmanager
def optimizer_held(optimizer: Any, take: Callable[[list[tuple[Any, Any]]], None]) -> Iterator[None]:
    """While this context is active, the optimizer applies nothing: its methods give gradients and variables to
    `take`."""

    def apply(grads: Any, trainable_variables: Any = None, *_: Any, **__: Any) -> None:
        take(list(zip(grads, trainable_variables or optimizer._trainable_variables)))

    def apply_gradients(grads_and_vars: Any, *_: Any, **__: Any) -> None:
        take(list(grads_and_vars))

    own = vars(optimizer)  # past what optimizers do when an attribute is set
    own.update(apply=apply, apply_gradients=apply_gradients)
    try:
        yield
    finally:
        del own["apply"], own["apply_gradients"]


@contextlib.contextmanager
def calls_watched(watch: Callable[[Call, Any, tuple[Any, ...], dict[str, Any]], Any]) -> Iterator[None]:
    """While this context is active, `watch(call, layer, args, kwargs)` stands in for each call of a layer, in every
    Keras that is loaded, and returns its result."""
    patched = []
    for base in _layer_classes():
        call = base.__call__
        base.__call__ = _watched_call(call, watch)
        patched.append((base, call))
    try:
        yield
    finally:
        for base, call in patched:
            base.__call__ = call


def _watched_call(call: Call, watch: Call) -> Call:
    def __call__(layer: Any, *args: Any, **kwargs: Any) -> Any:
        return watch(call, layer, args, kwargs)

    return __call__


def _layer_classes() -> list[Any]:
    classes: list[Any] = [
        importlib.import_module(name).layers.Layer for name in ("keras", "tf_keras") if _is_loaded(name)
    ]
    if not any(tf.keras.layers.Layer is cls for cls in classes):
        classes.append(tf.keras.layers.Layer)
    return [cls for at, cls in enumerate(classes) if all(cls is not other for other in classes[:at])]


def _is_loaded(name: str) -> bool:
    return hasattr(sys.modules.get(name), "layers")


def own_variables(layer: Any) -> list[Any]:
    """The trainable variables of a layer. A model shows those of its layers among its own, and comes before them."""
    return list(getattr(layer, "trainable_variables", ()))
