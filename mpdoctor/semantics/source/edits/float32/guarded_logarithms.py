"""What helps where float16 loses the digits of a probability before its logarithm is taken, as advice and as edits."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Fix
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, options, walk
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.float32.outputs import output_in_float32
from mpdoctor.semantics.source.layers.output_activations import activations_of
from mpdoctor.semantics.source.layers.output_layers import output_layers
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.epsilon_guards import LOG, Guard
from mpdoctor.semantics.source.texts.written import argument_at, callee_text, text_of
from mpdoctor.semantics.wording import listed, place_of, text_at

NO_DIGITS = "a float16 softmax is 0 below 3e-8, and no epsilon restores that"
CAST_IT = "Compute this in float32 (`tf.cast(…, tf.float32)`)"
IN_ONE_STEP = (
    f"Compute the logarithm of the softmax in one step, from the logits: `tf.nn.log_softmax(logits)`; {NO_DIGITS}."
)


def is_log_of_softmax(facts: SourceFacts, guard: Guard) -> bool:
    """Whether a guard keeps a softmax from 0, or what was taken out of one, before the logarithm."""
    return next(_softmaxes(facts, guard), None) is not None


def advice_on_softmax(facts: SourceFacts, guard: Guard) -> str:
    """What to write in the place of the logarithm of a softmax, in the names of the program where they are short."""
    softmax = next(_softmaxes(facts, guard))
    if isinstance(softmax.callee, Api):
        given = argument_at(facts, softmax.location, 0)
        logits = text_of(facts, given) if given is not None else None
        logarithm = text_at(facts, guard.user.location)
        is_at_hand = softmax.context.function is guard.user.context.function and _is_whole(softmax, guard)
        if not logits or "\n" in logits or not logarithm or not is_at_hand:
            return IN_ONE_STEP
        return f"Write `{_log_softmax(facts, softmax)}({logits})` in the place of `{logarithm}`: {NO_DIGITS}."
    layers = _layers_with_softmax(facts, softmax)
    shown = [f"`{text_at(facts, layer.location) or layer.method}`" for layer in layers]
    if not shown:
        return f'Give the layer with the softmax `dtype="float32"`: {NO_DIGITS}.'
    place = f" ({place_of(facts, layers[0].location, guard.user.location)})" if len(layers) == 1 else ""
    return f'Give {listed(shown)}{place} `dtype="float32"`: {NO_DIGITS}.'


def softmax_in_float32(facts: SourceFacts, guard: Guard) -> Fix | None:
    """The edit that makes the layers with the softmax in float32; None where it is no layer's."""
    softmax = next(_softmaxes(facts, guard))
    if isinstance(softmax.callee, Api):
        return None
    edits = [output_in_float32(facts, layer) for layer in _layers_with_softmax(facts, softmax)]
    return (
        unsafe_fix('Give the layer dtype="float32"', [edit for each in edits for edit in each or ()])
        if all(edits)
        else None
    )


def way_to_keep_below_one(facts: SourceFacts, guard: Guard) -> str:
    """The advice, a clause, where a bound such as 1 - 1e-7 is 1.0. In a loss all that it is given is to be float32: a
    cast of the bounded value alone would meet the others, and Keras 2 casts the labels to the predictions' dtype."""
    function, precision = guard.user.context.function, precision_of(facts)
    given = [part for part in walk(guard.guarded) if isinstance(part, Parameter) and part.function is function]
    if function is None or precision.runs_in_call(guard.user.context):
        return CAST_IT
    if not any(precision.half(part, Context(function=function)) for part in given):
        return CAST_IT
    names = listed([f"`{name}`" for name in function.parameters if name != "self"])
    return (
        f'Give the model\'s last layer `dtype="float32"`, or cast {names} to float32 at the start of `{function.name}`'
    )


def _softmaxes(facts: SourceFacts, guard: Guard) -> Iterator[Call]:
    for value in walk(guard.guarded) if guard.kind == LOG else ():
        if isinstance(value, Call) and _is_softmax(facts, value):
            yield value


def _is_softmax(facts: SourceFacts, value: Call) -> bool:
    if isinstance(value.callee, Api):
        return public_name(value.callee.name).rpartition(".")[2] == "softmax"
    return activations_of(facts, value) == {"softmax"}


def _is_whole(softmax: Call, guard: Guard) -> bool:
    """Whether the guarded value is the softmax itself with the number, and nothing taken out of it."""
    parts = [option for part in guard.guarded.parts for option in options(part)]
    return any(part is softmax for part in parts)


def _log_softmax(facts: SourceFacts, softmax: Call) -> str:
    written = callee_text(facts, softmax.location)
    owner = written.rpartition(".")[0]
    return f"{owner}.log_softmax" if owner.endswith(("nn", "ops")) else "tf.nn.log_softmax"


def _layers_with_softmax(facts: SourceFacts, output: Call) -> list[Call]:
    """The calls that made the last layers of the model that gives this output, or the layer that does."""
    made = output.callee
    if not isinstance(made, Call):
        return []
    return output_layers(facts, made) or [made]
