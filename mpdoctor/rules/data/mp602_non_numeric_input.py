"""Strings, dates or Python objects are handed to a model that computes with numbers.

## Why it matters
Training stops at the first step, before any precision matters: `Invalid dtype: object` in Keras 3, `Failed to convert a
NumPy array to a Tensor (Unsupported object type float)` in tf_keras. An object array raises even where every element is a
number; it is what numpy makes of rows that mix text and numbers, or of rows of different lengths.

## Flagged
```python
import keras
import numpy as np

rows = np.array([[34.0, "Berlin"], [51.0, "Lyon"]], dtype=object)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(rows, np.array([1.0, 0.0]))
```

## Fixed
```python
import keras
import numpy as np

rows = np.array([[34.0, 0.0], [51.0, 1.0]], dtype="float32")
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(rows, np.array([1.0, 0.0]))
```

## Versions
All.

## Where users met it
Questions about float16 training that turned out to be about text columns in the data.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.dtypes import dtype_named
from mpdoctor.facts.model import ArrayFacts, ModelFacts
from mpdoctor.facts.names import public_name
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Api, Call, Collection, Known, Value, is_api, known, options
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.data.sources import behind, fed_values
from mpdoctor.rules.layers.kinds import TEXT

SEVERITY = Severity.ERROR
HELP = {
    "features": "Turn text into numbers first: `keras.layers.StringLookup`, or your own table; then "
    '`np.asarray(…, dtype="float32")`.',
    "labels": "Turn class names into numbers first: `np.unique(labels, return_inverse=True)[1]`.",
}
ARRAYS = ("numpy.array", "numpy.asarray", "tensorflow.constant", "tensorflow.convert_to_tensor")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if _reads_text(facts):
        return
    for call, role, value in fed_values(facts):
        what = None if call.context.guarded else next(filter(None, map(_non_numeric, behind(value))), None)
        if what is not None:
            yield Finding(
                f"The {role} given to `{call.method}` hold {what}: no layer can compute with them.",
                HELP[role],
                call.location,
            )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if any(layer.class_name in TEXT for layer in model.layers):
        return
    for array in model.data:
        what = _what_is_held(array)
        if what is not None and array.role in HELP:
            name = f" {array.name!r}" if array.name else ""
            yield Finding(
                f"The {array.role}{name} are {what}: no layer can compute with them.",
                HELP[array.role],
                model.call.location,
                evidence={"container": array.container, "dtype": array.dtype, "holds": array.holds},
            )


def _what_is_held(array: ArrayFacts) -> str | None:
    if array.dtype == "object":
        return f"an object array that holds {array.holds}" if array.holds else "an object array"
    if array.dtype.startswith(("string", "str", "<U", "|S", "bytes")):
        return "strings"
    return "dates" if array.dtype.startswith(("datetime", "timedelta")) else None


def _reads_text(facts: SourceFacts) -> bool:
    """Whether a layer of the program may take strings: then nothing is certain about its inputs."""
    return any(
        isinstance(call.callee, Api) and public_name(call.callee.name).rpartition(".")[2] in TEXT
        for call in facts.calls
    )


def _non_numeric(value: Value) -> str | None:
    """What a value holds that is no number, None if it is certainly or perhaps numeric."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api) or not value.callee.is_(*ARRAYS):
        given = value.argument(0) if isinstance(value, Call) and value.method == "astype" else None
        return "Python objects" if _is_object(given) else ("strings" if _is_text_dtype(given) else None)
    given = value.argument(1, "dtype")
    if given is not None and known(given) is not None:
        if _is_object(given):
            return "strings" if _holds_text(value.argument(0)) else "Python objects (dtype=object)"
        dtype = known(given)
        if isinstance(dtype, str) and dtype.startswith(("datetime64", "M8")):
            return "dates"
        return "strings" if _is_text_dtype(given) else None
    return "strings" if _holds_text(value.argument(0)) else None


def _is_object(value: Value | None) -> bool:
    return known(value) in ("object", "O") or is_api(
        value, "builtins.object", "numpy.object_", "numpy.object"
    )


def _is_text_dtype(value: Value | None) -> bool:
    text = known(value)
    named = isinstance(text, str) and text.startswith(("str", "U", "<U", "S", "|S"))
    return named or is_api(value, "builtins.str", "numpy.str_") or dtype_named(value) == "string"


def _holds_text(value: Value | None, depth: int = 0) -> bool:
    """Whether a written-out list certainly holds a string somewhere."""
    for one in options(value):
        if isinstance(one, Collection) and one.kind in ("list", "tuple") and depth < 4:
            if not any(_holds_text(item, depth + 1) for item in one.items[:200]):
                return False
        elif not (isinstance(one, Known) and isinstance(one.value, (str, bytes))):
            return False
    return value is not None
