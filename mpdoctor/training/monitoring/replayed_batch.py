"""Replays one batch eagerly, up to the moment in which the optimizer gets its gradients: finds the first layer whose
output is not finite, and the weight to blame, or the first such gradient.

Nothing is trained by it: the optimizer is never reached, and what the layers and metrics that ran keep of their own
(moving averages, seeds, sums) is put back."""

from __future__ import annotations

import contextlib
import inspect
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import tensorflow as tf

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.training.monitoring.measuring.numbers import dense
from mpdoctor.training.monitoring.users_line import is_of_library
from mpdoctor.training.monitoring.watched_calls import calls_watched, optimizer_held, own_variables
from mpdoctor.training.monitoring.watched_optimizer import loss_scale_optimizer_in


class GradientsGiven(BaseException):
    """Ends the replay: no `except Exception` of the user's holds it."""


class Seen:
    """What the replay has come across."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self.culprit: dict[str, Any] | None = None
        self.gradients: list[tuple[Any, Any]] = []
        self.kept: list[tuple[Any, Any]] = []
        self.known: set[int] = set()
        self.layers: list[Any] = []

    def keep(self, layer: Any) -> None:
        if id(layer) in self.known:
            return
        self.known.add(id(layer))
        self.layers.append(layer)
        self.keep_variables(list(getattr(layer, "non_trainable_variables", ())))

    def keep_variables(self, variables: list[Any]) -> None:
        for variable in variables:
            if id(variable) not in self.known:
                self.known.add(id(variable))
                self.kept.append((variable, as_kept(variable)))

    def watch(self, call: Callable[..., Any], layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.keep(layer)
        given = _all_finite((args, kwargs))
        output = call(layer, *args, **kwargs)
        if self.culprit is None and not _all_finite(output):
            self.culprit = _culprit(layer, output)
            self.culprit.update(
                _reason_in_layer(layer, (args, kwargs))
                if given
                else {"how": _reason_in_input(self.batch, (args, kwargs))}
            )
        return output

    def take(self, gradients: list[tuple[Any, Any]]) -> None:
        self.gradients = gradients
        raise GradientsGiven

    def put_back(self) -> None:
        for variable, value in self.kept:
            variable.assign(value)


def culprit_of_batch(
    step: Callable[[], Any], batch: Any, optimizer: Any, models: list[Any], others: list[Any]
) -> dict[str, Any] | None:
    """What `step()`, with this batch, finds first that is not finite until `optimizer` is given its gradients; None
    where all of it is, or it never came to them. The other optimizers, also those that the models have, train nothing.
    """
    seen = Seen(batch)
    for model in models:
        seen.keep_variables([v for metric in model.metrics for v in metric.variables])
    try:
        with contextlib.ExitStack() as during:
            during.enter_context(contextlib.suppress(GradientsGiven))
            for watching in (_run_eagerly(), calls_watched(seen.watch), optimizer_held(optimizer, seen.take)):
                during.enter_context(watching)
            for other in _other_optimizers(optimizer, models, others):
                during.enter_context(optimizer_held(other, _nothing))
            step()
    finally:
        seen.put_back()
    return seen.culprit or _first_gradient(seen)


def _other_optimizers(optimizer: Any, models: list[Any], known: list[Any]) -> list[Any]:
    optimizers = list(known)
    for model in models:
        optimizers += [value for value in vars(model).values() if callable(getattr(value, "apply_gradients", None))]
    optimizers = [
        other for other in optimizers if other is not optimizer and loss_scale_optimizer_in(other) is not optimizer
    ]
    return list({id(other): other for other in optimizers}.values())


def _nothing(gradients: list[tuple[Any, Any]]) -> None:
    return None


@contextlib.contextmanager
def _run_eagerly() -> Iterator[None]:
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def _reason_in_input(batch: Any, given: Any) -> str:
    """Why the first layer is given inf or NaN: the batch holds it, or numbers that its dtype does not."""
    if not _all_finite(batch):
        return "is inf or NaN, as the batch itself is"
    dtype = _dtype([value for value in tf.nest.flatten(given) if not _all_finite(value)])
    return f"is inf or NaN, as its input is: in {dtype}, of a batch whose largest number is {_largest(batch):.4g}"


def _reason_in_layer(layer: Any, given: Any) -> dict[str, Any]:
    """Why what a layer makes of finite inputs is not: a weight that is not, inputs (in Keras 2 a layer casts its own)
    or a weight that float16 does not hold, or what it computes."""
    weights = [(_name(weight), tf.constant(as_kept(weight))) for weight in _weights_in_use(layer)]
    for name, value in weights:
        if not _all_finite(value):
            return {"variable": name, "how": f"is inf or NaN, as {_not_finite_of(value)} its weight {name!r} are"}
    if getattr(layer, "compute_dtype", "") != "float16":
        return {}
    ends = f"is cast to float16, which ends at {FLOAT16_LIMIT:g}"
    largest = _largest(given)
    if largest > FLOAT16_LIMIT:
        return {"how": f"is inf or NaN: its input, up to {largest:.4g}, {ends}"}
    for name, value in weights:
        if _largest(value) > FLOAT16_LIMIT:
            return {"variable": name, "how": f"is inf or NaN: its weight {name!r}, up to {_largest(value):.4g}, {ends}"}
    return {}


def _weights_in_use(layer: Any) -> list[Any]:
    """The floating-point weights that the layer's output depends on: moving averages only where it does not train."""
    weights = own_variables(layer) if getattr(layer, "trainable", True) else getattr(layer, "weights", ())
    return [weight for weight in weights if tf.as_dtype(weight.dtype).is_floating]


