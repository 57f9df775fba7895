"""A dtype policy is given where a dtype is asked for, as in `tf.cast(x, "mixed_float16")`.

## Why it matters
A layer takes a policy as its `dtype`. Tensors, weights and inputs have one dtype, and everything that makes or casts
them refuses a policy: `Cannot convert the argument 'type_value': 'mixed_float16' to a TensorFlow DType`, and in
Keras 3 `Invalid dtype: mixed_float16` or `unhashable type: 'DTypePolicy'`.

## Flagged
```python
import tensorflow as tf

policy = tf.keras.mixed_precision.Policy("mixed_float16")
tf.keras.mixed_precision.set_global_policy(policy)
images = tf.cast(tf.ones((8, 32, 32, 3)), policy)
inputs = tf.keras.Input((32, 32, 3), dtype="mixed_float16")
```

## Fixed
```python
import tensorflow as tf

policy = tf.keras.mixed_precision.Policy("mixed_float16")
tf.keras.mixed_precision.set_global_policy(policy)
images = tf.cast(tf.ones((8, 32, 32, 3)), policy.compute_dtype)
inputs = tf.keras.Input((32, 32, 3))
```

## Versions
All. Tried in TensorFlow 2.15 and Keras 3.15, with `tf.cast`, `tf.zeros`, `tf.Variable`, `tf.TensorSpec`,
`tf.convert_to_tensor`, `tf.image.convert_image_dtype`, `keras.Input`, `InputLayer`, `add_weight`, `keras.ops`,
`keras.random` and `keras.Variable`. Layers, metrics and losses take a policy, and are not reported.

## Where users met it
No thread is known. It is written after `Dense(4, dtype=policy)`, which is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.finding import Edit, Finding, Fix, Severity
from mpdoctor.knowledge.api_names import POLICY, public_name
from mpdoctor.program.dtypes.dtype_names import is_policy_in_force
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, is_api, known, options
from mpdoctor.semantics.source.edits.expressions import literal_replaced, put_around, safe_fix, without_keyword
from mpdoctor.semantics.source.programs.branches import is_ruled_out
from mpdoctor.semantics.source.texts.written import argument_at, text_of
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
INPUTS = ("keras.Input", "keras.layers.InputLayer")
WEIGHTS = ("add_weight", "add_variable")
TAKING_A_DTYPE = ("tensorflow.", "keras.ops.", "keras.random.", "keras.backend.", "keras.Variable", *INPUTS)
DTYPE_SECOND = (
    *("cast", "saturate_cast", "convert_image_dtype", "zeros", "ones", "zeros_like", "ones_like", "constant"),
    *("convert_to_tensor", "TensorSpec"),
)
HELP_FOR_INPUT = "Leave the `dtype` out: the layers cast their input themselves."
HELP_FOR_WEIGHT = "Leave the `dtype` out: the weight is float32 then, and Keras casts it where `call()` reads it."
REFUSED = (
    r"Cannot convert (?:the argument `type_value`:|value) '(mixed_b?float16)' to a TensorFlow DType",
    r"Cannot convert (?:the argument `type_value`:|value) <\w*Policy \"(\w+)\"> to a TensorFlow DType",
    r"Invalid dtype: (mixed_b?float16)",
    r"unhashable type: '(\w*DTypePolicy)'",
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.calls:
        given = _dtype_given(call)
        if given is None or call.context.guarded or is_ruled_out(call.context):
            continue
        choices = options(given)
        policy = choices[0] if len(choices) == 1 and _is_policy(choices[0]) else None
        if policy is not None:
            place = argument_at(facts, call.location, 1, "dtype")
            written = (text_of(facts, place) if place is not None else None) or text_at(facts, policy.location)
            yield Finding(
                f"`{written or 'this'}` is a dtype policy, and `{call.method}` takes a dtype: this line raises.",
                _help(call, policy, written),
                call.location,
                fix=_fix(facts, call, policy),
            )


def _dtype_given(call: Call) -> Value | None:
    """The dtype that a call is given which makes or casts a tensor, a weight or an input; None for other calls."""
    if isinstance(call.callee, Attribute):
        return call.keyword("dtype") if call.callee.name in WEIGHTS else None
    dtype = call.keyword("dtype") if call.keywords else None
    if dtype is None and call.method in DTYPE_SECOND:
        dtype = call.argument(1)
    takes_a_dtype = isinstance(call.callee, Api) and public_name(call.callee.name).startswith(TAKING_A_DTYPE)
    return dtype if dtype is not None and takes_a_dtype else None


def _is_policy(value: Value) -> bool:
    """Whether it is the name of a mixed policy, written or asked of a policy, or a policy itself."""
    if isinstance(value, Attribute) and value.name == "name":
        return any(policy in MIXED for policy in policies_named(value.of))
    is_object = isinstance(value, Call) and is_api(value.callee, POLICY)
    return known(value) in MIXED or is_object or is_policy_in_force(value)


def _is_left_out(call: Call) -> bool:
    return call.method in WEIGHTS or is_api(call.callee, *INPUTS)


def _help(call: Call, policy: Value, written: str) -> str:
    if _is_left_out(call):
        return HELP_FOR_WEIGHT if call.method in WEIGHTS else HELP_FOR_INPUT
    if isinstance(known(policy), str):
        return f'Write the dtype that it computes in, `"{_compute_dtype(policy)}"`.'
    return f"Give the dtype that it computes in, `{written.removesuffix('.name')}.compute_dtype`."


def _compute_dtype(policy: Value) -> str:
    return str(known(policy)).removeprefix("mixed_")


def _fix(facts: SourceFacts, call: Call, policy: Value) -> Fix | None:
    if _is_left_out(call):
        return safe_fix("Leave the dtype out", without_keyword(facts, call.location, "dtype"))
    if isinstance(known(policy), str):
        dtype = _compute_dtype(policy)
        return safe_fix(f'Write "{dtype}"', literal_replaced(facts, policy.location, dtype))
    return safe_fix("Give its compute dtype", _with_compute_dtype(facts, call))


def _with_compute_dtype(facts: SourceFacts, call: Call) -> list[Edit] | None:
    """The policy that is written in the call, with `.compute_dtype` behind it."""
    place = argument_at(facts, call.location, 1, "dtype")
    text = text_of(facts, place) if place is not None else None
    if place is None or text is None or not re.fullmatch(r"[\w.]+(?:\([^()]*\))?", text) or text.endswith(".name"):
        return None
    return put_around(facts, place, "", ".compute_dtype")


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    refused = next(filter(None, (re.search(words, failure.said_by_library) for words in REFUSED)), None)
    if refused is None:
        return
    named = f'"{refused[1]}"' if refused[1] in MIXED else "This"
    yield Finding(
        f"{named} is a dtype policy, and a dtype is asked for here: the program stops there.",
        "Give the dtype that it computes in: `policy.compute_dtype`, `self.compute_dtype` in a layer. For an input or "
        "a weight leave the `dtype` out.",
        failure.location,
    )
