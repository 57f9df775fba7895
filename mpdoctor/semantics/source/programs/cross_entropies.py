"""The cross-entropies that a program computes of probabilities, as losses and metrics, functions and objects."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.knowledge.api_names import CROSS_ENTROPIES, public_name
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Known, Value, known, options
from mpdoctor.semantics.source.programs.losses_and_metrics import prediction_of

CLASSES = tuple(name.title().replace("_", "") for name in CROSS_ENTROPIES)
PLACES = ("keras.losses", "keras.metrics", "keras.backend")


def name_of_cross_entropy(loss: Value) -> str:
    """Keras' function name for a cross-entropy, however the program names it; "" for another loss."""
    if isinstance(loss, Known):
        return str(loss.value)
    callee = loss.callee if isinstance(loss, Call) else loss
    name = public_name(callee.name).rpartition(".")[2] if isinstance(callee, Api) else ""
    return name if name in CROSS_ENTROPIES else dict(zip(CLASSES, CROSS_ENTROPIES, strict=True)).get(name, "")


@lru_cache(maxsize=1)
def calls_with_probabilities(facts: SourceFacts) -> tuple[Call, ...]:
    """The calls of a cross-entropy, a function or an object, without `from_logits=True`."""
    functions = facts.calls_of(*(f"{place}.{name}" for place in PLACES for name in CROSS_ENTROPIES))
    return (
        *(call for call in functions if not call.open and _not_from_logits(call, 2)),
        *(call for call in facts.object_calls if takes_probabilities(call.callee)),
    )


def prediction_given(call: Call) -> Value | None:
    if isinstance(call.callee, Api) and public_name(call.callee.name).startswith("keras.backend."):
        return call.argument(1, "output")
    return prediction_of(call)


def _is_cross_entropy(value: Value) -> bool:
    if not isinstance(value, Api):
        return False
    place, _, name = public_name(value.name).rpartition(".")
    return place in PLACES and name in CROSS_ENTROPIES


def takes_probabilities(loss: Value) -> bool:
    """Whether a loss that compile() may be given is a cross-entropy of probabilities."""
    if isinstance(loss, Known):
        return loss.value in CROSS_ENTROPIES
    if isinstance(loss, Call) and isinstance(loss.callee, Api):
        place, _, name = public_name(loss.callee.name).rpartition(".")
        return place == "keras.losses" and name in CLASSES and not loss.open and _not_from_logits(loss, 0)
    return _is_cross_entropy(loss)


def _not_from_logits(call: Call, position: int) -> bool:
    given = call.argument(position, "from_logits")
    return given is None or (known(given) is False and len(options(given)) == 1)
