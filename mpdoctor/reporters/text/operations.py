"""The operands of the operation that broke, shown under the line of source that ran it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.location import shown_location
from mpdoctor.facts.training import OperationFacts, TrainingFacts
from mpdoctor.facts.written_numbers import magnitude_text
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.reporters.text.style import Style


def numbers_at(finding: Finding, diagnosis: Diagnosis, look: Style) -> str:
    """ "Square in float16: numbers up to 812 go in, inf comes out" for a finding that was seen while training, in the
    line of the operation that broke; "" of any other, and where what went in was not finite."""
    if finding.location is None or not _is_of_training(finding):
        return ""
    for probe in diagnosis.probes:
        if finding.model in (None, probe.training.model.id):
            for operation in _broken_operations(probe.training):
                if operation.location is not None and _same_line(operation, finding):
                    return _numbers(operation, look)
    return ""


def named_values(finding: Finding, look: Style) -> str:
    """ "largest |h| 412, |self.w| 0.31" for the line that a finding shows; "" where none of its values is known."""
    named = finding.evidence.get("operands")
    if not isinstance(named, dict):
        return ""
    parts = [f"|{look.name(name, 40)}| {magnitude_text(value)}" for name, value in named.items() if _is_number(value)]
    return f"largest {', '.join(parts)}" if parts else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_of_training(finding: Finding) -> bool:
    return finding.stage == "training" or any(seen.stage == "training" for seen in finding.also_seen)


def _broken_operations(training: TrainingFacts) -> Iterator[OperationFacts]:
    culprit, gradient = training.culprit, training.gradient_culprit
    operations = (culprit and culprit.operation, training.loss_culprit, gradient and gradient.operation)
    yield from filter(None, operations)


def _same_line(operation: OperationFacts, finding: Finding) -> bool:
    if operation.location is None or finding.location is None:
        return operation.location is finding.location
    ran, shown = shown_location(operation.location), finding.location
    return (ran.path, ran.cell, ran.line) == (shown.path, shown.cell, shown.line)


def _numbers(operation: OperationFacts, look: Style) -> str:
    if operation.given or not math.isfinite(operation.largest):
        return ""
    wide = operation.in_float32
    in_float32 = f", {magnitude_text(wide)} in float32" if wide is not None and math.isfinite(wide) else ""
    name, dtype, result = (look.name(text, 40) for text in (operation.name, operation.dtype, operation.result))
    return f"{name} in {dtype}: {_went_in(operation, look)}, {result} comes out{in_float32}"


def _went_in(operation: OperationFacts, look: Style) -> str:
    """The operands by their names on the source line, where it has some: "largest |h| 412 goes in"."""
    if operation.operands:
        named = [f"|{look.name(operand.name, 40)}| {magnitude_text(operand.largest)}" for operand in operation.operands]
        return f"largest {', '.join(named)} {'goes' if len(named) == 1 else 'go'} in"
    zero = ", 0 among them," if operation.holds_zero else ""
    return f"numbers up to {magnitude_text(operation.largest)}{zero} go in" if operation.largest else "0 goes in"
