"""Where a distribution of TensorFlow Probability's refuses tensors: of two dtypes, and of 16 bits."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.dtypes.distributions import OF_TWO, PARAMETERS, SAMPLED_BY_GAMMA, TAKING
from mpdoctor.program.dtypes.distributions import is_distribution, is_read_in_another_dtype, parameters_of_distribution
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.operands.float32_meetings import is_wide
from mpdoctor.semantics.source.operands.mixed_operands import is_half
from mpdoctor.semantics.source.operands.operand_words import float32_side
from mpdoctor.semantics.wording import place_of


def refused_by_distributions(facts: SourceFacts) -> Iterator[tuple[str, str, Location]]:
    """(message, help, location) for each call that makes a distribution, or calls its methods, with operands of float32
    and of 16 bits: tensors, weights or other distributions."""
    for call, met in _met_in_distributions(facts):
        if asks_for_dtype(call.context):
            continue
        wide = [value for value in met if _is_float32(facts, call, value)]
        half = [value for value in met if value not in wide and is_half(facts, value, call.context)]
        if wide and half:
            yield (*_problem_and_help(facts, call, wide[0], half[0]), call.location)


def refused_samples(facts: SourceFacts) -> Iterator[tuple[str, str, Location]]:
    """(message, help, location) for each call that samples from a 16-bit distribution whose samples have no 16-bit
    kernel."""
    for call in facts.method_calls("sample"):
        made = call.receiver
        if not is_call_of(made, *SAMPLED_BY_GAMMA) or not isinstance(made, Call) or asks_for_dtype(call.context):
            continue
        if is_half(facts, made, call.context):
            yield (
                f"`{made.method}` is made of 16-bit tensors, and `sample` of it calls `tf.random.gamma`, which has no "
                "16-bit kernel: this line raises under a mixed policy.",
                f"Make `{made.method}` of float32 tensors: cast what it is made with, `tf.cast(…, tf.float32)`.",
                call.location,
            )


def _met_in_distributions(facts: SourceFacts) -> Iterator[tuple[Call, tuple[Value, ...]]]:
    for call in facts.calls_of(*PARAMETERS):
        yield call, parameters_of_distribution(call)
    for call in facts.calls_of(OF_TWO):
        yield call, call.arguments(slice(0, 2))
    for call in facts.method_calls(*TAKING):
        if call.receiver is not None and call.args and is_distribution(call.receiver):
            yield call, (call.receiver, call.args[0])


def _is_float32(facts: SourceFacts, call: Call, value: Value) -> bool:
    """Whether the distribution takes it for float32: also a weight that says so and is read in 16 bits."""
    return is_wide(facts, value, call.context) or _is_misread_weight(facts, call, value)


def _is_misread_weight(facts: SourceFacts, call: Call, value: Value) -> bool:
    is_given = value in parameters_of_distribution(call) and is_read_in_another_dtype(value, facts.keras)
    return is_given and is_half(facts, value, call.context)


def _problem_and_help(facts: SourceFacts, call: Call, wide: Value, half: Value) -> tuple[str, str]:
    """The message and the help of a finding about such a call."""
    what = "distribution" if is_distribution(half) else "tensor"
    is_misread = _is_misread_weight(facts, call, wide)
    problem = (
        f"{_float32_side(facts, call, wide, is_misread)} and meets a 16-bit {what} in `{call.method}`, which takes one "
        "dtype: this line raises under a mixed policy."
    )
    if is_misread:
        return problem, "Cast both to float32, `tf.cast(…, tf.float32)`: of a cast weight the dtype is right."
    if is_distribution(half):
        cast = "Make the 16-bit distribution of float32 tensors: cast what it is made with, `tf.cast(…, tf.float32)`"
    else:
        cast = "Cast the 16-bit tensor to float32, `tf.cast(…, tf.float32)`"
    return problem, f"{cast}. Densities and divergences need float32's range and digits."


def _float32_side(facts: SourceFacts, call: Call, wide: Value, is_misread: bool) -> str:
    """The float32 operand as the beginning of a sentence: `tf.ones(3)` is float32."""
    if is_misread:
        place = place_of(facts, wide.location, call.location)
        return f"The weight made in {place} says float32 where a distribution asks for its dtype,"
    side = float32_side(facts, call, wide)
    return f"{side.replace('The tensor', 'The distribution') if is_distribution(wide) else side} is float32"
