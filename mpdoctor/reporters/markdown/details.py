"""The folded parts of a Markdown report: magnitudes before an overflow, traceback, optimizers, skipped stages."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import TensorFacts, TrainingFacts
from mpdoctor.facts.written_numbers import magnitude_text
from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.markdown.escaping import block, code, folded, prose, table
from mpdoctor.reporters.printable import place_text
from mpdoctor.reporters.text.style import Style
from mpdoctor.reporters.text.targets import about, broken, not_done
from mpdoctor.reporters.text.training import frames_of_culprit

MOST = 12


def details(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    for probe in diagnosis.probes:
        yield from _training(probe.training, look)
    made = [line for _, model in diagnosis.models[:MOST] for line in _model(model, look)]
    if made:
        yield folded("Models, optimizers and data", *made)
    undone = [f"- {prose(line, 400)}" for line in not_done(diagnosis, look)[:MOST]]
    undone += [f"- **mpdoctor itself:** {prose(line, 400)}" for line in broken(diagnosis, look)[:MOST]]
    if undone:
        yield folded("What was not done", "\n".join(undone))
    yield prose(look.dot.join(about(diagnosis, look)[:MOST]))


def _training(training: TrainingFacts, look: Style) -> Iterator[str]:
    frames = frames_of_culprit(training)
    if frames:
        rows = [_frame(frame, look) for frame in frames]
        headings = ("Layer", "Dtype", "Largest", "Smallest", "Near the limit", "Subnormal", "Not finite")
        yield folded("The numbers that led to it", table(headings, rows))
    if training.failure:
        yield folded("The error", *_failure(training.failure, look))


def _frame(frame: TensorFacts, look: Style) -> tuple[str, ...]:
    again = f" (call {frame.call})" if frame.call > 1 else ""
    shares = (f"{share:.0%}" for share in (frame.near_limit, frame.subnormal, frame.nonfinite))
    layer = code(f"{look.name(frame.layer, 60)} ({look.name(frame.layer_class, 30)}){again}")
    largest = "inf or NaN" if frame.nonfinite > 0 else magnitude_text(frame.largest)
    return (layer, code(frame.dtype, 20), largest, magnitude_text(frame.smallest), *map(prose, shares))


def _failure(failure: FailureFacts, look: Style) -> Iterator[str]:
    lines = []
    for frame in failure.frames[-MOST:]:
        lines.append(
            f"{place_text(Location(look.name(frame.path, 100), frame.line))} in {look.name(frame.function, 60)}"
        )
        lines.append(f"    {look.name(frame.text, 200)}")
    said = ": ".join(filter(None, (look.name(failure.exception, 80), failure.message[:2000])))
    yield block([*lines, *said.split("\n")])


def _model(model: ModelFacts, look: Style) -> Iterator[str]:
    optimizers = f" {look.arrow} ".join(filter(None, (code(link.class_name, 60) for link in model.optimizer)))
    parts = [code(model.name, 60), code(model.class_name, 60), f"policy {code(model.policy, 40)}"]
    parts += [f"optimizer {optimizers}"] if optimizers else []
    parts += [f"loss {code(model.loss, 80)}"] if model.loss else []
    yield f"- {', '.join(filter(None, parts))}"
    for array in model.data[:MOST]:
        sizes = ", ".join("?" if size is None else str(size) for size in array.shape)
        yield f"  - {prose(array.role)}: {code(array.container, 40)} {code(f'{array.dtype} ({sizes})', 60)}"
