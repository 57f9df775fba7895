"""Sentences on remedies of precision: what was tried on the batches of the failing training, and the result. A remedy
that failed is not advised, and one that was not tried is named as such."""

from __future__ import annotations

from pathlib import PurePath

from mpdoctor.facts.location import line_in_words
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.semantics.live.second_training import contradiction, remedies_to_report, trained_again
from mpdoctor.semantics.wording import listed

MOST_NAMED = 6
NOT_TRIED = "(Not tried.)"  # marks advice that was not tried
COUNTED = {1: "it", 2: "both", 3: "all three", 4: "all four"}


def after_trials(training: TrainingFacts, text: str, beside: str = "", *, in_layers: bool = True) -> str:
    """The help of a finding. `text` is its help where nothing was tried; `beside` an alternative to more precision, as
    a clause that begins with a verb; `in_layers` tells whether `text` is about layers."""
    remedies = [remedy for remedy in remedies_to_report(training) if remedy.kind != "smaller-scale"]
    healed = [remedy for remedy in remedies if remedy.tried == "healed"]
    if healed:
        sentence = " Or: ".join(_healed(training, remedy) for remedy in healed)
        return f"{sentence}{_without_a_line(training, healed)}{untried(beside)}"
    failed = [remedy for remedy in remedies if remedy.tried == "failed"]
    if failed:
        if not in_layers:
            sentence = "; ".join(_reason_of_failure(training, remedy) for remedy in failed)
            return f"{text} That was not tried. Tried outside of the loss, without success: {sentence}."
        sentence = " ".join(_failed(training, remedy, is_first=remedy is failed[0]) for remedy in failed)
        raising = [remedy.reason for remedy in remedies if remedy.tried == "not-tried" and remedy.layers]
        of_layers = "".join(f" Layers in float32 could not be tried: {reason.rstrip('.')}." for reason in raising)
        return f"{sentence}{of_layers}{untried(beside)}"
    not_tried = next(iter(remedies), None)
    return f"{text} {NOT_TRIED}" if not_tried is None else f"{text} (Not tried: {not_tried.reason}.)"


def untried(beside: str) -> str:
    """The alternative, a clause that begins with a verb, as a sentence to add; "" if there is none."""
    return f" Not tried: {beside}." if beside else ""


def after_scale_trial(training: TrainingFacts, text: str) -> str:
    """The help of a finding on a fixed loss scale. `text` ends with advising a smaller one."""
    tried = next((remedy for remedy in training.remedies if remedy.kind == "smaller-scale"), None)
    if tried is None:
        return f"{text}. {NOT_TRIED}"
    if tried.scale is not None:
        return f"{text}: with {tried.scale:g}, and with four times as much, {_finite(tried)} finite (tried)."
    return f"{text}. ({'Tried' if tried.tried == 'failed' else 'Not tried'}: {tried.reason}.)"


def _finite(remedy: RemedyFacts) -> str:
    """The sentence up to the word "finite"."""
    others = remedy.batches - 1
    further = "" if not others else " and one other" if others == 1 else f" and {others} others"
    return f"this batch{further} {'are' if others else 'is'}"


def _healed(training: TrainingFacts, remedy: RemedyFacts) -> str:
    finite = _finite(remedy)
    if remedy.kind == "float32-loss":
        return f"Compute the loss in float32, `tf.cast(predictions, tf.float32)`: then {finite} finite (tried)."
    names = listed([_named(training, remedy, place) for place in range(len(remedy.layers))], MOST_NAMED)
    number = COUNTED.get(len(remedy.layers), f"all {len(remedy.layers)}")
    alone = ""
    if remedy.not_enough:
        fewer = listed([f"`{path}`" for path in remedy.not_enough], MOST_NAMED)
        at = "" if training.initial_scale is None else ", even at a loss scale of 1"  # at which it was tried
        alone = f" {fewer} alone {'is' if len(remedy.not_enough) == 1 else 'are'} not enough{at}."
        if remedy.reason:
            alone = f" With {fewer} alone, {remedy.reason}, more than a quarter of float16's largest number."
    again = f" {outcome}" if (outcome := trained_again(training)) else ""
    return f'Give {names} dtype="float32": with {number} in float32 {finite} finite (tried).{alone}{again}'


def _reason_of_failure(training: TrainingFacts, remedy: RemedyFacts) -> str:
    """The reason why it failed, with the layers where a second training contradicts the trials."""
    contradicted = _is_contradicted(training, remedy)
    return f"with {_all_named(training, remedy)} in float32, {remedy.reason}" if contradicted else remedy.reason


def _is_contradicted(training: TrainingFacts, remedy: RemedyFacts) -> bool:
    """Whether it made the batches finite, but not the second training."""
    return bool(contradiction(training)) and remedy not in training.remedies


def _all_named(training: TrainingFacts, remedy: RemedyFacts) -> str:
    return listed([_named(training, remedy, place) for place in range(len(remedy.layers))], MOST_NAMED)


def _named(training: TrainingFacts, remedy: RemedyFacts, place: int) -> str:
    """A layer of the remedy with its line, such as "`boost` (line 12)"."""
    path, location = remedy.layers[place], remedy.locations[place]
    parts = " and the layer in it" if path in remedy.with_parts else ""
    if location is None:
        return f"`{path}`{parts}"
    shown = training.model.call.location
    in_file = "" if shown is None or shown.path == location.path else f"{PurePath(location.path).name}, "
    return f"`{path}`{parts} ({in_file}{line_in_words(location)})"


def _without_a_line(training: TrainingFacts, healed: list[RemedyFacts]) -> str:
    """What a user can do about layers that only a library makes, and to which no line of theirs gives a dtype."""
    of_library = {layer.path for layer in training.model.layers if layer.made_by}
    is_of_library = all(remedy.layers and of_library.issuperset(remedy.layers) for remedy in healed)
    if not is_of_library or training.policy != "mixed_float16":
        return ""
    return (
        " A library makes them: where you cannot give them a dtype, train under mixed_bfloat16, which has the range of "
        "float32."
    )


def _failed(training: TrainingFacts, remedy: RemedyFacts, is_first: bool) -> str:
    if remedy.kind == "float32-loss":
        return f"A loss in float32 does not help{'' if is_first else ' either'} (tried): {remedy.reason}."
    if _is_contradicted(training, remedy):
        return (
            f"{_all_named(training, remedy)} in float32 {'are' if len(remedy.layers) > 1 else 'is'} not enough "
            f"(tried): {remedy.reason}."
        )
    if not remedy.layers:
        return f"float32 layers do not help: {remedy.reason}."
    if len(remedy.layers) == 1:
        return f"`{remedy.layers[0]}` in float32 does not help (tried): {remedy.reason}."
    return f"float32 layers are no remedy here (tried): {remedy.reason}."
