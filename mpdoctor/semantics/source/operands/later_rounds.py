"""Where a tensor that a loop carries on is float32 from the second round on, and meets a 16-bit one there."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mpdoctor.facts.location import Location
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.tensor_dtypes import dtype_of
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Earlier, Either, Value, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.operands.mixed_operands import is_half, may_raise, mixed_operands
from mpdoctor.semantics.source.operands.operand_words import pairs_that_meet
from mpdoctor.semantics.source.texts.syntax_trees import location_of
from mpdoctor.semantics.wording import place_of, text_at


def refused_in_later_rounds(facts: SourceFacts, reported: Collection[Location]) -> Iterator[tuple[str, str, Location]]:
    """(message, help, location) for each operation in which float32 and 16 bits meet from a loop's second round on.
    `reported`: the operations in which they meet in the first round."""
    for event, operands in mixed_operands(facts):
        if not event.context.loops or event.location in reported or asks_for_dtype(event.context):
            continue
        for carried in operands:
            end = _float32_end(facts, carried)
            others = [other for other in operands if other is not carried]
            if end is None or not may_raise(facts, (event, operands)):
                continue
            if not any(_stays_half(facts, other, carried) and is_half(facts, other, event.context) for other in others):
                continue
            yield (*_problem_and_help(facts, event, carried, end), event.location)
            break


def _problem_and_help(facts: SourceFacts, event: Call | Operation, carried: Value, end: Value) -> tuple[str, str]:
    """The message and the help of the finding. `end`: the value with which the round before ended."""
    written = next((node for value, node in pairs_that_meet(facts, event) if value is carried), None)
    text = text_at(facts, location_of(facts, written)) if written is not None else ""
    place = place_of(facts, end.location, event.location)
    name = f"`{text}`" if text else "what it carries on"
    return (
        f"From the loop's second round on, {name} is float32, made in the round before ({place}), and is "
        "combined with the layer's 16-bit tensor: this line raises under a mixed policy.",
        f"Cast what the round ends with to the layer's dtype: `tf.cast({text or '…'}, self.compute_dtype)`.",
    )


def _float32_end(facts: SourceFacts, carried: Value) -> Value | None:
    """What a round ends with and the next begins with, if that is float32 in whichever way it ends; else None."""
    earlier = [option for option in options(carried) if isinstance(option, Earlier)]
    if not isinstance(carried, Either) or len(earlier) != 1 or is_array(carried):
        return None
    ends = earlier[0].handed_on or earlier[0].ends
    is_float32 = ends and all(dtype_of(end, facts.keras, first_round=True) == "float32" for end in ends)
    return ends[0] if is_float32 else None


def _stays_half(facts: SourceFacts, other: Value, carried: Value) -> bool:
    """Whether what is 16-bit in the first round is no float32 in the next, where the loop carries on float32."""
    return dtype_of(other, facts.keras, {carried: "float32"}) not in ("float32", None)
