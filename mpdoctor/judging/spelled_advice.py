"""Spells a run's advice with the names of its file; the source stage has done so for its own advice."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding
from mpdoctor.program.source_facts import SourceFacts

_NAMED = r"(?<![\w.])optimizer(?=\.\w)"
_USED = r"(?<![\w.])optimizer\.(?:inner_optimizer\.)?(\w+)"
_APPLYING = ("apply", "apply_gradients", "minimize")


def spelled(item: Finding | Crashed, sources: Mapping[str, SourceFacts], keras: Keras) -> Finding | Crashed:
    """`ops.cast(y_pred, "float32")` where the file of its line imports no TensorFlow, `self.opt.scale_loss(loss)` where
    that line calls the optimizer so. `keras`: which one ran."""
    if isinstance(item, Crashed) or item.location is None:
        return item
    facts = sources.get(item.location.path)
    if facts is None:
        return item
    help = _with_its_optimizer(item.help, facts, item.location)
    if "tf." in help:
        from mpdoctor.semantics.source.edits.names import advice_in_names_of

        help = advice_in_names_of(dataclasses.replace(facts, keras=keras), help)
    return item if help == item.help else dataclasses.replace(item, help=help)


def _with_its_optimizer(help: str, facts: SourceFacts, location: Location) -> str:
    """The help with what the line calls its optimizer in the place of `optimizer`; as it is where the line shows none
    or several."""
    used = re.findall(_USED, help)
    lines = facts.lines_of(location.path) if used else ()
    line = lines[location.line - 1] if 0 < location.line <= len(lines) else ""
    names = "|".join(map(re.escape, sorted({*used, *_APPLYING})))
    receivers = set(re.findall(rf"([A-Za-z_][\w.]*(?:\[\w+\])?)\.(?:{names})\b", line))
    return re.sub(_NAMED, receivers.pop(), help) if len(receivers) == 1 else help
