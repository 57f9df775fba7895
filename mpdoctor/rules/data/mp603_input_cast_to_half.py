"""Features or labels are cast to 16 bits by hand, although the mixed policy casts where it is needed.

## Why it matters
Keras casts the features in the first layer and leaves the labels unchanged. A cast by hand costs accuracy and
gains nothing: float16 holds integers only up to 2048, labels between 0 and 1000 were off by up to 0.25, labels
beyond 65504 became infinite and so did the loss (Keras 3.15, tf_keras 2.21). Preprocessing and augmentation
after the cast work with three digits.

## Flagged
```python
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(64, 4).astype("float16")
y = np.random.rand(64, 1).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

## Fixed
```python
import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(64, 4).astype("float32")
y = np.random.rand(64, 1).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

## Versions
All.

## Where users met it
keras-team/keras#16401, and questions about training in float16 "by casting everything".
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF, MIXED
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, GLOBAL_POLICY
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Collection, Value, is_api, options, walk
from mpdoctor.semantics.source.edits.expressions import dtype_named_instead, unsafe_fix
from mpdoctor.semantics.source.loops.gradients import applied_gradients, target
from mpdoctor.semantics.source.programs.data.array_contents import FILLED
from mpdoctor.semantics.source.programs.data.training_data import (
    FedValue,
    behind,
    fed_values,
    mapped_functions,
    widened_by_maps,
)
from mpdoctor.semantics.source.programs.models import is_model

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
CONFIRMED_LIVE = True
WERE_THEY_LABELS = ", and labels would lose digits for nothing"
PAIR = ("features", "labels")
CASTS = (
    "tensorflow.cast",
    "tensorflow.convert_to_tensor",
    "tensorflow.constant",
    "tensorflow.image.convert_image_dtype",
    "numpy.array",
    "numpy.asarray",
    "keras.ops.cast",
    "keras.ops.convert_to_tensor",
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for fed in (*fed_values(facts), *_fed_in_loops(facts)):
        if any(policy in MIXED for policy in facts.policies_at(fed.call)):
            yield from _casts(facts, fed)


def _casts(facts: SourceFacts, fed: FedValue) -> Iterator[Finding]:
    """The casts to 16 bits on the way to a value that a model is trained on."""
    call, role, value = fed
    has_labels_inside = call.method in FITTING and role == "features" and call.argument(1, "y") is None
    is_both = ".data." in _name(value) or has_labels_inside
    widened = widened_by_maps(facts, value)
    made_by_hand = [("" if is_both else role, made, False) for made in behind(value) if id(made) not in widened]
    for role_of_part, made, is_mixed in (*made_by_hand, *_returned_by_maps(facts, value)):
        dtype = _cast_to_half(made, facts.policies_at(call) if role_of_part == "labels" else ())
        if dtype is not None:
            given = f"The {role_of_part} are" if role_of_part else "The data is"
            needless = _needless([role_of_part]) if role_of_part else _needless(["features"]) + WERE_THEY_LABELS
            yield Finding(
                f"{given} cast to {dtype} by hand: {needless}.",
                'Leave the data in float32: `"float32"` here'
                + (" and in what it is mixed with" if is_mixed else "")
                + ", or no cast at all."
                + _too_large(dtype, role_of_part),
                made.location,
                fix=None if is_mixed else _fix(facts, made, dtype),
            )


def _fed_in_loops(facts: SourceFacts) -> Iterator[FedValue]:
    """The data that a model is called on in a training step of the user's own. What another model made of it, and
    random numbers, are no data."""
    for _, gradient in applied_gradients(facts):
        for part in walk(target(gradient)):
            given = part.argument(0, "inputs") if isinstance(part, Call) and is_model(part.callee) else None
            if isinstance(part, Call) and not any(map(_is_made_up, walk(given))):
                yield from (FedValue(part, "features", option) for option in options(given))


def _is_made_up(value: Value) -> bool:
    """Whether a model or a generator of random numbers gives it."""
    is_random = _name(value).startswith(("tensorflow.random.", "keras.random."))
    return is_random or (isinstance(value, Call) and is_model(value.callee))


def _fix(facts: SourceFacts, made: Value, dtype: str) -> Fix | None:
    """The edit that replaces the dtype named in the call."""
    return unsafe_fix("Leave the data in float32", dtype_named_instead(facts, made.location, dtype, "float32"))


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if model.policy not in MIXED and model.global_policy not in MIXED:
        return
    if model.preparing_layers:  # they follow the policy too; a cast beside them is left to the source stage
        return
    half = [array for array in model.data if array.dtype in HALF and array.role in ("features", "labels")]
    if half:
        roles = " and ".join(dict.fromkeys(array.role for array in half))
        yield Finding(
            f"The {roles} are {half[0].dtype} already: {_needless([array.role for array in half])}.",
            "Leave the data in float32.",
            evidence={"data": {f"{array.role} {array.name}".strip(): array.dtype for array in half}},
        )


def _too_large(dtype: str, role: str) -> str:
    """A sentence about features that Keras' own cast would not spare either."""
    if dtype != "float16" or role == "labels":
        return ""
    return " Features beyond 65504 have to be scaled down besides: Keras' own cast makes them inf, too."


