"""Turns the arguments of a training call into ArrayFacts: dtypes, shapes, and the real contents of object arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

import numpy

from mpdoctor.facts.model import ArrayFacts
from mpdoctor.knowledge.api_names import LIBRARIES

if TYPE_CHECKING:
    import tensorflow as tf


MOST_NUMBERS = 10_000_000  # that are looked at
ROLES = (("x", "features"), ("y", "labels"), ("sample_weight", "sample weights"))


def arrays_from_arguments(arguments: Mapping[str, Any]) -> tuple[ArrayFacts, ...]:
    """`arguments` are those of fit() or train_on_batch(), by name."""
    arrays = []
    for name, role in ROLES:
        value = arguments.get(name)
        if value is None:
            continue
        specification = getattr(value, "element_spec", None)
        if specification is not None:
            parts = specification if isinstance(specification, tuple) else (specification,)
            for (_, part_role), component in zip(ROLES, parts):
                arrays += list(_leaves(component, part_role, "", "tf.data.Dataset"))
        else:
            arrays += list(_leaves(value, role, "", None))
    return tuple(arrays)


def arrays_from_batch(batch: object) -> tuple[ArrayFacts, ...]:
    """One batch (x, y, sample_weight) of a generator or a Sequence, whose arguments say nothing."""
    parts = batch if isinstance(batch, tuple) else (batch,)
    return tuple(
        leaf
        for (_, role), component in zip(ROLES, parts)
        if component is not None
        for leaf in _leaves(component, role, "", "batch")
    )


def _leaves(value: Any, role: str, name: str, container: str | None) -> Iterator[ArrayFacts]:
    if isinstance(value, Mapping):
        for key in value:
            yield from _leaves(value[key], role, f"{name}.{key}" if name else str(key), container)
    elif isinstance(value, tuple) or (isinstance(value, list) and value and hasattr(value[0], "dtype")):
        for i, item in enumerate(value):
            yield from _leaves(item, role, f"{name}[{i}]", container)
    elif isinstance(value, list) and value:
        yield ArrayFacts(role, name, "list", *_list_content(value))
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        dtype = str(getattr(value.dtype, "name", value.dtype))
        kind = container or _container(value)
        held = _held(value) if dtype == "object" else ""
        yield ArrayFacts(role, name, kind, dtype, _shape(value.shape), held, _largest(value, kind))
    elif hasattr(value, "dtypes") and hasattr(value, "columns"):
        for column in value.columns:
            yield ArrayFacts(
                role, str(column), "pandas DataFrame", str(value[column].dtype), (len(value),),
                _held(value[column]) if str(value[column].dtype) in ("object", "str", "string") else "",
            )  # fmt: skip


def _largest(value: Any, container: str) -> float | None:
    """The largest finite magnitude of floats in memory, of a large array only in its beginning; None for other data."""
    if container != "numpy array" or value.dtype.kind != "f" or not value.size:
        return None
    rows = max(MOST_NUMBERS * len(value) // value.size, 1) if value.ndim else 1
    beginning = numpy.abs(value[:rows] if value.ndim else value)
    finite = beginning[numpy.isfinite(beginning)]
    return float(finite.max()) if finite.size else None


def _container(value: object) -> str:
    module = type(value).__module__.split(".")[0]
    if module == "numpy":
        return "numpy array"
    if module == "pandas":
        return "pandas " + type(value).__name__
    return "tensor" if module in LIBRARIES else type(value).__name__


def _shape(shape: Any) -> tuple[int | None, ...]:
    if getattr(shape, "rank", 0) is None:
        return ()
    return tuple(None if size is None else int(size) for size in shape)


def _held(values: tf.Tensor) -> str:
    """The type of what an object array holds: of the first value that is no number, else of the first: "str",
    "datetime", "ndarray", "float"."""
    flat = values.ravel() if hasattr(values, "ravel") else values
    held = [value for value in list(flat[:100]) if value is not None]
    telling = [value for value in held if not isinstance(value, (int, float))] or held
    return type(telling[0]).__name__ if telling else "None"


def _list_content(values: tf.Tensor) -> tuple[str, tuple[int | None, ...], str]:
    """(dtype, shape, type of what it holds) of a nested Python list."""
    shape = []
    while isinstance(values, list) and values:
        shape.append(len(values))
        values = values[0]
    dtype = {"str": "string", "bytes": "string", "float": "float", "int": "int", "bool": "bool"}
    held = type(values).__name__
    return dtype.get(held, held), tuple(shape), held
