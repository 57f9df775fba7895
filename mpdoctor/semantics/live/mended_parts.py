"""The parts that an examination under a forced policy computed in float32 to continue, in words."""

from __future__ import annotations

from mpdoctor.facts.failure import MendedFacts
from mpdoctor.semantics.wording import listed

_NAMED = {
    "layer": "`{}`",
    "operations": "`{}`'s own operations",
    "metric": "the metric `{}`",
    "loss": "the loss `{}`",
    "output": "the output of `{}`",
}


def went_on_with(mended: tuple[MendedFacts, ...]) -> str:
    """A sentence; "" where nothing was mended."""
    named = list(dict.fromkeys(_NAMED[part.what].format(part.name) for part in mended))
    return f"mpdoctor continued with {listed(named)} in float32 to look for further defects." if named else ""
