"""Suppression: an ignore comment in a source file, and the codes in it that suppress nothing."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location


@dataclass(frozen=True)
class Suppression:
    """A comment `# mpdoctor: ignore[MP302] reason` or `# mpdoctor: ignore-file[MP302] reason`.

    location
        The comment.
    lines
        First and last line of the statement that it is about; of the whole file where `whole_file` is True. (0, 0)
        where it stands on a line of its own, between statements.
    selectors
        What stands between the brackets: codes, prefixes or names of rules.
    """

    location: Location
    lines: tuple[int, int]
    selectors: tuple[str, ...] = ()
    whole_file: bool = False
    reason: str = ""


@dataclass(frozen=True)
class SuppressionFacts:
    """A comment after every other rule has spoken.

    unused
        Selectors that suppressed nothing, though the rules they name were asked.
    unknown
        Selectors that name no rule.
    """

    suppression: Suppression
    unused: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
