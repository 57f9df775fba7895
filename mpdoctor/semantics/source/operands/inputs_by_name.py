"""Inputs that a layer gets in a dictionary, `inputs["image"]`, where they meet tensors whose dtype is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeGuard

from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtypes_with
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Item, Value, known, options, walk
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes_of_autocast

CHANGING = ("update", "setdefault", "__setitem__")  # methods that put something into a dictionary


def is_half_beside_float32(facts: SourceFacts, value: Value, context: Context) -> bool:
    """Whether a tensor that is made from an input by name is 16-bit in some run, if it meets a float32 one. Some inputs
    by name are integers, which nothing casts; but an integer that meets float32 raises under every policy."""
    held = [part.of for part in walk(value) if _is_by_name(part)]
    if not held or any(id(option) in _changed(facts) for of in held for option in options(of)):
        return False
    return _dtypes(facts)(value) == AUTOCAST and bool(half_dtypes_of_autocast(facts, value, context))


@lru_cache(maxsize=1)
def _changed(facts: SourceFacts) -> frozenset[int]:
    """The dictionaries, by id, that the program puts something into: what they hold then need not be an input."""
    written = [write.of for write in facts.writes if not write.name]
    updated = [call.receiver for call in facts.method_calls(*CHANGING)]
    return frozenset(id(option) for held in (*written, *updated) for option in options(held))


def _is_by_name(value: Value) -> TypeGuard[Item]:
    return isinstance(value, Item) and isinstance(known(value.index), str)


@lru_cache(maxsize=1)
def _dtypes(facts: SourceFacts) -> Callable[[Value | None], str | None]:
    def told(value: Value, dtype: str | None) -> str | None:
        held = value.of if dtype is None and _is_by_name(value) else None
        return AUTOCAST if facts.dtype_of(held) == AUTOCAST else dtype

    return dtypes_with(facts.keras, told)
