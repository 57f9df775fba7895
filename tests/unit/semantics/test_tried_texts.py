"""What a finding's help says of remedies that were tried, and of those that were not."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import samples
from test_training_rules import broken, culprit, in_loss, on_the_way_back, said

from mpdoctor.facts.location import Location
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json

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
            "2 others are finite (tried). `boost` alone is not enough. Or average instead of adding up.",
        ),
        (
            "MP904",
            broken("Square"),
            (healed(),),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Or normalise '
            "what goes in, or use smaller initial weights or a smaller constant.",
        ),
        (
            "MP904",
            SUM,
            (healed(3, batches=2),),
            'Give `boost` (line 12), `mix` (line 12) and `norm` (line 12) dtype="float32": with all three in float32 '
            "this batch and one other are finite (tried). Or average instead of adding up.",
        ),
        (
            "MP904",
            SUM,
            (healed(locations=(None,), with_parts=("boost",)),),
            'Give `boost` and the layer in it dtype="float32": with it in float32 this batch is finite (tried). Or '
            "average instead of adding up.",
        ),
        (
            "MP904",
            SUM,
            (NEVER_FINITE,),
            "float32 is no remedy here (tried): with all layers in float32 the step is not finite either. Average "
            "instead of adding up.",
        ),
        (
            "MP904",
            SUM,
            (not_so("not-tried", "a step of an eager loop cannot be repeated"),),
            'Let this layer compute in float32: give `square` dtype="float32". Or average instead of adding up. (Not '
            "tried: a step of an eager loop cannot be repeated.)",
        ),
        (
            "MP907",
            in_loss("Square"),
            (healed(), loss()),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Or: Compute the '
            "loss in float32, `tf.cast(predictions, tf.float32)` first: this batch is finite then (tried).",
        ),
        (
            "MP907",
            in_loss("Sum"),
            (not_so("failed", "7 of the 8 layers in 16 bits would have to compute in float32", 7), loss()),
            "Compute the loss in float32, `tf.cast(predictions, tf.float32)` first: this batch is finite then (tried). "
            "Or average instead of adding up.",
        ),
        (
            "MP907",
            in_loss("Sum"),
            (
                not_so("failed", "no layer of this step computes in 16 bits", 0),
                loss("failed", "with the outputs in float32 the step is not finite either"),
            ),
            "Average instead of adding up, or compute it in float32, `tf.cast(x, tf.float32)` before anything is "
            "squared, summed or divided. That was not tried; remedies outside of the loss were: no layer of this step "
            "computes in 16 bits; with the outputs in float32 the step is not finite either.",
        ),
        (
            "MP905",
            on_the_way_back(in_float32=1e6),
            (healed(),),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Or standardise '
            "what makes it so large: targets, class weights, sample weights, the loss's factor.",
        ),
        (
            "MP503",
            SUM,
            (healed(),),
            'Give `boost` (line 12) dtype="float32": with it in float32 this batch is finite (tried). Or average '
            "instead of adding up.",
        ),
        ("MP503", SUM, (), "Cast first, `tf.cast(x, tf.float32)`."),
    ],
)
def test_the_help_says_what_was_tried_and_what_came_of_it(
    code: str, facts: dict[str, Any], remedies: tuple[RemedyFacts, ...], help_: str
) -> None:
    (finding,) = said(code, **facts, remedies=remedies)
    assert finding.help == help_
    assert finding.remedies == remedies


@pytest.mark.parametrize(("code", "facts"), [("MP904", culprit()), ("MP904", SUM), ("MP907", in_loss("Square"))])
def test_what_was_tried_and_did_not_hold_is_not_advised(code: str, facts: dict[str, Any]) -> None:
    (before,) = said(code, **facts)
    (after,) = said(code, **facts, remedies=(NEVER_FINITE,))
    assert "float32" in before.help
    assert "give" not in after.help.lower()


def test_a_training_that_runs_away_is_told_of_its_learning_rate_alone() -> None:
    from test_training_rules import diverging

    (finding,) = said("MP904", **diverging(culprit()), remedies=(healed(),))
    assert finding.help.startswith("Lower the learning rate")


def test_a_saved_diagnosis_keeps_them() -> None:
    first = dataclasses.replace(samples.collapsing().findings[0], remedies=(IN_TWO, loss("failed", "it is not")))
    diagnosis = dataclasses.replace(samples.collapsing(), findings=(first,))
    told = json_reporter.render(diagnosis)
    assert json.loads(told)["findings"][0]["remedies"][0]["layers"] == ["boost", "mix"]
    assert diagnosis_from_json(told).findings[0].remedies == first.remedies
