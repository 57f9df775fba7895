"""Inputs that a layer gets in a dictionary, `inputs["image"]`, where they meet tensors whose dtype is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeGuard

from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtypes_with
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Item, Value, known, walk
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes_of_autocast


def is_half_beside_float32(facts: SourceFacts, value: Value, context: Context) -> bool:
    """Whether a tensor that is made from an input by name is 16-bit in some run, if it meets a float32 one. Some inputs
    by name are integers, which nothing casts; but an integer that meets float32 raises under every policy."""
    if not any(_is_by_name(part) for part in walk(value)):
        return False
    return _dtypes(facts)(value) == AUTOCAST and bool(half_dtypes_of_autocast(facts, value, context))


def _is_by_name(value: Value) -> TypeGuard[Item]:
    return isinstance(value, Item) and isinstance(known(value.index), str)


@lru_cache(maxsize=1)
def _dtypes(facts: SourceFacts) -> Callable[[Value | None], str | None]:
    def told(value: Value, dtype: str | None) -> str | None:
        held = value.of if dtype is None and _is_by_name(value) else None
        return AUTOCAST if facts.dtype_of(held) == AUTOCAST else dtype

    return dtypes_with(facts.keras, told)
