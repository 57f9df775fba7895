"""What a saved diagnosis may hold, field by field: whoever wrote the file, what is read from it is what mpdoctor itself
could have written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import AlsoSeen, Crashed, Finding, RuleSummary, Skipped, Stage, TargetReport
from mpdoctor.recorded.run_facts import RunEvent, StepsRow

LONGEST_TEXT = 1_000_000  # characters: a line of source is cut to 2,000, the longest documentation of a rule has 10,000
LARGEST_NUMBER = 2**63 - 1
DEEPEST = 50  # lists and objects within each other, of what a rule has seen
EXIT_CODES = range(4)
KERASES = ("keras", "tf_keras", "tf.keras")

_WORD = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9 ._-]{0,79})?")
# Words of mpdoctor's own, of which a newer one may have others.
_WORDS: Mapping[type, tuple[str, ...]] = {
    AlsoSeen: ("code", "stage"),
    CallFacts: ("kind",),
    Crashed: ("code",),
    Finding: ("code", "name", "stage", "fingerprint"),
    RuleSummary: ("code", "name"),
    Skipped: ("code",),
    Stage: ("status",),
    TargetReport: ("kind",),
    RunEvent: ("kind",),
    TrainingFacts: ("data", "ended"),
}


def checked_text(text: str) -> str:
    """The text. Raises ValueError for one that mpdoctor can't have written."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"a text of {len(text)} characters")
    return text


def checked_number(number: int) -> int:
    """Counts, sizes, lines: none is negative. Raises ValueError."""
    if not 0 <= number <= LARGEST_NUMBER:
        raise ValueError("a number that is negative, or too large to count anything")
    return number


def refuse_foreign(cls: type, row: Mapping[str, Any]) -> None:
    """Refuse an object with values that mpdoctor never writes. Raises ValueError."""
    for field in _WORDS.get(cls, ()):
        _refuse_other_than_word(field, row.get(field))
    if cls is TargetReport:
        for stage in row.get("stages") or ():
            _refuse_other_than_word("stages", stage)
    if cls in (Location, AlsoSeen) and row.get("line") == 0:
        raise ValueError("lines are counted from 1")
    if cls is StepsRow and not 0 <= row.get("skipped", 0) <= row.get("steps", 0) > 0:
        raise ValueError("more steps were skipped than there were, or there were none")
    if cls is Keras and row.get("package") not in KERASES:
        raise ValueError(f"there is no Keras {row.get('package')!r}")
    if cls is Finding and _is_deeper(row.get("evidence"), DEEPEST):
        raise ValueError("evidence of too many objects within each other")


def _refuse_other_than_word(field: str, value: object) -> None:
    if isinstance(value, str) and not _WORD.fullmatch(value):
        raise ValueError(f"{field} is {value[:40]!r}")


def _is_deeper(value: object, limit: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return limit == 0 or any(_is_deeper(item, limit - 1) for item in inner)
