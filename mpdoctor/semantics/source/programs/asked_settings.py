"""Settings that the program compares or looks up before it uses them (`if args.precision in NAMES:`): their texts are
names of its own, and no policies or dtypes of Keras."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.knowledge.dtypes.result_dtypes import COMPARISONS
from mpdoctor.program.command_line import is_from_command_line
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, known, options

MATCHING = ("re.match", "re.fullmatch", "re.search")
_OF_TABLES = ("get", "index")


@lru_cache(maxsize=1)
def asked_about(facts: SourceFacts) -> frozenset[int]:
    """The ids of the constants that a setting has by default, where the program compares the setting with something,
    matches its text, or looks it up in a table: what the default says may be a name of the program's own."""
    return frozenset(id(default) for asked in _asked(facts) for default in _defaults_in(asked))


def is_asked_about(facts: SourceFacts, given: Value | None, default: str) -> bool:
    """Whether the program asks about a setting that is this text by default, which it then gives as `given`."""
    choices = options(given)
    return len(choices) > 1 and any(known(choice) == default and id(choice) in asked_about(facts) for choice in choices)


def is_own_name(facts: SourceFacts, given: Value | None, name: str) -> bool:
    """Whether what is `given` may be this text or another one, and the program knows the text for a name of its own: it
    compares it with something, or it is a key of a table."""
    choices = options(given)
    if len(choices) < 2 or not any(known(choice) == name for choice in choices):
        return False
    asks = _asking_for(name)
    texts = (facts.text, *facts.texts_beside.values())
    return any(asks.search(text) for text in texts if name in text)


@lru_cache(maxsize=64)
def _asking_for(name: str) -> re.Pattern[str]:
    """`== "fp16"`, `in ("bf16", "fp16")`, `case "fp16"`, `"fp16" in` and the key of a table, `"fp16": …`"""
    quoted = f"(?:\"{re.escape(name)}\"|'{re.escape(name)}')"
    before = r"(?:[=!]=[ \t]*|\bin[ \t]*[(\[{][^)\]}]*|^[ \t]*case\b[^:\n]*)"
    behind = r"[ \t]*(?:[=!]=|in\b|not[ \t]+in\b|:(?!=))"
    return re.compile(f"{before}{quoted}|{quoted}{behind}", re.MULTILINE)


def _asked(facts: SourceFacts) -> Iterator[Value | None]:
    """The values that the program compares, looks up in a table or matches with a pattern."""
    for operation in facts.operations:
        if operation.operator in COMPARISONS:
            yield from operation.operands
    for call in facts.calls:
        if isinstance(call.callee, Attribute):
            is_of_table = call.method in _OF_TABLES and isinstance(call.callee.of, (Collection, Attribute, Item))
            yield call.callee.of
            yield call.argument(0) if is_of_table else None
        elif isinstance(call.callee, Api) and call.callee.name in MATCHING:
            yield call.argument(1, "string")


def _defaults_in(asked: Value | None) -> Iterator[Value]:
    """The constants that a setting may be by default, asked about as a whole or in a part of its text."""
    while isinstance(asked, Item):
        asked = asked.of
    choices = options(asked)
    if len(choices) > 1 and any(map(is_from_command_line, choices)):
        yield from (choice for choice in choices if isinstance(choice, Known))
