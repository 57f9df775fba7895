"""What went into the operation that broke, for the line of source that ran it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.training import OperationFacts, TrainingFacts
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.reporters.text.style import Style, number_text


def numbers_at(finding: Finding, diagnosis: Diagnosis, look: Style) -> str:
    """ "Square in float16: numbers up to 812 go in, inf comes out" for a finding that was seen while training, in the
    line of the operation that broke; "" of any other, and where what went in was not finite."""
    if finding.location is None or not _is_of_training(finding):
        return ""
    for probe in diagnosis.probes:
        if finding.model in (None, probe.training.model.id):
            for operation in _broken(probe.training):
                if operation.location is not None and _same_line(operation, finding):
                    return _numbers(operation, look)
    return ""


def _is_of_training(finding: Finding) -> bool:
    return finding.stage == "training" or any(seen.stage == "training" for seen in finding.also_seen)


def _broken(training: TrainingFacts) -> Iterator[OperationFacts]:
    culprit, gradient = training.culprit, training.gradient_culprit
    found = (culprit and culprit.operation, training.loss_culprit, gradient and gradient.operation)
    yield from filter(None, found)


def _same_line(operation: OperationFacts, finding: Finding) -> bool:
    places = (operation.location, finding.location)
    ran, told = ((place.path, place.cell, place.line) if place else None for place in places)
    return ran == told


def _numbers(operation: OperationFacts, look: Style) -> str:
    if operation.given or not math.isfinite(operation.largest):
        return ""
    zero = ", 0 among them," if operation.holds_zero else ""
    went_in = f"numbers up to {number_text(operation.largest)}{zero} go in" if operation.largest else "0 goes in"
    wide = operation.in_float32
    in_float32 = f", {number_text(wide)} in float32" if wide is not None and math.isfinite(wide) else ""
    name, dtype, result = (look.name(text, 40) for text in (operation.name, operation.dtype, operation.result))
    return f"{name} in {dtype}: {went_in}, {result} comes out{in_float32}"
