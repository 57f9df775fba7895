"""Trainings in which a gradient leaves the range of 16 bits, and what is said of them."""

from __future__ import annotations

import dataclasses
import math

from samples import model, steps_from_finiteness
from training_facts import (
    IN_KERAS2,
    SILENT,
    STORY,
    diverging,
    every_second_skip_at_a_doubled_scale,
    every_third_step_skipped,
    fallen,
    function_on_the_way_back,
    in_halves,
    in_loss,
    on_the_way_back,
)

from mpdoctor.facts.training import (
    StepFacts,
)
from mpdoctor.loss_scale import keras2
from training_rows import Row

ROWS: list[Row] = [
    (
        "MP905",
        "on-the-way-back-through-a-whole-model",
        {**on_the_way_back(in_float32=1e6), "model": dataclasses.replace(model(), name="head")},
        ("sample weights, the loss's factor",),
    ),
    (
        "MP905",
        "a-gradient-too-large-without-a-scale",
        on_the_way_back(largest=6.7e8, in_float32=6.7e8),
        (
            "16 of the 49 steps",
            "the gradient of `dense/bias`, step 49 at the loss scale 4, and it does so without any loss scale too",
            "in layer `head` (Dense): numbers up to 6.7e+08 are cast to float16",
            "before it reaches 812",
            "class weights",
        ),
    ),
    (
        "MP905",
        "a-gradient-too-large-with-it",
        on_the_way_back("MatMul", without=False),
        ("multiplying matrices", "global_clipnorm"),
    ),
    (
        "MP905",
        "a-root-at-zero",
        on_the_way_back("SqrtGrad", holds_zero=True, in_float32=math.inf),
        ("the gradient of sqrt() at 0 is infinite", "tf.sqrt(x + 1e-4)"),
    ),
    (
        "MP905",
        "of-a-power-at-0",
        on_the_way_back("Pow", in_float32=None, holds_zero=True),
        ("the gradient of a power at 0 is infinite", "in float32 too", "tf.pow(x + 1e-4"),
    ),
    ("MP905", "in-a-function", function_on_the_way_back(), ("It breaks in `head` (Dense)", "a smaller learning rate")),
    ("MP905", "in-the-loss", on_the_way_back(where="loss"), ("between the loss and the model's output",)),
    ("MP905", "in-the-loop", on_the_way_back("RealDiv", where="loop"), ("where the training code handles",)),
    (
        "MP905",
        "some-batches-hold-nan",
        {
            **in_loss("Cast", given="data"),
            "steps": tuple(
                StepFacts(
                    1024.0, number % 9 > 0, None if number % 9 else "dense/kernel", 0.5 if number % 9 else math.nan
                )
                for number in range(50)
            ),
        },
        ("6 of 50 steps were skipped, and in each of them the loss itself is inf or NaN: the batch itself holds inf",),
    ),
    ("MP905", "nothing-known", {"steps": on_the_way_back()["steps"]}, ("16 of the 49 steps", "`dense/kernel`")),
    (
        "MP905",
        "below-1-with-finite-losses",
        {"steps": tuple(dataclasses.replace(step, loss=2.3) for step in fallen(21)["steps"])},
        ("had fallen to 0.0156: gradients leave float16's range even without scaling. At that scale",),
    ),
    (
        "MP905",
        "below-1-at-rest",
        fallen(21),
        (
            "21 of 50 steps were skipped until the loss scale had fallen to 0.0156: in each of them the loss itself is",
            "inf or NaN, whatever the scale. At that scale every gradient below 1.9e-06 is 0",
            "Inf or NaN came first in the gradient of `dense/kernel`",
            "standardise inputs and targets",
        ),
    ),
    (
        "MP905",
        "below-1-at-rest-and-explained",
        {"steps": fallen(21)["steps"], "gradient_culprit": on_the_way_back()["gradient_culprit"]},
        ("is 0. Inf or NaN came first in the gradient of `dense/bias`", "Give layer `head`"),
    ),
    (
        "MP905",
        "below-1-and-all-of-the-script",
        {**fallen(24), "script_steps": 24},
        ("24 of 50 steps were skipped, including all 24 of the script itself until the loss scale",),
    ),
    ("MP905", "below-1-from-the-start", {"steps": tuple(StepFacts(0.5, True) for _ in range(50))}, SILENT),
    (
        "MP905",
        "at-the-floor",
        {**IN_KERAS2, "steps": steps_from_finiteness([False] * 18 + [True] * 32, keras2(2.0**15, 2000))},
        ("18 of 50 steps were skipped, 3 of them at the loss scale's floor of 1", "every gradient below 3e-08 is 0"),
    ),
    (
        "MP905",
        "a-growth-interval-of-2",
        {"steps": every_third_step_skipped(), "growth_interval": 2},
        (
            "16 of 50 steps were skipped after the loss scale had settled: the scale doubles after 2 finite steps in",
            "16 of these steps were skipped right after it doubled",
            "`dynamic_growth_steps=2000`, the default, instead of 2",
        ),
    ),
    (
        "MP905",
        "a-short-growth-interval-that-is-not-why",
        {**on_the_way_back(), "growth_interval": 2},
        ("came first in the gradient of `dense/bias`",),
    ),
    (
        "MP905",
        "a-short-growth-interval-for-half-of-them",
        {"steps": every_second_skip_at_a_doubled_scale(), "growth_interval": 2},
        ("20 of the 50 steps since the first applied one were skipped.", "Look for values far beyond the others"),
    ),
    (
        "MP905",
        "in-a-loss-in-halves",
        in_halves(0.5),
        ("Line 6 computes in float16 here, and no loss scale is small enough", 'last layers `dtype="float32"`'),
    ),
    ("MP905", "in-a-loss-in-halves-at-some-scale", in_halves(4.0), ("Look for values far beyond the others",)),
    ("MP905", "diverging", diverging(on_the_way_back()), (STORY, "Lower the learning rate: 0.35 is too high")),
    (
        "MP905",
        "diverging-below-1",
        {**diverging({}), "steps": tuple(dataclasses.replace(s, loss=2.3) for s in fallen(21)["steps"])},
        (STORY, "try a tenth of it, 0.035"),
    ),
    ("MP905", "one-leap", diverging(on_the_way_back(), rises=((3, 515.0, 3.0),)), ("came first in the gradient",)),
    (
        "MP905",
        "one-leap-and-then-losses",
        diverging(on_the_way_back(), rises=((4, 5e3, 4e2), (9, 5e4, 4e2))),
        ("came first in the gradient",),
    ),
    (
        "MP905",
        "weights-that-hardly-grew",
        diverging(on_the_way_back(), start=100.0, rises=((3, 5e3, 201.0), (9, 5e4, 405.0))),
        ("came first in the gradient",),
    ),
    ("MP905", "gradients-left-scaled", diverging(on_the_way_back(), scaled_gradients=True), ("came first in",)),
    (
        "MP905",
        "grown-only-afterwards",
        diverging(on_the_way_back(), rises=((40, 5e3, 40.0), (45, 5e4, 400.0))),
        ("came first in the gradient",),
    ),
    ("MP905", "healthy", {}, SILENT),
]
