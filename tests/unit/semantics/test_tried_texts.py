"""What a finding's help says of remedies that were tried, and of those that were not."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import samples
from own_schemas import assert_fits
from training_facts import broken, culprit, in_loss, on_the_way_back, said

from mpdoctor.facts.location import Location
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import SecondTrainingFacts, StepFacts
from mpdoctor.reporters import html, markdown, terminal
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.semantics.live.prediction_verdict import probe_from_facts

pytestmark = pytest.mark.fast

LAYERS = ("boost", "mix", "norm", "add", "c", "d", "e", "f")
IN_TWO = RemedyFacts(
    "float32-layers",
    "healed",
    ("boost", "mix"),
    (Location("train.py", 12), Location("layers.py", 3)),
    not_enough=("boost",),
    batches=3,
    trials=6,
    seconds=0.5,
)


def healed(layers: int = 1, **more: Any) -> RemedyFacts:
    names = LAYERS[:layers]
    facts = RemedyFacts("float32-layers", "healed", names, tuple(Location("train.py", 12) for _ in names), batches=1)
    return dataclasses.replace(facts, **more)


def loss(tried: Any = "healed", reason: str = "") -> RemedyFacts:
    return RemedyFacts("float32-loss", tried, reason=reason, batches=1)


def not_so(tried: Any, reason: str, layers: int = 1) -> RemedyFacts:
    return RemedyFacts("float32-layers", tried, LAYERS[:layers], (None,) * layers, reason=reason, batches=1)


SUM = broken("Sum")
NEVER_FINITE = not_so("failed", "with all layers in float32 the step is not finite either", 3)


@pytest.mark.parametrize(
    ("code", "facts", "remedies", "help_"),
    [
        (
            "MP904",
            SUM,
            (IN_TWO,),
            'Give `boost` (line 12) and `mix` (layers.py, line 3) dtype="float32": with both in float32 this batch and '
            "2 others are finite (tried). `boost` alone is not enough, even at a loss scale of 1. Not tried: average "
            "instead of summing.",
        ),
        (
            "MP904",
            SUM,
            (dataclasses.replace(IN_TWO, reason="`mix` stays in 16 bits and reaches 1.92e+04"),),
            'Give `boost` (line 12) and `mix` (layers.py, line 3) dtype="float32": with both in float32 this batch and '
            "2 others are finite (tried). With `boost` alone, `mix` stays in 16 bits and reaches 1.92e+04, more than a "
            "quarter of float16's largest number. Not tried: average instead of summing.",
        ),
        (
            "MP904",
            broken("Square"),
            (healed(),),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Not tried: '
            "normalise its input, or use smaller initial weights or a smaller constant.",
        ),
        (
            "MP904",
            SUM,
            (healed(3, batches=2),),
            'Give `boost` (line 12), `mix` (line 12) and `norm` (line 12) dtype="float32": with all three in float32 '
            "this batch and one other are finite (tried). Not tried: average instead of summing.",
        ),
        (
            "MP904",
            SUM,
            (healed(locations=(None,), with_parts=("boost",)),),
            'Give `boost` and the layer in it dtype="float32": with it in float32 this batch is finite (tried). Not '
            "tried: average instead of summing.",
        ),
        (
            "MP904",
            SUM,
            (NEVER_FINITE,),
            "float32 layers are no remedy here (tried): with all layers in float32 the step is not finite either. Not "
            "tried: average instead of summing.",
        ),
        (
            "MP904",
            SUM,
            (not_so("not-tried", "a step of an eager loop cannot be repeated"),),
            'Let this layer compute in float32: give `square` dtype="float32". Or average instead of summing. (Not '
            "tried: a step of an eager loop cannot be repeated.)",
        ),
        (
            "MP907",
            in_loss("Square"),
            (healed(), loss()),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Or: Compute the '
            "loss in float32, `tf.cast(predictions, tf.float32)`: then this batch is finite (tried).",
        ),
        (
            "MP907",
            in_loss("Sum"),
            (not_so("failed", "7 of the 8 layers in 16 bits would have to compute in float32", 7), loss()),
            "Compute the loss in float32, `tf.cast(predictions, tf.float32)`: then this batch is finite (tried). "
            "Not tried: average instead of summing.",
        ),
        (
            "MP907",
            in_loss("Sum"),
            (
                not_so("failed", "no layer of this step computes in 16 bits", 0),
                loss("failed", "with the outputs in float32 the step is not finite either"),
            ),
            "Average instead of summing, or compute it in float32, `tf.cast(x, tf.float32)` before anything is "
            "squared, summed or divided. That was not tried. Tried outside of the loss, without success: no layer of "
            "this step computes in 16 bits; with the outputs in float32 the step is not finite either.",
        ),
        (
            "MP905",
            on_the_way_back(in_float32=1e6),
            (healed(),),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Not tried: '
            "scale down the values that make it so large: targets, class weights, sample weights, the loss's factor.",
        ),
        (
            "MP503",
            SUM,
            (healed(),),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Not tried: '
            "average instead of summing.",
        ),
        ("MP503", SUM, (), "Cast first, `tf.cast(x, tf.float32)`. (Not tried.)"),
    ],
)
def test_the_help_says_what_was_tried_and_what_came_of_it(
    code: str, facts: dict[str, Any], remedies: tuple[RemedyFacts, ...], help_: str
) -> None:
    (finding,) = said(code, **facts, remedies=remedies)
    assert finding.help == help_
    assert finding.remedies == remedies


@pytest.mark.parametrize(
    ("made_by", "policy", "is_said"),
    [
        ("__init__", "mixed_float16", True),
        ("", "mixed_float16", False),
        ("__init__", "mixed_bfloat16", False),
    ],
)
def test_layers_that_a_library_makes(made_by: str, policy: str, is_said: bool) -> None:
    facts = {"model": samples.model(samples.layer("boost", made_by=made_by)), "policy": policy}
    (finding,) = said("MP503", **SUM, **facts, remedies=(healed(locations=(None,)),))
    assert (
        "A library makes them: where you cannot give them a dtype, train under mixed_bfloat16" in finding.help
    ) == is_said


def again(skipped: int = 0, late: bool = False, loss: float = 1.0, **more: Any) -> SecondTrainingFacts:
    """50 steps, of which the first ones are skipped, or the last."""
    skips = range(50 - skipped, 50) if late else range(skipped)
    steps = tuple(StepFacts(8.0, step not in skips, None, loss) for step in range(50))
    facts = SecondTrainingFacts(("boost",), steps, weights_changed=True, weights_finite=True, failing_batch_finite=True)
    return dataclasses.replace(facts, **more)


HOLDS = 'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried).'
INSTEAD = " Not tried: average instead of summing."
NOT_ENOUGH = "`boost` (line 12) in float32 is not enough (tried): finite on these batches; in a second training, "


@pytest.mark.parametrize(
    ("second", "help_", "tried"),
    [
        (again(), f"{HOLDS} In a second training with it, none of 50 steps is skipped.", "healed"),
        (
            again(12),
            f"{HOLDS} In a second training with it, 12 of 50 steps are skipped, the last of them step 12, and the "
            "loss scale ends at 8.",
            "healed",
        ),
        (
            again(1),
            f"{HOLDS} In a second training with it, 1 of 50 steps is skipped, step 1, and the loss scale ends at 8.",
            "healed",
        ),
        (
            SecondTrainingFacts(not_tried="its batches take more than 256 MB"),
            f"{HOLDS} (Not trained again: its batches take more than 256 MB.)",
            "healed",
        ),
        (
            again(steps=again().steps[:4], ended="budget"),
            f"{HOLDS} In a second training with it, there is no verdict yet: only 4 steps seen, 10 are needed: give "
            "it more time with --budget.",
            "healed",
        ),
        (
            again(40),
            f"{HOLDS} In a second training with it, 40 of 50 steps are skipped, the last of them step 40, and the "
            "loss scale ends at 8.",
            "healed",
        ),
        (again(14, late=True), f"{NOT_ENOUGH}14 of 50 steps are still skipped.{INSTEAD}", "failed"),
        (again(loss=math.nan), f"{NOT_ENOUGH}the loss is nan from step 1 on.{INSTEAD}", "failed"),
        (
            again(weights_changed=False),
            f"{NOT_ENOUGH}steps were applied, but no trainable variable changed.{INSTEAD}",
            "failed",
        ),
        (
            again(failing_batch_finite=False),
            f"{NOT_ENOUGH}the batch that failed is still not finite.{INSTEAD}",
            "failed",
        ),
    ],
)
def test_the_help_says_what_a_second_training_showed(second: SecondTrainingFacts, help_: str, tried: str) -> None:
    (finding,) = said("MP904", **SUM, remedies=(healed(),), second=second)
    assert finding.help.removesuffix(INSTEAD) == help_.removesuffix(INSTEAD)
    assert [remedy.tried for remedy in finding.remedies] == [tried]


def test_remedies_outside_of_a_loss_that_a_second_training_contradicts_are_named() -> None:
    tried = (healed(), loss("failed", "with the outputs in float32 the step is not finite either"))
    (finding,) = said("MP907", **in_loss("Sum"), remedies=tried, second=again(14, late=True))
    assert finding.help.endswith(
        "without success: with `boost` (line 12) in float32, finite on these batches; in a second training, 14 "
        "of 50 steps are still skipped; with the outputs in float32 the step is not finite either."
    )


@pytest.mark.parametrize("second", [None, again(3), SecondTrainingFacts(("boost",), not_tried="an eager loop")])
def test_a_second_training_is_written_and_read_back(second: SecondTrainingFacts | None) -> None:
    probe = probe_from_facts(samples.training(samples.good_steps(), second=second))
    told = samples.diagnosis(models=(("train.py", samples.model()),), probes=(probe,))
    text = json_reporter.render(told)
    assert_fits(json.loads(text))
    (read,) = diagnosis_from_json(text).probes
    assert read.second == probe.second
    assert read.training.second == second
    for render in (terminal.render, markdown.render, html.render):
        shown = render(diagnosis_from_json(text))
        assert ("3 of 50" in shown) is (probe.second is not None)
        assert ("an eager loop" in shown) is (second is not None and bool(second.not_tried))
    assert ("not tried with boost in float32: an eager loop" in terminal.render(told)) is (
        second is not None and bool(second.not_tried)
    )


@pytest.mark.parametrize(("code", "facts"), [("MP904", culprit()), ("MP904", SUM), ("MP907", in_loss("Square"))])
def test_what_was_tried_and_did_not_hold_is_not_advised(code: str, facts: dict[str, Any]) -> None:
    (before,) = said(code, **facts)
    (after,) = said(code, **facts, remedies=(NEVER_FINITE,))
    assert "float32" in before.help
    assert "give" not in after.help.lower()


def test_a_training_that_runs_away_is_told_of_its_learning_rate_alone() -> None:
    from training_facts import diverging

    (finding,) = said("MP904", **diverging(culprit()), remedies=(healed(),))
    assert finding.help.startswith("Lower the learning rate")


def test_a_saved_diagnosis_keeps_them() -> None:
    first = dataclasses.replace(samples.collapsing().findings[0], remedies=(IN_TWO, loss("failed", "it is not")))
    diagnosis = dataclasses.replace(samples.collapsing(), findings=(first,))
    told = json_reporter.render(diagnosis)
    assert json.loads(told)["findings"][0]["remedies"][0]["layers"] == ["boost", "mix"]
    assert diagnosis_from_json(told).findings[0].remedies == first.remedies
