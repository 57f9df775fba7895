"""Casts, and the use of their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Collection, Value, is_api, walk

CASTS = ("tensorflow.cast", "tensorflow.saturate_cast", "keras.ops.cast", "keras.backend.cast")
KEEPERS = ("assign", "assign_add", "assign_sub", "add_loss", "add_metric", "update_state", "add_update")


def casts(facts: SourceFacts) -> Iterator[tuple[Call, str]]:
    """Every cast to a known dtype, with that dtype."""
    for call in facts.calls_of(*CASTS):
        dtype = dtype_named(_given_or_default(facts, call.argument(1, "dtype")), facts.keras)
        if dtype is not None:
            yield call, dtype


def _given_or_default(facts: SourceFacts, dtype: Value | None) -> Value | None:
    """A dtype that is a keyword of `call()`: its default, where no call in the program gives another."""
    if not isinstance(dtype, Parameter) or dtype.default is None or dtype.function is None:
        return dtype
    is_of_layer = dtype.function.name == "call" and dtype.function.owner is not None
    calls = (call for call in facts.calls if not isinstance(call.callee, Api))  # of layers, not of Keras' own makers
    is_given = dtype.index >= 0 or any(name == dtype.name for call in calls for name, _ in call.keywords)
    return dtype if is_given or not is_of_layer else dtype.default


def is_cast(value: Value) -> bool:
    return isinstance(value, Call) and is_api(value.callee, *CASTS)


def is_cast_to(facts: SourceFacts, value: Value, dtypes: tuple[str, ...]) -> bool:
    """Whether what is computed from a value is cast to one of these dtypes later on."""
    return id(value) in _behind_casts(facts, dtypes)


def is_supervised(facts: SourceFacts, value: Value) -> bool:
    """Whether what is computed from a value is assigned to a variable, or is a loss or metric of the layer's own."""
    return id(value) in _behind_what_is_kept(facts)


@lru_cache(maxsize=2)
def _behind_casts(facts: SourceFacts, dtypes: tuple[str, ...]) -> frozenset[int]:
    return _ids_behind(call.argument(0, "x") for call, dtype in casts(facts) if dtype in dtypes)


@lru_cache(maxsize=1)
def _behind_what_is_kept(facts: SourceFacts) -> frozenset[int]:
    return _ids_behind(part for call in facts.method_calls(*KEEPERS) for part in call.parts[1:])


def _ids_behind(values: Iterable[Value | None]) -> frozenset[int]:
    """The ids of the values and of all that they were computed from; parts that long computations share are visited
    once."""
    together = Collection(kind="tuple", items=tuple(value for value in values if value is not None))
    return frozenset(id(part) for part in walk(together))
