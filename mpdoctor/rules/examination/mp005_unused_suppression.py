"""An ignore comment suppresses nothing: its rule finds nothing there, or does not exist.

## Why it matters
The comment says that somebody has looked at a finding and accepts it. But the finding is gone, was never on
this line, or the code is mistyped. If the comment stays, it may one day hide a new defect. Only rules that ran
are counted: a comment for a rule that only looks at trainings is not reported under `--static`, nor is one for
a rule that `--select` or `--ignore` leaves out.

## Flagged
```python
import keras

optimizer = keras.optimizers.Adam(1e-3)  # mpdoctor: ignore[MP306] the wrapper is wanted twice
```

## Fixed
```python
import keras

optimizer = keras.optimizers.Adam(1e-3)
```

## Versions
All: this is about mpdoctor's own comments.

## Where users met it
Every linter with such comments knows this problem; there is no report about mpdoctor yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.program.suppression import SuppressionFacts

SEVERITY = Severity.WARNING
MOST_NAMED = 10  # selectors


def in_suppression(facts: SuppressionFacts) -> Iterator[Finding]:
    comment = facts.suppression
    ignore = "ignore-file" if comment.whole_file else "ignore"
    if not comment.selectors:
        yield Finding(
            f"This `{ignore}` comment names no rule, so it suppresses nothing.",
            f"Name the rule in brackets and give a reason, `# mpdoctor: {ignore}[MP302] reason`, or remove the "
            "comment.",
            comment.location,
        )
    useless = [*facts.unknown, *facts.unused]
    if not useless:
        return
    problems = [f"there is no rule {_listed_selectors(facts.unknown)}"] if facts.unknown else []
    if facts.unused:
        problems.append(f"{_listed_selectors(facts.unused)} {_is(facts.unused)} not found {_place_in_words(facts)}")
    yield Finding(
        f"This `{ignore}` comment suppresses nothing: {', and '.join(problems)}."
        if len(useless) == len(comment.selectors)
        else f"Part of this `{ignore}` comment suppresses nothing: {', and '.join(problems)}.",
        _help(facts, useless),
        comment.location,
        evidence={"unused": list(facts.unused), "unknown": list(facts.unknown)},
    )


def _help(facts: SuppressionFacts, useless: list[str]) -> str:
    comment = facts.suppression
    if not comment.whole_file and comment.lines == (0, 0):
        return "Put it at the end of the line it is about, write `ignore-file[…]` for the whole file, or remove it."
    left_out = set(useless)
    kept = [selector for selector in comment.selectors if selector not in left_out]
    if not kept:
        return "Remove the comment."
    return f"Keep what is used: `# mpdoctor: {'ignore-file' if comment.whole_file else 'ignore'}[{', '.join(kept)}]`."


def _place_in_words(facts: SuppressionFacts) -> str:
    comment = facts.suppression
    if comment.whole_file:
        return "in this file"
    if comment.lines == (0, 0):
        return "here, on a line without a statement"
    return "on this line" if comment.lines[0] == comment.lines[1] else "in this statement"


def _listed_selectors(selectors: tuple[str, ...]) -> str:
    more = [f"{len(selectors) - MOST_NAMED + 1} more"] if len(selectors) > MOST_NAMED else []
    named = [*selectors[: MOST_NAMED - len(more)], *more]
    return named[0] if len(named) == 1 else ", ".join(named[:-1]) + " and " + named[-1]


def _is(selectors: tuple[str, ...]) -> str:
    return "is" if len(selectors) == 1 else "are"
