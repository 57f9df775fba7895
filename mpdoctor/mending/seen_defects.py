"""Proposals against defects that the running program showed, at the line that was running."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.model import OptimizerFacts
from mpdoctor.facts.training import OperationFacts
from mpdoctor.finding import Diagnosis, Edit, Finding
from mpdoctor.mending.answers import Answer
from mpdoctor.mending.draft import Proposal
from mpdoctor.mending.live_layers import LiveLayers, SourceAt
from mpdoctor.semantics.live.broken_operations import BELOW_ZERO
from mpdoctor.semantics.source.edits.kept_dtypes import average_in_float32, class_kept_in_float32
from mpdoctor.semantics.source.edits.loops.seen_defects import (
    cast_where_they_met,
    clipped_inside,
    kept_above_zero,
    kept_from_zero,
    unscaled_once,
    wrapped_once,
    written_in_float32,
)
from mpdoctor.semantics.source.edits.numpy_calls import REFUSED, given_in_float32
from mpdoctor.semantics.source.edits.own_calls import cast_back

# Two dtypes met where no layer was being called.
OF_TRAINING_CODE = ("MP505", "MP901")
# What ended the program is told in the words of what raised it.
OF_ERRORS = ("MP002", "MP901")
# What a variable keeps over many steps; where an optimizer divides by it, float32 has the epsilon as well.
OF_AVERAGES, OF_EPSILONS = ("MP220",), ("MP502",)
OWN_OPTIMIZER = "own_optimizer"  # in the evidence: the class whose step divides
# A layer's result, which stays float32 wherever its layer computes in float32.
OF_RETURNED = ("MP218",)


def repeated_steps_removed(finding: Finding, optimizers: list[OptimizerFacts], source_at: SourceAt) -> Iterator[Answer]:
    """Proposals against a wrapper, an unscaling or a clipping too many, which the running program showed and its source
    leaves in doubt."""
    place = finding.location
    facts = source_at(place.path) if place is not None and _is_seen_running(finding) else None
    if facts is None or place is None:
        return
    titled_edits = None
    if finding.code == "MP306":
        titled_edits = wrapped_once(facts, place)
    elif finding.code == "MP403":
        titled_edits = unscaled_once(facts, place)
    elif finding.code == "MP405":
        inner = {link.made_at: link.class_name for link in optimizers if not link.is_wrapper and link.made_at}
        if len(inner) == 1:
            ((made_at, made),) = inner.items()
            titled_edits = clipped_inside(facts, place, made_at, made) if source_at(made_at.path) is facts else None
    if titled_edits is not None:
        title, edits = titled_edits
        yield Answer(finding, (Proposal(title, safe=False, code=finding.code, edits=edits),))


def _is_seen_running(finding: Finding) -> bool:
    """Whether the running program showed the defect, alone or beside its source."""
    return any(stage != "source" for stage in (finding.stage, *(seen.stage for seen in finding.also_seen)))


def returned_value_cast(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    """A cast of the float32 that the user's own layer returns though it computes in 16 bits."""
    layer = making.layers.get(finding.layer or "") if finding.code in OF_RETURNED else None
    home = layer.class_location if layer is not None else None
    facts = making.source_at(home.path) if home is not None else None
    titled_edits = cast_back(facts, home.line) if facts is not None and home is not None else None
    if titled_edits is not None:
        title, edits = titled_edits
        yield Answer(finding, (Proposal(title, safe=False, code=finding.code, edits=edits),))


def mixed_operands_cast(finding: Finding, source_at: SourceAt) -> Iterator[Answer]:
    """A cast where a 16-bit and a float32 tensor are combined in the training code, outside of its layers."""
    place, dtypes = finding.location, finding.evidence.get("dtypes")
    facts = source_at(place.path) if place is not None and finding.code in OF_TRAINING_CODE else None
    if facts is None or place is None or finding.layer is not None or not isinstance(dtypes, dict):
        return
    titled_edits = cast_where_they_met(facts, place, dtypes)
    if titled_edits is not None:
        title, edits = titled_edits
        yield Answer(finding, (Proposal(title, safe=True, code=finding.code, edits=edits),))  # the line raised before


