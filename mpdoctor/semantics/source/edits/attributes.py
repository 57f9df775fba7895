"""Edits of attributes: another name, or the same name on the optimizer inside."""

from __future__ import annotations

from mpdoctor.finding import Edit
from mpdoctor.program.events import Read, Write
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import argument_replaced, replaced
from mpdoctor.semantics.source.texts.written import argument_text, text_of, written_at

INNER = "inner_optimizer"


def attribute_renamed(facts: SourceFacts, event: Read | Write, name: str) -> Edit | None:
    """`of.name` in the place of what is read or written there. None for `getattr` and `setattr`."""
    if isinstance(event, Read):
        is_there = text_of(facts, event.name_location) == event.name
        return replaced(facts, event.name_location, name) if is_there else None
    written = written_at(facts, event.location)
    if written is None:
        return None
    last = None
    for token in written.tokens:
        if token.text.endswith("=") and not token.is_name():
            break
        last = token
    if last is None or last.text != event.name:
        return None
    return replaced(facts, written.span(last.start, last.end), name)


def of_inner_optimizer(facts: SourceFacts, event: Read | Write) -> Edit | None:
    """`of.inner_optimizer.name`, and `getattr(of.inner_optimizer, "name")`."""
    written = text_of(facts, event.location) or ""
    if not written.startswith(("getattr(", "setattr(")):
        return attribute_renamed(facts, event, f"{INNER}.{event.name}")
    given = argument_text(facts, event.location, "", 0)
    return argument_replaced(facts, event.location, "", 0, f"{given}.{INNER}") if given else None
