"""Verdicts on a short training: every verdict from hand-written histories of steps, edges included."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import model, training

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.training import (
    CulpritFacts,
    GradientCulpritFacts,
    OperationFacts,
    ScaleDependenceFacts,
    StepFacts,
    TensorFacts,
    TrainingFacts,
)
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Verdict
from mpdoctor.semantics.live.verdict import probe_from_training, verdict_from_training
from mpdoctor.semantics.live.verdict_meanings import FEWEST_STEPS, HALVINGS_TO_SETTLE, MEANINGS

pytestmark = pytest.mark.fast

NAN, INF = math.nan, math.inf
KERAS2 = {"floor": 1.0, "model": dataclasses.replace(model(), keras=Keras("tf_keras", "2.21.0", "2.21.0"))}


def history(applied: str, scale: float = 32768.0, loss: float | None = 0.5) -> tuple[StepFacts, ...]:
    """Steps from a text: "+" applied, "-" skipped; the scale halves after each skipped one."""
    steps = []
    for sign in applied:
        steps.append(StepFacts(scale, sign == "+", None if sign == "+" else "dense/kernel", loss))
        scale = scale / 2 if sign == "-" else scale
    return tuple(steps)


def rising(by: float, first: float = 1.0) -> tuple[StepFacts, ...]:
    """50 applied steps whose loss is so many times larger in each; a first one below 0 stays the only one."""
    steps = tuple(StepFacts(32768.0, True, None, by**number) for number in range(50))
    return (dataclasses.replace(steps[0], loss=first), *steps[1:])


def floored(applied: str) -> tuple[StepFacts, ...]:
    """The same at Keras 2's floor of 1."""
    return tuple(dataclasses.replace(step, loss_scale=max(step.loss_scale or 1.0, 1.0)) for step in history(applied))


def with_loss(steps: tuple[StepFacts, ...], number: int, loss: float) -> tuple[StepFacts, ...]:
    """The same steps, the loss of step `number` (from 1) another one."""
    changed = dataclasses.replace(steps[number - 1], loss=loss)
    return (*steps[: number - 1], changed, *steps[number:])


def growing(interval: int, steps: int = 50, most: float = 65536.0) -> tuple[StepFacts, ...]:
    """Doubled after so many good steps, skipped beyond `most`."""
    found, scale, good = [], 32768.0, 0
    for _ in range(steps):
        found.append(StepFacts(scale, scale < most, None if scale < most else "dense/kernel", 0.5))
        good = good + 1 if scale < most else 0
        scale = scale / 2 if scale >= most else scale * 2 if good == interval else scale
        good %= interval
    return tuple(found)


def sprinkled(*gaps: int) -> str:
    """One skip after each gap of applied steps."""
    return "".join("+" * (gap - 1) + "-" for gap in gaps)


SETTLING = Verdict.SETTLING
INFINITE = TensorFacts("energy", "Energy", "float16", (8, 1), 65000.0, 1.0, 0.1, 0.0, 0.5)
CULPRIT = CulpritFacts(28, INFINITE)
UNFIT = GradientCulpritFacts(28, "dense/kernel", "dense", "Dense", without_scale=True)
MEAN = OperationFacts("Mean", "loss", "float16", "inf", largest=10.0, elements=102400, in_float32=9.8)
RAISED = FailureFacts("raised", "training", exception="ValueError", message="no")
DEPENDS = ScaleDependenceFacts(16.0, 1024.0, (("a", -1.0), ("b", -1.0), ("c", 0.0)))
TENFOLD, NINE = "+" * 10, "+" * 9

