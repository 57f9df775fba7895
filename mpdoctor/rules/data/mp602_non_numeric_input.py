"""Strings, dates or Python objects are passed to a model that computes with numbers.

## Why it matters
Training stops at the first step, before precision matters: `Invalid dtype: object` in Keras 3, `Failed to
convert a NumPy array to a Tensor (Unsupported object type float)` in tf_keras. An object array raises even
where every element is a number; NumPy makes one from rows that mix text and numbers, or from rows of different
lengths.

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

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import ArrayFacts, ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.layer_kinds import TAKING_TEXT
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, options
from mpdoctor.semantics.source.layers.layer_order import INPUTS
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.programs.data.array_contents import non_numeric_content
from mpdoctor.semantics.source.programs.data.training_data import behind, fed_values

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")
CONFIRMED_LIVE = True
NEVER_WHAT_IF = True
HANDLING_TEXT = (
    *("tensorflow.strings.", "tensorflow.string.", "tensorflow.lookup.", "tensorflow.py_function.", "tensorflow.text."),
    *("tensorflow_text.", "tensorflow_hub.", "keras_hub.", "keras_nlp."),
)
HELP = {
    "features": "Turn text into numbers first, with `keras.layers.StringLookup` or your own table, then with "
    '`np.asarray(…, dtype="float32")`.',
    "labels": "Turn class names into numbers first: `np.unique(labels, return_inverse=True)[1]`.",
}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    reads_text = _reads_text(facts)
    for call, role, value in fed_values(facts):
        if call.context.guarded or (reads_text and not _takes_numbers_only(facts, call.receiver)):
            continue
        sources = behind(value, past_changes=False)
        content = next(filter(None, (non_numeric_content(facts, source) for source in sources)), None)
        if content is not None:
            yield Finding(
                f"The {role} given to `{call.method}` hold {content}: no layer can compute with them.",
                HELP[role],
                call.location,
            )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    content = _what_was_refused(failure)
    if content is not None:
        yield Finding(
            f"The data holds {content}: no layer can compute with them.",
            HELP["labels" if failure.inside == "loss" else "features"],
            failure.location,
            evidence={"exception": failure.exception, "error": failure.message},
        )


def _what_was_refused(failure: FailureFacts) -> str | None:
    said = failure.said_by_library
    refused = re.search(r"\bInvalid dtype: (object|str|bytes|datetime64|timedelta64)", said)
    if refused is not None:
        return {"object": "Python objects", "str": "strings", "bytes": "strings"}.get(refused[1], "dates")
    match = re.search(r"Failed to convert a NumPy array to a Tensor \(Unsupported (?:object|numpy) type:? ?(\w+)", said)
    if match is not None:
        return "dates" if match[1] in ("NPY_DATETIME", "NPY_TIMEDELTA") else "Python objects"
    # the program itself casts in a layer or a pipeline, which this rule cannot judge
    by_keras = "cast(" not in failure.failing_line and failure.inside != "data"
    cast = re.search(r"Cast string to (?:float|half|bfloat16) is not supported", said)
    return "strings" if cast is not None and by_keras else None


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if any(layer.class_name in TAKING_TEXT for layer in model.layers):
        return
    for array in model.data:
        content = _what_is_held(array)
        if content is not None and array.role in HELP:
            name = f" {array.name!r}" if array.name else ""
            yield Finding(
                f"The {array.role}{name} are {content}: no layer can compute with them.",
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


def _takes_numbers_only(facts: SourceFacts, model: Value | None) -> bool:
    """Whether it is certainly a Sequential of library layers, none of which takes strings."""
    models = options(model)
    if not models or not all(isinstance(option, Call) and is_call_of(option, "keras.Sequential") for option in models):
        return False
    rows = [layers_of_sequential(facts, option) for option in models if isinstance(option, Call)]
    return all(row and all(layer_name(layer) and not _is_for_text(layer) for layer in row) for row in rows)


def _is_for_text(layer: Value) -> bool:
    """Whether a layer takes strings, or may do so because its class is the user's own."""
    callee = layer.callee if isinstance(layer, Call) else None
    return not isinstance(callee, Api) or public_name(callee.name).rpartition(".")[2] in TAKING_TEXT


def _reads_text(facts: SourceFacts) -> bool:
    """Whether a part of the program may take strings: then nothing is certain about its inputs."""
    has_layer = any(isinstance(call.callee, Api) for call in facts.calls_named(*TAKING_TEXT))
    is_declared = any(dtype_named(call.keyword("dtype")) == "string" for call in facts.calls_of(*INPUTS))
    return has_layer or is_declared or any(f"{use.api.name}.".startswith(HANDLING_TEXT) for use in facts.uses)
