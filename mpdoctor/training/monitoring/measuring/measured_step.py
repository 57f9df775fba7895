"""A step computed once more in a graph of its own, up to its gradients, and the numbers of its layers and gradients.

Nothing is trained by it: the optimizers are given the gradients and apply none, and each variable that the step writes
to (moving averages, seeds, sums of metrics) is put back. Nothing is read from the device here.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, NamedTuple

import tensorflow as tf

from mpdoctor.training.monitoring.measuring.numbers import Part, dense, exponents_of, numbers_of
from mpdoctor.training.monitoring.watched_calls import calls_watched, optimizer_held, own_variables

MOST_TRACES = 8  # of one step: a step that is traced with each batch would cost more than it tells
READING = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "LookupTableFindV2", "LookupTableSizeV2")


class NotMeasured(Exception):
    """Says in words, without a subject, why a step cannot be measured."""


class OnDevice(NamedTuple):
    """Tensors: a name, kind ("layer" or "gradient") and dtype each, numbers as `numbers_of` has them, and exponents as
    `exponents_of` does, or none."""

    names: Any
    numbers: Any
    exponents: Any


class MeasuredStep:
    """`step` as the user calls it; `scale_of(optimizer)` is what its gradients are still to be multiplied by, so that
    they are as the layers computed them; `exponents`: whether they are counted."""

    def __init__(
        self, step: Callable[..., Any], optimizers: list[Any], scale_of: Callable[[Any], Any], exponents: bool
    ) -> None:
        self._step = getattr(step, "python_function", step)
        self._optimizers, self._scale_of, self._exponents = optimizers, scale_of, exponents
        self._function = _as_tf_function(self._numbers_of_step)
        self._written: dict[int, list[tuple[Any, Any]]] = {}
        self._graphs: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> OnDevice:
        """Measure one step. Raises NotMeasured, and whatever the step raises when it is traced."""
        graph = self._function.get_concrete_function(args, kwargs).graph
        if not any(graph is known for known in self._graphs):
            if len(self._graphs) >= MOST_TRACES:
                raise NotMeasured("is traced anew too often: its arguments differ from step to step in shape or value")
            self._graphs.append(graph)
            self._written[id(graph)] = written_in(graph)
        written = self._written[id(graph)]
        before = [tf.identity(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)) for handle, dtype in written]
        try:
            numbers = self._function(args, kwargs)
        finally:
            for (handle, _), value in zip(written, before):
                tf.raw_ops.AssignVariableOp(resource=handle, value=value)
        return OnDevice(*numbers)

    def _numbers_of_step(self, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
        """Traced: the step with its layers and optimizers watched."""
        seen = Watched(tf.compat.v1.get_default_graph())
        with contextlib.ExitStack() as during:
            during.enter_context(calls_watched(seen.watch))
            for optimizer in self._optimizers:
                during.enter_context(optimizer_held(optimizer, seen.taking(self._scale_of, optimizer)))
            self._step(*args, **kwargs)
        if not seen.gradients:
            raise NotMeasured("gives no gradients to the optimizer that is watched")
        return seen.numbers_of_parts(self._exponents)


def _as_tf_function(function: Callable[..., Any]) -> Any:
    """A tf.function that takes batches of other lengths without being traced anew."""
    for relaxed in ("reduce_retracing", "experimental_relax_shapes"):
        with contextlib.suppress(TypeError):
            return tf.function(function, autograph=False, **{relaxed: True})
    return tf.function(function, autograph=False)


class Watched:
    """What a step's layers return, and its gradients, as they are traced in `graph`."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.layers: dict[str, tuple[str, list[Any]]] = {}
        self.gradients: list[Part] = []
        self._names: list[str] = []
        self._owners: dict[int, Any] = {}

    def watch(self, call: Callable[..., Any], layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._names.append(str(layer.name))
        before = len(self.layers)
        try:
            output = call(layer, *args, **kwargs)
        finally:
            name = "/".join(self._names[1:] or self._names)  # the model that is trained stands around all
            self._names.pop()
        for variable in own_variables(layer):
            self._owners.setdefault(id(variable), layer)
        tensors = [] if len(self.layers) > before and not self._names else list(self._tensors(output))
        if tensors:
            known = self.layers.setdefault(name, (tensors[0].dtype.name, []))[1]
            known.extend(tensor for tensor in tensors if all(tensor is not other for other in known))
        return output

    def _tensors(self, output: Any) -> Iterator[Any]:
        """The floating-point tensors of the graph itself: those inside a loop or a branch cannot be read from
        outside."""
        for tensor in tf.nest.flatten(output):
            if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating and tensor.graph is self.graph:
                yield tensor

    def taking(self, scale_of: Callable[[Any], Any], optimizer: Any) -> Callable[[list[tuple[Any, Any]]], None]:
        def take(gradients: list[tuple[Any, Any]]) -> None:
            scale = scale_of(optimizer)
            for gradient, variable in gradients:
                tensor = dense(gradient)
                if isinstance(tensor, tf.Tensor) and tensor.graph is self.graph:
                    owner = self._owners.get(id(variable))
                    dtype = str(getattr(owner, "compute_dtype", "") or tensor.dtype.name)
                    name = str(getattr(variable, "path", None) or variable.name.partition(":")[0])
                    self.gradients.append(Part(name, dtype, tf.cast(tensor, tf.float32) * scale))

        return take

    def numbers_of_parts(self, exponents: bool) -> tuple[Any, Any, Any]:
        """(texts of three, numbers of four, counts of exponents), a row for each layer in the order of its return and
        for each gradient."""
        layers = [(name, "layer", dtype, tensors) for name, (dtype, tensors) in self.layers.items()]
        gradients = [(gradient.name, "gradient", gradient.dtype, [gradient.tensor]) for gradient in self.gradients]
        rows = layers + gradients
        counts = [exponents_of(row[3]) for row in rows] if exponents else [tf.zeros([0], tf.int32)] * len(rows)
        return tf.constant([row[:3] for row in rows]), tf.stack([numbers_of(row[3]) for row in rows]), tf.stack(counts)


def written_in(graph: Any) -> list[tuple[Any, Any]]:
    """(handle, dtype) of each variable that this graph may write to. NotMeasured where it changes anything that cannot
    be put back."""
    inside = {id(placeholder): outside for outside, placeholder in graph.captures}
    written: dict[int, tuple[Any, Any]] = {}
    for operation in graph.get_operations():
        if operation.type in READING:
            continue
        for given in operation.inputs:
            handle = inside.get(id(given))
            if handle is not None and handle.dtype == tf.resource:
                written[id(handle)] = handle, _dtype_of(handle, operation.type)
    return list(written.values())


def _dtype_of(handle: Any, operation: str) -> Any:
    described = getattr(handle, "_handle_data", None)
    if described is None or not described.is_set or not described.shape_and_type:
        raise NotMeasured(f"changes something that cannot be put back ({operation})")
    return tf.as_dtype(described.shape_and_type[0].dtype)