# (id, steps, other facts, verdict, words that stand in the reason)
TABLE: list[tuple[str, tuple[StepFacts, ...], dict[str, Any], Verdict, str]] = [
    ("ten-steps-are-enough", history(TENFOLD), {}, Verdict.HEALTHY, "10 steps, none skipped"),
    (
        "nine-are-not",
        history(NINE),
        {},
        Verdict.INCONCLUSIVE,
        "9 steps seen, 10 are needed: ask for more with --steps 10",
    ),
    ("nine-in-the-budget", history(NINE), {"ended": "budget"}, Verdict.INCONCLUSIVE, "--budget"),
    ("nine-in-the-script", history(NINE), {"ended": "script"}, Verdict.INCONCLUSIVE, "script's own loop"),
    ("no-step", (), {}, Verdict.INCONCLUSIVE, "no optimizer took a step in the calls of the training step"),
    ("no-step-in-the-budget", (), {"ended": "budget"}, Verdict.INCONCLUSIVE, "0 steps seen, 10 are needed"),
    ("one-step", history("+"), {}, Verdict.INCONCLUSIVE, "1 step seen"),
    ("raised-at-once", (), {"failure": RAISED}, Verdict.FAILED, "step 1 raised ValueError"),
    ("raised-after-three", history("+++"), {"failure": RAISED}, Verdict.FAILED, "step 4 raised"),
    ("skips-at-the-start", history("---" + "+" * 27), {}, Verdict.HEALTHY, "3 steps skipped until"),
    ("skips-for-two-thirds", history("-" * 20 + "+" * 10, 2.0**40), {}, Verdict.HEALTHY, "settled after step 20"),
    ("falls-to-1", history("-" * 15 + "+" * 35), {}, Verdict.HEALTHY, "settled after step 15"),
    (
        "falls-below-1",
        history("-" * 16 + "+" * 34),
        {},
        Verdict.OVERFLOWING,
        "16 steps skipped; the loss scale is 0.5",
    ),
    (
        "falls-below-1-and-takes-all-of-the-script",
        history("-" * 24 + "+" * 26),
        {"script_steps": 24},
        Verdict.OVERFLOWING,
        "24 steps skipped, including all 24 that the script itself runs; the loss scale is 0.00195",
    ),
    ("starts-below-1", history("+" * 50, 0.5), {}, Verdict.HEALTHY, "none skipped"),
    ("starts-below-1-and-falls", history("-" + "+" * 49, 0.5), {}, Verdict.OVERFLOWING, "is 0.25, below 1"),
    (
        "falls-below-1-and-grows-again",
        (*history("-" * 16), *history("+" * 34, 2.0)),
        {},
        Verdict.HEALTHY,
        "settled after step 16",
    ),
    ("falls-to-2^-14", history("-" * 29 + "+" * 60), {}, Verdict.OVERFLOWING, "scale is 6.1e-05"),
    *(
        (f"all-of-a-script-of-{own}", history("-" * lost + "+" * 30, 2.0**40), {"script_steps": own}, verdict, words)
        for own, lost, verdict, words in (
            (24, 24, Verdict.SETTLING, "24 steps skipped before the first one was applied, including all 24 that the"),
            (24, 25, Verdict.SETTLING, "25 steps skipped before the first one was applied, including all 24 that the"),
            (25, 24, Verdict.SETTLING, "24 of the 25 steps that the script itself runs skipped"),
            (30, 24, Verdict.HEALTHY, "24 steps skipped until"),
            (9, 9, Verdict.HEALTHY, "9 steps skipped until"),
            (None, 24, Verdict.HEALTHY, "24 steps skipped until"),
        )
    ),
    ("falls-below-2^-14", history("-" * 30 + "+" * 60), {}, Verdict.COLLAPSING, "fell to 3.05e-05"),
    ("falls-below-2^-14-late", history("-" * 30 + "+" * 5), {}, Verdict.COLLAPSING, "fell to 3.05e-05"),
    ("one-skip-before-the-last-third", history("+" * 19 + "-" + "+" * 10), {}, Verdict.HEALTHY, "1 step skipped"),
    ("one-skip-in-the-last-third", history("+" * 20 + "-" + "+" * 9), {}, Verdict.SETTLING, "1 step skipped"),
    ("one-skip-at-the-end", history("+" * 29 + "-"), {}, Verdict.SETTLING, "1 step skipped"),
    ("five-skips", history("+" * 20 + "--" + "+" * 5 + "---"), {}, Verdict.SETTLING, "5 steps skipped"),
    ("six-skips", history("+" * 20 + "--" + "+" * 4 + "----"), {}, Verdict.OVERFLOWING, "6 steps skipped"),
    ("six-skips-none-late", history("+" * 10 + "------" + "+" * 14), {}, Verdict.HEALTHY, "6 steps skipped"),
    (
        "seven-skips-that-growth-allows",
        history("+" * 10 + "------" + "+" * 8 + "-" + "+" * 5),
        {"growth_interval": 10},
        Verdict.SETTLING,
        "7 steps",
    ),
    ("every-third-step-by-growth", growing(2), {"growth_interval": 2}, Verdict.OVERFLOWING, "16 steps skipped since"),
    ("every-eleventh-step-by-growth", growing(10, 100), {"growth_interval": 10}, SETTLING, "9 steps skipped since"),
    ("growth-that-no-step-was-lost-to", growing(2, most=1e9)[:20], {"growth_interval": 2}, Verdict.HEALTHY, "none"),
    (
        "nine-skips-that-growth-forbids",
        history("+" * 10 + "--------" + "+" * 6 + "-" + "+" * 5),
        {"growth_interval": 10},
        Verdict.OVERFLOWING,
        "9 steps",
    ),
    ("targets-in-hundreds", history("-" * 7 + sprinkled(5, 6, 12) + "+" * 17), {}, Verdict.HEALTHY, "10 steps"),
    ("targets-in-hundreds-for-longer", history("-" * 7 + sprinkled(5, 6, 12, 21) + "+" * 5), {}, SETTLING, "4 steps"),
    *(
        (f"a-batch-that-fits-no-scale-{name}", history("+" * 20 + "--" + "+" * 8), facts, verdict, "2 steps skipped")
        for name, facts, verdict in (
            ("in-a-layer", {"culprit": CULPRIT}, Verdict.OVERFLOWING),
            ("in-the-loss", {"loss_culprit": OperationFacts("Square", "loss", "float16", "inf")}, Verdict.OVERFLOWING),
            ("on-the-way-back", {"gradient_culprit": UNFIT}, Verdict.OVERFLOWING),
            ("not-tried", {"gradient_culprit": dataclasses.replace(UNFIT, without_scale=None)}, SETTLING),
            ("but-fits", {"gradient_culprit": dataclasses.replace(UNFIT, without_scale=False)}, SETTLING),
            ("but-fits-smaller", {"loss_culprit": OperationFacts("Mul", "scaling", "float16", "inf")}, SETTLING),
        )
    ),
    *(
        (f"two-that-fit-no-scale-{where}", steps, {"culprit": CULPRIT}, Verdict.OVERFLOWING, "without a loss scale")
        for where, steps in (
            ("early", history("++-+-" + "+" * 45)),
            ("in-the-middle", history("+" * 20 + "--" + "+" * 28)),
        )
    ),
    (
        "two-losses-that-no-scale-mends",
        with_loss(with_loss(history("--" + "+" * 48), 1, INF), 2, NAN),
        {"culprit": CULPRIT},
        Verdict.OVERFLOWING,
        "2 steps skipped before the first one was applied; the loss itself is inf or NaN in them, whatever the scale",
    ),
    (
        "two-losses-that-fit-a-smaller-scale",
        with_loss(with_loss(history("--" + "+" * 48), 1, INF), 2, INF),
        {"loss_culprit": OperationFacts("Mul", "scaling", "float16", "inf")},
        Verdict.HEALTHY,
        "2 steps skipped until",
    ),
    ("one-skip-that-fits-no-scale", history("+" * 20 + "-" + "+" * 9), {"culprit": CULPRIT}, SETTLING, "1 step"),
    *(
        (
            f"lost-by-the-cpu-{name}",
            steps,
            {"loss_culprit": MEAN},
            Verdict.INCONCLUSIVE,
            "102400 numbers gives inf here",
        )
        for name, steps in (
            ("every-step", history("-" * 50)),
            ("some-steps", history("++++-" * 10)),
            ("applied", with_loss(history("+" * 50), 7, NAN)),
            ("few-steps", history("---")),
        )
    ),
    (
        "lost-everywhere",
        history("-" * 50),
        {"loss_culprit": dataclasses.replace(MEAN, in_float32=1e5)},
        Verdict.COLLAPSING,
        "50 steps",
    ),
    (
        "lost-by-another-dtype",
        history("-" * 50),
        {"loss_culprit": dataclasses.replace(MEAN, dtype="float32")},
        Verdict.COLLAPSING,
        "50 steps",
    ),
    (
        "from-2-to-the-90th",
        history("-" * 50, 2.0**90),
        {},
        Verdict.INCONCLUSIVE,
        "now 2.19902e+12, is still falling: ask for more with --steps 140",
    ),
    (
        "many-early-skips-and-one-late",
        history("-" * 18 + "+" * 10 + "-+", 2.0**40),
        {},
        Verdict.SETTLING,
        "1 step skipped",
    ),
    (
        "applied-only-at-the-end",
        history("-" * 29 + "+", 2.0**40),
        {},
        Verdict.SETTLING,
        "29 steps skipped before the first",
    ),
    (
        "without-loss-scaling",
        tuple(StepFacts(None, True, None, 0.1) for _ in range(12)),
        {"initial_scale": None, "growth_interval": None, "dynamic": None},
        Verdict.HEALTHY,
        "12 steps",
    ),
    (
        "keras3-falls-below-1",
        history("-" * 50),
        {},
        Verdict.COLLAPSING,
        "50 steps skipped; the loss scale went to 5.82e-11",
    ),
    ("keras3-at-exactly-1", history("-" * 16), {}, Verdict.INCONCLUSIVE, "now 1, is still falling"),
    ("keras3-one-below-1", history("-" * 17), {}, Verdict.COLLAPSING, "went to 0.5"),
    ("keras3-starts-at-1", history("-" * 11, scale=1.0), {}, Verdict.COLLAPSING, "went to 0.000977"),
    ("keras3-at-0", history("-" * 12, scale=0.0), {}, Verdict.COLLAPSING, "went to 0"),
    ("keras3-grew-to-inf", (*history("+" * 20, INF), *history("-" * 10, INF)), {}, Verdict.COLLAPSING, "inf"),
    (
        "keras3-reached-inf-in-between",
        (*history("+" * 20), *history("++++++++++", INF)),
        {},
        Verdict.COLLAPSING,
        "grew to inf",
    ),
    ("keras2-still-falling", history("-" * 12), KERAS2, Verdict.INCONCLUSIVE, "now 16, is still falling"),
    ("keras2-floor-at-the-last-step", history("-" * 16), KERAS2, Verdict.STUCK, "floor of 1"),
    ("keras2-one-step-above-the-floor", history("-" * 15), KERAS2, Verdict.INCONCLUSIVE, "now 2"),
    (
        "keras2-applied-at-the-floor",
        history("-" * 15) + history("-", 1.0) * 15 + history("+", 1.0),
        KERAS2,
        Verdict.OVERFLOWING,
        "30 steps skipped, 15 of them at the loss scale's floor of 1",
    ),
    ("keras2-one-skip-at-the-floor", floored("-" * 16 + "+" * 34), KERAS2, Verdict.HEALTHY, "settled after step 16"),
    ("keras2-two-skips-at-the-floor", floored("-" * 17 + "+" * 33), KERAS2, Verdict.OVERFLOWING, "2 of them at the"),
    (
        "nan-loss-applied",
        with_loss(history("+" * 30), 7, NAN),
        {},
        Verdict.NOT_FINITE,
        "the loss is nan at step 7, and the step was applied",
    ),
    ("inf-loss-before-the-first-applied", history("-" * 9 + "+" * 21, loss=INF), {}, Verdict.NOT_FINITE, "step 1 on"),
    (
        "nan-loss-to-the-end",
        history("+" * 20) + history("-" * 2 + "+" * 8, loss=NAN),
        {},
        Verdict.NOT_FINITE,
        "the loss is nan from step 21 on",
    ),
    ("inf-loss-applied", with_loss(history("+" * 30), 30, INF), {}, Verdict.NOT_FINITE, "inf from step 30"),
    ("nan-loss-in-few-steps", with_loss(history("+++"), 1, NAN), {}, Verdict.NOT_FINITE, "step 1"),
    ("nan-loss-in-a-skipped-step", with_loss(history("-" + "+" * 29), 1, NAN), {}, Verdict.HEALTHY, "1 step skipped"),
    ("weights-not-finite", history("+" * 30), {"weights_finite": False}, Verdict.NOT_FINITE, "inf or NaN"),
    (
        "weights-not-finite-and-all-skipped-since",
        history("+" + "-" * 49),
        {"weights_finite": False},
        Verdict.NOT_FINITE,
        "a trainable variable holds inf or NaN",
    ),
    (
        "weights-not-finite-by-a-scale-of-0",
        history("-" * 29 + "+", 0.0),
        {"weights_finite": False},
        Verdict.NOT_FINITE,
        "inf or NaN",
    ),
    (
        "scale-of-0-and-still-skipped",
        history("+" + "-" * 29, 0.0),
        {"weights_finite": False},
        Verdict.COLLAPSING,
        "29 steps skipped; the loss scale went to 0",
    ),
    ("no-loss-seen", history("+" * 30, loss=None), {}, Verdict.HEALTHY, "none skipped"),
    ("weights-unchanged", history("+" * 30), {"weights_changed": False}, Verdict.NO_UPDATE, "no trainable variable"),
    ("weights-not-compared", history("+" * 30), {"weights_changed": None}, Verdict.HEALTHY, "none skipped"),
    ("all-skipped-so-unchanged", history("-" * 50), {"weights_changed": False}, Verdict.COLLAPSING, "skipped"),
    (
        "depends-on-the-scale",
        history("+" * 50),
        {"scale_dependence": DEPENDS},
        Verdict.HEALTHY,
        "50 steps, none skipped; but the size of the updates depends on the loss scale",
    ),
    ("the-loss-grew", rising(1.1), {}, Verdict.HEALTHY, "; but the loss grew, in the median from 2.14 to 54.8"),
    ("the-loss-grew-a-little", rising(1.005), {}, Verdict.HEALTHY, "50 steps, none skipped"),
    ("one-of-a-gan", rising(1.1), {"name": "generator"}, Verdict.HEALTHY, "50 steps, none skipped"),
    ("below-zero", rising(1.1, -1.0), {}, Verdict.HEALTHY, "50 steps, none skipped"),
    (
        "depends-a-little",
        history("+" * 50),
        {"scale_dependence": dataclasses.replace(DEPENDS, exponents=(("a", 0.5),))},
        Verdict.HEALTHY,
        "50 steps, none skipped",
    ),
]


