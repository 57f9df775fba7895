"""Trainings whose loss scale is stuck, falls, or lets gradients underflow, and what is said of them."""

from __future__ import annotations

import dataclasses

from training_facts import (
    EXPERIMENTAL,
    FIXED,
    FLOAT32_HEAD,
    GROWN,
    IN_KERAS2,
    KERAS2,
    SILENT,
    WITH_DIGITS,
    at_zero,
    culprit,
    dependence,
    fallen,
    flushed,
    from_scale,
    in_loss,
    on_the_way_back,
    skipped,
    without_steps,
)

from mpdoctor.facts.reference import (
    ReferenceFacts,
    ScaleRoom,
)
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import (
    StepFacts,
)
from training_rows import Row

ROWS: list[Row] = [
    (
        "MP902",
        "keras2-at-its-floor",
        skipped(50, KERAS2),
        ("50 of 50 steps", "from 32768 to its floor of 1", "Nothing is trained"),
    ),
    ("MP902", "keras2-names-the-layer", {**skipped(50, KERAS2), **culprit()}, ("`square`: fix it there (see MP904)",)),
    ("MP902", "keras2-names-no-layer", skipped(50, KERAS2), ("No layer's output overflows", "tf.float32")),
    (
        "MP902",
        "keras2-predicts-in-float32",
        {**skipped(50, KERAS2), "model": dataclasses.replace(FLOAT32_HEAD, keras=KERAS2)},
        ("the predictions are float32 already: look in the loss for a logarithm",),
    ),
    ("MP902", "keras2-still-falling", skipped(12, KERAS2), SILENT),
    ("MP902", "keras2-healthy", IN_KERAS2, SILENT),
    ("MP902", "keras3", skipped(50), SILENT),
    ("MP902", "names-the-gradient", {**skipped(50, KERAS2), **without_steps(on_the_way_back())}, ("`dense/bias`",)),
    ("MP903", "keras3-falls", skipped(50), ("50 of 50 steps", "from 32768 to 5.82e-11", "no floor")),
    (
        "MP903",
        "keras3-falls-and-names-the-layer",
        {**skipped(30), **culprit()},
        ("30 of 30", "`square`: fix it there (see MP904)"),
    ),
    (
        "MP903",
        "keras3-grows-to-inf",
        GROWN,
        ("doubled every step until it was inf", "dynamic_growth_steps=2000 instead of 1"),
    ),
    ("MP903", "keras3-still-falling", skipped(12), SILENT),
    (
        "MP903",
        "keras3-starts-at-zero",
        at_zero(initial_scale=0.0),
        ("is 0 from the first step on", "Give `initial_scale` a positive number"),
    ),
    (
        "MP903",
        "keras3-falls-to-zero",
        at_zero((*skipped(170)["steps"], StepFacts(0.0, True, None, 1.7))),
        ("from 32768 to 0", "step 171 was finite at a scale of 0, and wrote NaN into the weights"),
    ),
    ("MP903", "keras3-fell-and-goes-on", fallen(37), ("37 of 50", "to 2.38e-07", "every gradient below 0.12 is 0")),
    ("MP903", "keras3-healthy", {}, SILENT),
    ("MP903", "keras2", skipped(50, KERAS2), SILENT),
    ("MP903", "names-the-loss", {**skipped(50), **without_steps(in_loss("Exp"))}, ("In the loss, exp() of",)),
    (
        "MP906",
        "dynamic",
        flushed(1.0, 0.0, 0.5, dynamic=True),
        ("100% of `first/kernel`", "of `second`", "leave out `initial", "from 2^9 to 2^17"),
    ),
    ("MP906", "fixed", flushed(1.0, 1.0, dynamic=False), ("the loss scale 2^2", "`initial_scale=2.0**13`")),
    ("MP906", "factor", flushed(1.0, uses_loss_scale_factor=True, dynamic=False), ("`loss_scale_factor=2.0**13`",)),
    ("MP906", "experimental", flushed(1.0, dynamic=False, model=EXPERIMENTAL), ("`loss_scale=2.0**13`",)),
    ("MP906", "experimental-default", flushed(1.0, model=EXPERIMENTAL), ('`loss_scale="dynamic"`, which starts at',)),
    (
        "MP906",
        "a-loss-that-is-never-scaled",
        flushed(1.0, scale_dependence=dependence(0.0, loss=0.0)),
        ("Without a loss scale", "Multiply the loss by the loss scale of the optimizer"),
    ),
    (
        "MP906",
        "a-loss-that-is-scaled",
        flushed(1.0, scale_dependence=dependence(0.0, loss=1.0)),
        ("At the loss scale 2^2", "from 2^9 to 2^17"),
    ),
    ("MP906", "no-scale", flushed(1.0, scale=None), ("Without a loss scale", "LossScaleOptimizer(optimizer)")),
    (
        "MP906",
        "no-room",
        flushed(1.0, room=ScaleRoom(2.0**9, 2.0**10, 12, ("head/kernel",), ())),
        ("No loss scale fits", "`head/kernel` overflows"),
    ),
    ("MP906", "nobody-asked", {}, SILENT),
    ("MP906", "less-than-5-percent", flushed(0.04, 0.04), SILENT),
    ("MP906", "on-one-batch", flushed(1.0, 0.0, 0.0), SILENT),
    (
        "MP906",
        "digits-that-get-lost",
        flushed(0.0, 0.0, 0.01, directions=[0.7, 0.8123, 0.99], room=WITH_DIGITS),
        ("At the loss scale 2^2", "lose digits", "is 0.70. At 2^13 it is 0.9998 (3", "leave out `initial_scale`"),
    ),
    ("MP906", "digits-on-one-batch", flushed(0.0, 0.0, directions=[0.7, 0.99], room=WITH_DIGITS), SILENT),
    ("MP906", "digits-no-scale-keeps", flushed(0.0, 0.0, room=dataclasses.replace(WITH_DIGITS, cosine=0.8)), SILENT),
    ("MP906", "digits-nobody-tried", flushed(0.0, 0.0, room=dataclasses.replace(WITH_DIGITS, cosine=None)), SILENT),
    ("MP906", "digits-above-the-middle", flushed(0.0, 0.0, room=WITH_DIGITS, scale=2.0**14), SILENT),
    ("MP906", "without-a-part", flushed(1.0, 1.0, norm=1e-5), SILENT),
    ("MP906", "one-unit-and-the-loss-is-not-known", flushed(0.06, 0.06, cosine=1.0), ("6% of `first/kernel`",)),
    (
        "MP906",
        "one-unit-and-another-loss",
        flushed(0.06, 0.06, cosine=1.0, loss=(0.3, 0.01)),
        ("6% of `first/kernel`",),
    ),
    ("MP906", "one-unit-and-the-same-loss", flushed(0.06, 0.06, cosine=1.0, loss=(0.0101, 0.01)), SILENT),
    ("MP906", "all-of-it-and-the-same-loss", flushed(1.0, 1.0, cosine=None, loss=(0.0101, 0.01)), ("100% of",)),
    ("MP906", "bfloat16", flushed(1.0, 1.0, dtype="bfloat16"), SILENT),
    ("MP906", "never-scaled", flushed(1.0, 1.0, scale_dependence=dependence(-1.0)), SILENT),
    ("MP906", "an-output-is-wrong-before", flushed(1.0, 1.0, apart=0.3, room=ScaleRoom(2.0**9, 2.0**10, 12)), SILENT),
    ("MP906", "and-a-scale-keeps-them", flushed(1.0, 1.0, apart=0.3), ("leave out `initial",)),
    ("MP906", "not-measured", {"reference": ReferenceFacts(not_measured="an eager loop")}, SILENT),
    (
        "MP910",
        "from-above",
        from_scale(2.0**56, 41),
        ("starts at 7.20576e+16", "first 41 steps were skipped", "had fallen to 32768", "That saves these 41 steps"),
    ),
    (
        "MP910",
        "above-the-default",
        from_scale(2.0**60, 44),
        ("first 44 steps were skipped", "had fallen to 65536", "That saves these 44 steps"),
    ),
    ("MP910", "above-the-default", from_scale(2.0**33, 15), ("had fallen to 262144", "That saves these 15 steps")),
    ("MP910", "not-there-yet", from_scale(2.0**90, 50), ("all 50 steps were skipped", "Leave `initial_scale` out")),
    (
        "MP910",
        "below-the-default",
        from_scale(2.0**15, 11),
        ("first 11 steps", "initial_scale=16)"),
    ),
    ("MP910", "down-to-1", from_scale(2.0**15, 15), ("until it had fallen to 1.", "initial_scale=1)")),
    ("MP910", "below-1", from_scale(2.0**15, 16), SILENT),  # MP905
    (
        "MP910",
        "all-of-a-short-script",
        {**from_scale(2.0**40, 25), "script_steps": 24},
        ("first 25 steps were skipped", "The script itself runs 24 steps, so it trains nothing"),
    ),
    (
        "MP910",
        "all-of-a-loop-that-ended",
        {**from_scale(2.0**90, 24, 24), "script_steps": 24, "ended": "script"},
        ("all 24 steps were skipped", "The script itself runs 24 steps, so it trains nothing"),
    ),
    (
        "MP910",
        "all-but-one-of-a-short-script",
        {**from_scale(2.0**40, 23), "script_steps": 24},
        ("first 23 steps were skipped", "Of the 24 steps of the script itself 1 is applied."),
    ),
    ("MP910", "a-script-of-a-few-steps", {**from_scale(2.0**20, 8), "script_steps": 8}, SILENT),
    ("MP910", "as-many-as-usual", from_scale(2.0**15, 9), SILENT),
    ("MP910", "on-its-way-to-nothing", skipped(50), SILENT),
    ("MP910", "no-scale", {"dynamic": None, "initial_scale": None}, SILENT),
    (
        "MP911",
        "a-fixed-scale",
        FIXED,
        ("1e+06 is too large", "step 5", "`dense/bias`", "layer `head`", "dynamic loss scale"),
    ),
    *(
        ("MP911", f"a-smaller-scale-{tried.tried}", {**FIXED, "remedies": (tried,)}, words)
        for tried, words in (
            (
                RemedyFacts("smaller-scale", "healed", batches=2, scale=8192.0),
                (
                    "a smaller fixed one: with 8192, and with four times as much, this batch and one other are finite "
                    "(tri",
                ),
            ),
            (
                RemedyFacts("smaller-scale", "not-tried", reason="a step of an eager loop cannot be repeated"),
                ("a smaller fixed one. (Not tried: a step of an eager loop cannot be repeated.)",),
            ),
            (
                RemedyFacts("smaller-scale", "failed", reason="at a loss scale of 4 the step is not finite either"),
                ("(Tried: at a loss scale of 4 the step is not finite either.)",),
            ),
        )
    ),
    ("MP911", "a-dynamic-one", skipped(50), SILENT),
]
