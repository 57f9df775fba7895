"""Names the part that raised an error: a callback, metric, loss, learning-rate schedule or input pipeline."""

from __future__ import annotations

from mpdoctor.facts.failure import FailureFacts, PartFacts
from mpdoctor.facts.location import Location

_METHODS = {
    "metric": "The metric",
    "loss": "The loss",
    "optimizer": "The optimizer",
    "schedule": "The learning-rate schedule",
    "initializer": "The initializer",
    "constraint": "The constraint",
    "regularizer": "The regularizer",
}


def subject_from_failure(failure: FailureFacts) -> str:
    """ "The callback `Loud` raises in on_epoch_end", the beginning of a sentence; "" where it is none of these."""
    part = failure.part
    if failure.callback:
        callback, _, method = failure.callback.partition(".")
        return f"The callback `{callback}` raises in {method}{_inner(failure, method)}"
    if part is None or part.kind == "saved-model":
        return ""
    if part.kind == "configuration":
        asked = f", which `{part.asked_by}` calls," if part.asked_by else ""
        return f"`{part.called}`{asked} raises"
    if part.kind == "generator":
        return f"The generator `{part.name}`, which yields the training data, raises"
    if part.kind == "pipeline":
        return f"The input pipeline's function `{part.name}` raises" if part.name else "The input pipeline raises"
    if part.kind == "data":
        return f"`{part.called}`, which yields the training batches, raises"
    if part.result_refused:
        return f"The result of {_lower(named_part(part))} cannot be assigned to its weight"
    called = f" in {part.method}" if part.method else ""
    return f"{named_part(part)}{_phrase_of_layer(failure)} raises{called}{_inner(failure, part.method or part.name)}"


def named_part(part: PartFacts) -> str:
    """The part in words, such as "The metric `Dice`"."""
    return f"{_METHODS[part.kind]} `{part.name}`" if part.name else _METHODS[part.kind]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def place_of_part(failure: FailureFacts) -> Location | None:
    """The line to report: the one that makes the part, if the part is a library's or did not raise itself; else the
    line that raised."""
    part = failure.part
    if part is not None and part.result_refused:
        return part.made_at or failure.location
    return part.made_at or failure.location if part is not None and not part.own else failure.location


def _phrase_of_layer(failure: FailureFacts) -> str:
    return f" of layer `{failure.layer}`" if failure.layer else ""


def _inner(failure: FailureFacts, method: str) -> str:
    """ ", in `function`" for the user's function that raised, unless that is the method itself."""
    part, function = failure.part, failure.failing_function
    if part is not None and part.kind == "configuration" and failure.callback:
        return f", in `{part.called}`"
    if part is not None and not part.own:
        return ""
    return f", in `{function}`" if function and function not in (method, "<module>", "<lambda>") else ""