@pytest.mark.parametrize(
    ("steps", "facts", "verdict", "words"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_history_gets_its_verdict(
    steps: tuple[StepFacts, ...], facts: dict[str, Any], verdict: Verdict, words: str
) -> None:
    found, why = verdict_from_training(training(steps, **facts))
    assert (found, words in why) == (verdict, True), why
    for more in ("depends on the loss scale", "the loss grew"):
        assert (more in why) == (more in words)


def test_every_verdict_is_reached_and_defined_by_numbers() -> None:
    assert {row[3] for row in TABLE} == set(Verdict)
    assert set(MEANINGS) == set(Verdict)


@pytest.mark.parametrize(
    ("steps", "facts", "advised"),
    [
        (history("-" * 50), {}, True),
        (history("-" * 16), KERAS2, False),
        (history("+" * 50), {}, False),
    ],
    ids=["collapsing", "stuck", "healthy"],
)
def test_a_floor_is_advised_where_it_would_have_helped(
    steps: tuple[StepFacts, ...], facts: dict[str, Any], advised: bool
) -> None:
    assert ("A floor would" in probe_from_training(training(steps, **facts)).advice) == advised


def test_a_cap_is_advised_for_a_scale_that_grew_to_inf() -> None:
    advice = probe_from_training(training((*history("+" * 20), *history("-" * 10, INF)))).advice
    assert "cap" in advice
    assert "floor" not in advice


# --- properties -------------------------------------------------------------------------------------------------
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
STEPS = st.lists(
    st.builds(StepFacts, st.none() | NUMBERS, st.booleans(), st.none() | st.just("dense/kernel"), st.none() | NUMBERS),
    max_size=40,
).map(tuple)
HISTORIES = st.builds(
    training,
    STEPS,
    ended=st.sampled_from(["steps", "budget", "failed", "script"]),
    floor=st.none() | st.just(1.0),
    growth_interval=st.none() | st.integers(-3, 4000),
    initial_scale=st.none() | NUMBERS,
    weights_changed=st.none() | st.booleans(),
    weights_finite=st.none() | st.booleans(),
    failure=st.none() | st.just(RAISED),
    scale_dependence=st.none() | st.just(DEPENDS),
)
ANY_SIGNS = st.text("+-", max_size=60)


@given(HISTORIES)
def test_no_history_breaks_it(facts: TrainingFacts) -> None:
    probe = probe_from_training(facts)
    assert probe.why
    assert "\n" not in probe.why


@given(st.integers(0, 80), st.sampled_from([None, 1.0]), st.floats(1.0, 2.0**60))
def test_a_training_without_a_flaw_is_healthy_or_too_short(steps: int, floor: float | None, scale: float) -> None:
    verdict, _ = verdict_from_training(training(history("+" * steps, scale), floor=floor))
    assert verdict is (Verdict.HEALTHY if steps >= FEWEST_STEPS else Verdict.INCONCLUSIVE)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([None, 1.0]))
def test_skips_at_the_start_alone_are_no_overflow(skips: int, steps: int, floor: float | None) -> None:
    verdict, why = verdict_from_training(training(history("-" * skips + "+" * steps, 2.0**60), floor=floor))
    assert verdict is not Verdict.OVERFLOWING
    assert not why.startswith("0 steps skipped")


@given(ANY_SIGNS)
def test_what_overflows_was_applied_before_and_skipped_often_since(signs: str) -> None:
    if verdict_from_training(training(history(signs)))[0] is Verdict.OVERFLOWING:
        below_one = signs.count("-") > 15
        assert below_one or signs.lstrip("-").count("-") > HALVINGS_TO_SETTLE


@given(ANY_SIGNS)
@example("-" * 30 + "+")  # fell below 2^-14, and applied there; at a floor of 1 the same is a scale that settles
@example("-" * 30 + "+" * 30)
@example("-" * 50)
def test_the_floor_decides_between_stuck_and_collapsing(signs: str) -> None:
    without, _ = verdict_from_training(training(history(signs)))
    with_floor, _ = verdict_from_training(training(floored(signs), floor=1.0))
    assert without is not Verdict.STUCK
    assert with_floor is not Verdict.COLLAPSING
    if without is Verdict.COLLAPSING:
        trains_again = "+" in signs[len(signs) - len(signs) // 3 :]
        assert (with_floor is Verdict.STUCK) is not trains_again
