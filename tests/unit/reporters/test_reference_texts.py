"""What 16 bits lose, in the words of every report; and written to JSON and read back."""

from __future__ import annotations

import dataclasses
import json

import pytest
from own_schemas import assert_fits
from samples import diagnosis, good_steps, model, training

from mpdoctor.facts.divergence import DivergenceFacts, TriedLayer
from mpdoctor.facts.reference import ComparedStep, LayerRange, ReferenceFacts, ScaleRoom, VariableFidelity, cosine_text
from mpdoctor.finding import Probe, Verdict
from mpdoctor.reporters import html, markdown, terminal
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.reporters.text.headline import headline_from_diagnosis
from mpdoctor.reporters.text.reference import lines
from mpdoctor.reporters.text.style import Style

pytestmark = pytest.mark.fast
STYLE = Style(blocks=False)


def variable(path: str, cosine: float | None, norm: float = 0.5, flushed: float = 0.0) -> VariableFidelity:
    return VariableFidelity(path, 64, flushed, 0.0, cosine, 1.0, norm)


def step(cosine: float | None, *variables: VariableFidelity, number: int = 0) -> ComparedStep:
    layers = (LayerRange("conv", "float16", 3.5, 1e-5, 0.0, 0.01, None),)
    return ComparedStep("late", number, 2.0**15, cosine, variables, layers)


GOOD = step(0.9997, variable("conv/kernel", 0.98), variable("conv/bias", -0.16, norm=1e-7))
LOST = step(0.9998, variable("conv/kernel", None, flushed=1.0), number=9)
PARTED = DivergenceFacts(
    "float16", (0, 1, 3), (1.0, 0.5, 0.25), (1.0, 0.5, 0.125), (1.0, 0.5, 0.2), (TriedLayer("a", (1.0,), False),)
)
REFERENCES = {
    "room": (
        ReferenceFacts("float16", (GOOD,), ScaleRoom(2.0**9, 2.0**19, 12)),
        ("gradient fidelity 0.9997 (worst: conv/kernel 0.98); step 1 compared", "2^9 to 2^17 on the batches tried"),
    ),
    "flushed": (
        ReferenceFacts("float16", (GOOD, LOST), no_time=True),
        ("0.9997 (worst", "steps 1, 10 compared", "conv/kernel 100%", "the time of --budget was spent"),
    ),
    "no room": (
        ReferenceFacts("float16", (GOOD,), ScaleRoom(2.0**9, 2.0**10, 12, ("a/kernel",), ("b/kernel",))),
        ("none: at 2^11 the gradient of a/kernel overflows; at the scales just below, ", "become 0 of b/kernel"),
    ),
    "never finite": (
        ReferenceFacts("float16", (step(None),), ScaleRoom(None, None, 12, ("a/kernel",))),
        ("no gradient was finite", "at every scale tried a gradient overflows, a/kernel"),
    ),
    "below 1": (ReferenceFacts("float16", (GOOD,), ScaleRoom(2.0**-8, 2.0**2, 12)), ("2^-8 to 2^0",)),
    "loss": (
        ReferenceFacts("float16", (GOOD,), divergence=PARTED),
        ("0.25 in float16, 0.125 in float32: mean of the last 1 of 3 steps",),
    ),
    "loss not compared": (
        ReferenceFacts("float16", (GOOD,), divergence=DivergenceFacts(not_measured="its order is unknown")),
        ("not compared over the training, because its order is unknown",),
    ),
    "TF32": (
        ReferenceFacts("float16", (GOOD,), in_tf32=True),
        ("step 1 compared, with float32 multiplied in TF32 on this GPU",),
    ),
    "not measured": (ReferenceFacts(not_measured="an eager loop"), ("not compared, because an eager loop",)),
}


def probe(reference: ReferenceFacts | None) -> Probe:
    return Probe(dataclasses.replace(training(good_steps()), reference=reference), Verdict.HEALTHY, "fine")


@pytest.mark.parametrize("name", REFERENCES)
def test_the_lines_say_it(name: str) -> None:
    reference, words = REFERENCES[name]
    told = " | ".join(text for _, text in lines(probe(reference).training, STYLE))
    assert [word for word in words if word not in told] == [], told


@pytest.mark.parametrize("name", [*REFERENCES, ""])
def test_it_is_written_and_read_back(name: str) -> None:
    reference = REFERENCES[name][0] if name else None
    written = json_reporter.render(diagnosis(models=(("train.py", model()),), probes=(probe(reference),)))
    (told,) = json.loads(written)["probes"]
    assert (told["reference"] or {"fidelity": None})["fidelity"] == (None if reference is None else reference.fidelity)
    assert_fits(json.loads(written))
    (read,) = diagnosis_from_json(written).probes
    assert read.training.reference == reference
    for render in (terminal.render, markdown.render, html.render):
        shown = render(diagnosis_from_json(written))
        assert ("gradient fidelity" in shown) is (reference is not None and reference.fidelity is not None)
        assert ("an eager loop" in shown) is (name == "not measured")


@pytest.mark.parametrize(
    ("divergence", "told"),
    [(PARTED, [1.0, 0.5, None, 0.125]), (DivergenceFacts(not_measured="its order is unknown"), None), (None, None)],
)
def test_the_loss_in_float32_stands_beside_that_of_each_step(
    divergence: DivergenceFacts | None, told: list[float | None] | None
) -> None:
    examined = probe(ReferenceFacts("float16", (GOOD,), divergence=divergence))
    written = json.loads(json_reporter.render(diagnosis(models=(("train.py", model()),), probes=(examined,))))
    assert_fits(written)
    (read,) = written["probes"]
    found = read["float32_loss"]
    assert (found and found[:4]) == told
    assert found is None or (len(found) == len(read["loss"]) and not any(found[4:]))


def test_the_headline_says_how_near_it_is() -> None:
    told = headline_from_diagnosis(diagnosis(probes=(probe(REFERENCES["room"][0]),)), STYLE)
    assert "verdict healthy, gradient fidelity 0.9997 (worst: conv/kernel 0.98)" in told.whole
    without = headline_from_diagnosis(diagnosis(probes=(probe(None),)), STYLE)
    assert "fidelity" not in without.whole


@pytest.mark.parametrize(
    ("cosine", "text"), [(1.0, "1"), (0.98, "0.98"), (0.99974, "0.9997"), (0.9999974, "0.999997"), (-0.16, "-0.16")]
)
def test_as_many_digits_as_tell_it_from_1(cosine: float, text: str) -> None:
    assert cosine_text(cosine) == text