def _needless(roles: list[str]) -> str:
    """Why the cast is needless: Keras casts features itself, and labels only lose digits."""
    reasons = ["Keras itself casts the input of the first layer"] if set(roles) - {"labels"} else []
    return ", and ".join([*reasons, *(["labels lose digits and gain nothing"] if "labels" in roles else [])])


def _cast_to_half(value: Value, policies: tuple[object, ...]) -> str | None:
    """The 16-bit dtype that this expression itself casts to; None if it is no such cast. `policies`: the global ones,
    where their compute dtype counts as well: features get that from Keras anyway."""
    if not isinstance(value, Call):
        return None
    if isinstance(value.callee, Api) and value.callee.is_(*CASTS):
        dtype = _named(value.argument(1, "dtype"), policies)
    elif isinstance(value.callee, Api) and value.callee.name in FILLED:
        dtype = _named(value.argument(FILLED[value.callee.name], "dtype"), policies)
    elif value.method == "astype":
        dtype = _named(value.argument(0, "dtype"), policies)
    elif isinstance(value.callee, Api) and value.callee.is_("numpy.float16"):
        dtype = "float16"
    else:
        return None
    return dtype if dtype in HALF else None


def _named(value: Value | None, policies: tuple[object, ...]) -> str | None:
    """The name of a dtype; for a parameter that is never passed, the name of its default; for the compute dtype of the
    global policy, what it is under the only one of these."""
    reads_policy = any(isinstance(part, Call) and is_api(part.callee, *GLOBAL_POLICY) for part in walk(value))
    if reads_policy and dtype_named(value) == AUTOCAST and len(policies) == 1:
        return str(policies[0]).replace("mixed_", "")
    return dtype_named(value.default if isinstance(value, Parameter) else value)


def _returned_by_maps(facts: SourceFacts, value: Value) -> Iterator[tuple[str, Value, bool]]:
    """What the functions that a dataset maps give, of a pair whether it is the features or the labels, and whether it
    is a sample that they mix with another one."""
    for function in mapped_functions(value):
        for returned in facts.returns_of(function):
            for result in options(returned.value):
                is_pair = isinstance(result, Collection) and result.kind == "tuple" and len(result.items) == len(PAIR)
                items = result.items if isinstance(result, Collection) else (result,)
                for role, item in zip(PAIR if is_pair else ("",) * len(items), items, strict=True):
                    for option in options(item):
                        yield from ((role, made, False) for made in behind(option))
                        yield from ((role, made, True) for made in _mixed_samples(option))


def _mixed_samples(value: Value) -> Iterator[Call]:
    """The casts of the samples that a mapped function mixes, as MixUp does: `x1 * share + x2 * (1 - share)`."""
    terms = value.operands if isinstance(value, Operation) and value.operator == "+" else ()
    products = [term for term in terms if isinstance(term, Operation) and term.operator == "*"]
    for product in products if len(products) == 2 else ():
        for factor in (option for operand in product.operands for option in options(operand)):
            if isinstance(factor, Call) and is_api(factor.callee, "tensorflow.cast") and _is_sample(factor):
                yield factor


def _is_sample(cast: Call) -> bool:
    """Whether it casts what its function is given, or a part of it."""
    of = cast.argument(0, "x")
    return of is not None and any(isinstance(part, Parameter) for option in options(of) for part in behind(option))


def _name(value: Value) -> str:
    return value.callee.name if isinstance(value, Call) and isinstance(value.callee, Api) else ""