def numpy_given_float32(finding: Finding, source_at: SourceAt) -> Iterator[Answer]:
    """float32 arrays for NumPy's linear algebra, which refuses float16: in a callback, a metric, behind a training."""
    place = finding.location
    facts = source_at(place.path) if place is not None and finding.code in OF_ERRORS else None
    if facts is None or place is None or REFUSED not in str(finding.evidence.get("error")):
        return
    titled_edits = given_in_float32(facts, place)
    if titled_edits is not None:
        title, edits = titled_edits
        yield Answer(finding, (Proposal(title, safe=True, code=finding.code, edits=edits),))  # the line raised before


def kept_in_float32(finding: Finding, source_at: SourceAt) -> Iterator[Answer]:
    """float32 for a moving average, or for all that its class names in 16 bits; the latter for what an optimizer of
    the program's divides by, too."""
    place = finding.location
    facts = source_at(place.path) if place is not None and finding.code in OF_AVERAGES + OF_EPSILONS else None
    if facts is None or place is None:
        return
    if finding.code in OF_AVERAGES:
        for made in (seen for seen in finding.also_seen if seen.code == finding.code):
            made_in = source_at(made.path) if made.path else None
            if made_in is not None and made.line is not None:
                yield from _answer(finding, average_in_float32(facts, place, made_in, made.line))
        yield from (replace(one, is_last=True) for one in _answer(finding, class_kept_in_float32(facts, place)))
    elif finding.evidence.get(OWN_OPTIMIZER):
        yield from _answer(finding, class_kept_in_float32(facts, place))


def cast_by_name_in_float32(finding: Finding, diagnosis: Diagnosis, source_at: SourceAt) -> Iterator[Answer]:
    """float32 in the casts by name of the function in which the training broke, as of a loss that casts to float16."""
    for operation in _broken_operations(finding, diagnosis):
        facts = source_at(operation.location.path) if operation.location is not None else None
        if facts is not None and operation.location is not None and operation.dtype in HALF:
            yield from _answer(finding, written_in_float32(facts, operation.location))
            return


def operation_kept_from_zero(finding: Finding, diagnosis: Diagnosis, source_at: SourceAt) -> Iterator[Answer]:
    """A small number under a root or a logarithm of 0, or the least that it is of where it is of a negative number, on
    the line of the operation where the training broke."""
    for operation in _broken_operations(finding, diagnosis):
        facts = source_at(operation.location.path) if operation.location is not None else None
        if facts is None or operation.location is None:
            continue
        is_below = operation.name in BELOW_ZERO and operation.result == "nan"
        kept = kept_above_zero if is_below else kept_from_zero
        titled_edits = kept(facts, operation.location, operation.name)
        if titled_edits is not None:
            yield from _answer(finding, titled_edits)
            return


def _broken_operations(finding: Finding, diagnosis: Diagnosis) -> list[OperationFacts]:
    """The operations of the finding's name that broke its training, with their lines."""
    trainings = [probe.training for probe in diagnosis.probes if probe.training.model.id == finding.model]
    culprits = [training.gradient_culprit.operation for training in trainings if training.gradient_culprit is not None]
    culprits += [training.loss_culprit for training in trainings] + [
        training.culprit.operation for training in trainings if training.culprit
    ]
    named = finding.evidence.get("operation")
    return [each for each in culprits if each is not None and each.name == named and each.location is not None]


def _answer(finding: Finding, titled_edits: tuple[str, tuple[Edit, ...]] | None) -> Iterator[Answer]:
    if titled_edits is not None:
        title, edits = titled_edits
        yield Answer(finding, (Proposal(title, safe=False, code=finding.code, edits=edits),))
