"""The program uses a mixed-precision name that no version of TensorFlow or Keras has ever had.

## Why it matters
The line raises `AttributeError` or `ImportError` in every version, for example `module 'tensorflow' has no
attribute 'mixed_precision'`. The real names are in `tf.keras.mixed_precision` (or `keras.mixed_precision`).
There are few of them, above all `set_global_policy`, `global_policy`, `Policy` and `LossScaleOptimizer`.

## Flagged
```python
import tensorflow as tf

optimizer = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
```

## Fixed
```python
import tensorflow as tf

optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
```

## Versions
All. Checked against TensorFlow 2.4, 2.10, 2.15 and 2.21, with Keras 3.15 and tf_keras 2.21.

## Where users met it
Questions about `tf.mixed_precision.LossScaleOptimizer` and `mixed_precision.PolicyScope`; neither was ever
released. TensorFlow's own tests use a private function with a similar name, `policy_scope`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_history import (
    IN_EXPERIMENTAL,
    IN_MIXED_PRECISION,
    MODULES_INSIDE,
    NEVER_EXISTED,
    below,
    is_invented,
    is_private,
)
from mpdoctor.program.events import Use
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.names import named_instead
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
EXPLAINS = {"MP309": "line"}
MEANT = r"Write `(?:(?:tf\.)?keras\.)?(mixed_precision\.\w+)`\."
IN_EVERY_KERAS = ("Policy", "LossScaleOptimizer", "global_policy", "set_global_policy")
ROOM, OLD_ROOM = "keras.mixed_precision.", "keras.mixed_precision.experimental."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    imported: set[str] = set()
    for use in facts.uses:
        real = _real_name(use.api.name)
        hidden_at = _hidden_for_good(facts, use)
        if real is None or (use.context.asks_what_exists and hidden_at is None) or is_private(use.api.spelled):
            continue
        if not use.is_import and (not use.dotted or _is_one_of_several(facts, use)):
            continue
        # The import is the line that fails; the uses of the imported name need no finding of their own.
        if use.is_import:
            imported.add(use.api.spelled)
        elif use.api.spelled in imported:
            continue
        yield Finding(
            f"`{_as_written(facts, use)}` does not exist: no version of TensorFlow or Keras ever had it. This line "
            f"raises {'ImportError' if use.is_import else 'AttributeError'}{_hidden_by(hidden_at)}.",
            _advice(facts, use, real),
            use.location,
            fix=_fix(facts, use, real),
        )


def _hidden_for_good(facts: SourceFacts, use: Use) -> Location | None:
    """The `except` clause that hides every time that the name does not exist, where the program sets its policy in no
    other way."""
    return None if facts.policy_calls else use.context.swallowed


def _hidden_by(hidden_at: Location | None) -> str:
    if hidden_at is None:
        return ""
    return f", which `except` hides (line {hidden_at.line}): each time the program goes on without it"


def _advice(facts: SourceFacts, use: Use, real: str) -> str:
    """The advice, with the replacement spelled through the modules that this file imports."""
    fix, meant = _fix(facts, use, real), re.fullmatch(MEANT, real)
    if fix is not None:
        return f"{fix.title}."
    place, _, wrong = _as_written(facts, use).rpartition(".")
    if meant is None or use.api.name != f"{ROOM}{wrong}":
        return real
    return f"Write `{place}.{meant[1].rpartition('.')[2]}`."


def _fix(facts: SourceFacts, use: Use, real: str) -> Fix | None:
    """The edit that writes the real name, where exactly one name can be meant."""
    meant = re.fullmatch(MEANT, real)
    edit = named_instead(facts, use, meant[1]) if meant is not None else None
    return safe_fix(f"Write `{edit.text}`", edit) if edit is not None else None


def _is_one_of_several(facts: SourceFacts, use: Use) -> bool:
    """Whether one of several things is meant, by the path that the program took: it was prepared for more than one."""
    return any(other.location == use.location and other.api.name != use.api.name for other in facts.uses)


def _as_written(facts: SourceFacts, use: Use) -> str:
    return use.api.spelled if use.is_import else text_at(facts, use.location) or use.api.spelled


@cache
def _real_name(name: str) -> str | None:
    """What to write instead of a name that never existed; None for every other name."""
    for entry, real in NEVER_EXISTED.items():
        if below(name, entry):
            return f"Write `{real}`."
    if is_invented(name):
        meant = "LossScaleOptimizer" if "loss_scal" in name else 'set_global_policy("mixed_float16")'
        return f"Use `keras.mixed_precision.{meant}`."
    place, names = (OLD_ROOM, IN_EXPERIMENTAL) if name.startswith(OLD_ROOM) else (ROOM, IN_MIXED_PRECISION)
    first = name[len(place) :].partition(".")[0]
    if not name.startswith(place) or first in names or first in MODULES_INSIDE or first.startswith("_"):
        return None
    if first.lower() in ("policyscope", "policy_scope", "autocast"):
        return "Set the policy for the whole program with `set_global_policy`, or pass `dtype=…` to single layers."
    asks = first.startswith("get_") and "policy" in first
    import difflib  # of a mistake alone

    near = ["global_policy"] if asks else difflib.get_close_matches(first, IN_EVERY_KERAS, 1, 0.5)
    return (
        f"Write `mixed_precision.{near[0]}`." if near else "Use `set_global_policy`, `Policy` or `LossScaleOptimizer`."
    )