def as_kept(variable: Any) -> Any:
    """The variable's stored value. Within a call Keras 3 would cast it to the layer's dtype."""
    return getattr(variable, "_value", variable).numpy()


def _not_finite_of(value: Any) -> str:
    """ "3 of the 64 elements of" """
    bad = int(tf.math.count_nonzero(tf.logical_not(tf.math.is_finite(value))))
    return f"{bad} of the {int(tf.size(value))} elements of"


def _name(variable: Any) -> str:
    return str(getattr(variable, "path", None) or variable.name.partition(":")[0])


def _largest(value: Any) -> float:
    return max((float(tf.reduce_max(tf.abs(tensor))) for tensor in _floats(value) if tf.size(tensor) > 0), default=0.0)


def _floats(value: Any) -> list[Any]:
    """A batch may hold arrays and numbers of Python."""
    tensors = [
        tf.convert_to_tensor(part) if isinstance(part, (np.ndarray, np.generic, float)) and _is_number(part) else part
        for part in tf.nest.flatten(value)
    ]
    return [tensor for tensor in tensors if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating]


def _is_number(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "biuf"


def _culprit(layer: Any, output: Any) -> dict[str, Any]:
    """The innermost layer comes first: it returns first."""
    culprit: dict[str, Any] = {
        "layer": str(layer.name),
        "layer_class": type(layer).__name__,
        "what": "the output",
        "how": "is the first that is inf or NaN",
        "dtype": _dtype(output),
    }
    place = _line_of_call(layer)
    if place is not None:
        culprit["file"], culprit["line"] = place
    return culprit


def _line_of_call(layer: Any) -> tuple[str, int] | None:
    """The line of the user's own code that calls the layer, else that of the layer's class if it is the user's."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not culprit_of_batch.__code__:
        if _is_of_user(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    with contextlib.suppress(OSError, TypeError):
        file = inspect.getsourcefile(type(layer).call) or ""
        if _is_of_user(file):
            return file, inspect.getsourcelines(type(layer).call)[1]
    return None


def _is_of_user(file: str) -> bool:
    """Whether the file belongs to the user: neither to a library nor a copy that AutoGraph has made."""
    return Path(file).is_file() and not is_of_library(file)


def _first_gradient(seen: Seen) -> dict[str, Any] | None:
    """The last layer's on the way forward is the first on the way back."""
    bad = [variable for gradient, variable in seen.gradients if gradient is not None and not _all_finite(gradient)]
    if not bad:
        return None
    owners = {id(variable): layer for layer in seen.layers for variable in own_variables(layer)}
    last = max(bad, key=lambda variable: _position(seen.layers, owners.get(id(variable))))
    culprit = {"variable": _name(last), "what": f"the gradient of {_name(last)!r}"}
    layer = owners.get(id(last))
    if layer is not None:
        culprit.update(layer=str(layer.name), layer_class=type(layer).__name__)
    for variable in [variable for _, variable in seen.gradients if id(variable) not in owners]:
        own = tf.constant(as_kept(variable))
        if not _all_finite(own):
            name = _name(variable)
            how = f"is inf or NaN, as {_not_finite_of(own)} the variable {name!r} are"
            return {"variable": name, "what": culprit["what"], "how": how}
    return {**culprit, "how": "is the first that is inf or NaN"}


def _position(layers: list[Any], layer: Any) -> int:
    return next((at for at, other in enumerate(layers) if other is layer), -1)


def _all_finite(value: Any) -> bool:
    tensors = [dense(tensor) for tensor in tf.nest.flatten(value)]
    return all(bool(tf.reduce_all(tf.math.is_finite(tensor))) for tensor in _floats(tensors))


def _dtype(value: Any) -> str:
    return next((str(tensor.dtype.name) for tensor in _floats(value)), "")
