"""Edits of lines that are for float32: of those that compute a variable's next value from its last one, say."""

from __future__ import annotations

from collections.abc import Sequence

from mpdoctor.finding import Fix
from mpdoctor.program.dtypes.layer_results import is_weight
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.met_operands import cast_where_it_meets
from mpdoctor.semantics.source.operands.mixed_operands import origin
from mpdoctor.semantics.source.operands.operand_words import pairs_that_meet
from mpdoctor.semantics.source.texts.syntax_trees import location_of
from mpdoctor.semantics.wording import text_at

_WHY = "in 16 bits what an update adds is soon rounded away."


def advice_for_update(facts: SourceFacts, event: Call | Operation, half: Sequence[Value]) -> tuple[str, Fix | None]:
    """The help and the edit for such a line, on which these values are 16-bit and another one is float32."""
    if any(is_weight(origin(value)) or _is_computed_from_weight(value) for value in half):
        word = "autocast" if facts.keras.is_keras3 else "experimental_autocast"
        return f'Make the weight with `add_weight(…, dtype="float32", {word}=False)`: {_WHY}', None
    return advice_for_float32(facts, event, half, _WHY)


def advice_for_float32(
    facts: SourceFacts, event: Call | Operation, half: Sequence[Value], why: str
) -> tuple[str, Fix | None]:
    """The help, with the reason for it, and the edit for a line that is to be computed in float32 and on which these
    values are 16-bit."""
    pairs = pairs_that_meet(facts, event)
    written = next((text_at(facts, location_of(facts, node)) for value, node in pairs if value in half), "")
    edits = [cast_where_it_meets(facts, value, pairs, "float32") for value in half]
    help = f"Cast the 16-bit side to float32, `tf.cast({written or '…'}, tf.float32)`: {why}"
    return help, safe_fix("Cast to float32", *edits)


def _is_computed_from_weight(value: Value) -> bool:
    """Whether it is a weight times a number, or the like."""
    return isinstance(value, Operation) and any(is_weight(origin(operand)) for operand in value.operands)
