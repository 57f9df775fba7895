"""Trainings whose loss or weights become inf or NaN, and what is said of them."""

from __future__ import annotations

import dataclasses
import math

from samples import layer, model
from training_facts import (
    FIXED,
    FLOAT32_HEAD,
    HALF_LABELS,
    HALF_SOFTMAX,
    IN_FLOAT32,
    LABELS,
    SILENT,
    at_zero,
    breaks_at,
    broken,
    function_that_overflows,
    gradient_applied,
    in_first_step,
    in_loss,
    infinite_loss,
    of_adam,
    replicas,
)

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts
from mpdoctor.facts.training import (
    GrowthFacts,
    StepFacts,
)
from training_rows import Row

ROWS: list[Row] = [
    ("MP907", "what-escaped-the-replica-check", replicas(1), SILENT),
    ("MP907", "what-the-first-replica-had-too", replicas(0, 1, applied=False), ("The loss is inf at step 3",)),
    (
        "MP907",
        "at-a-scale-of-zero",
        at_zero(initial_scale=0.0),
        ("The loss scale was 0 at step 1: ", "divided by 0", "a positive number"),
    ),
    (
        "MP907",
        "a-beta-2-that-is-1-in-bfloat16",
        {**of_adam(0.999, "Nadam"), **breaks_at(1)},
        ("The weights are bfloat16, and Nadam makes such weights NaN: its beta_2 of 0.999 is 1", "mixed_bfloat16"),
    ),
    (
        "MP907",
        "a-log-of-a-half-softmax",
        {**in_loss("Log", dtype="float32", in_float32=None, holds_zero=True), "model": model(HALF_SOFTMAX)},
        ('Give `out` dtype="float32"', "its float16 softmax returns 0"),
    ),
    (
        "MP907",
        "a-log-of-something-else",
        {**in_loss("Log", dtype="float32", in_float32=None, holds_zero=True), "model": model(layer("out"))},
        ("Add an epsilon such as 1e-7",),
    ),
    ("MP907", "in-a-function", {**function_that_overflows(), **infinite_loss()}, ("It starts in `square`: ",)),
    (
        "MP907",
        "in-a-layer-in-bfloat16",
        {**broken("Square", dtype="bfloat16", in_float32=None), **infinite_loss()},
        ("It starts in layer `square`: squaring numbers", 'Give `square` dtype="float32". (Not tried.)'),
    ),
    (
        "MP907",
        "a-weight-of-a-file",
        {
            "culprit": in_first_step("ReadVariableOp"),
            "model": dataclasses.replace(model(), call=CallFacts("none", Location("model.py", 3))),
            **infinite_loss(),
        },
        ("a weight is already inf or NaN", "A file with such a weight was saved after its training had failed"),
    ),
    (
        "MP907",
        "labels",
        in_loss("Sub", given="labels"),
        (": the labels hold inf or NaN.", "assert_all_finite(labels, 'labels')"),
    ),
    (
        "MP907",
        "labels-in-float16",
        {**in_loss("Sub", given="labels"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))},
        ("labels hold inf or NaN, and they are float16, whose largest number is 65504.", "Leave the labels in float32"),
    ),
    (
        "MP907",
        "features-in-float16",
        {
            **in_loss("Identity", given="data"),
            "model": dataclasses.replace(model(), data=(dataclasses.replace(HALF_LABELS, role="features"),)),
        },
        ("holds inf or NaN, and its features are float16, whose largest number is 65504.", "Scale the features before"),
    ),
    (
        "MP907",
        "features-beside-labels-in-float16",
        {**in_loss("Identity", given="data"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))},
        ("the batch itself holds inf or NaN.", "assert_all_finite(data"),
    ),
    (
        "MP907",
        "inf-beside-labels-in-float16",
        {**in_loss("Square"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))},
        ("although no layer's output overflows", "Compute it in float32"),
    ),
    (
        "MP907",
        "log-of-nothing",
        in_loss("Log", loss=-math.inf, holds_zero=True, in_float32=math.inf, result="-inf"),
        ("The loss is -inf at step 1 and at 49 later steps", "log() of 0 is -inf", "1e-4 (one below 3e-8 is 0)"),
    ),
    (
        "MP907",
        "a-square",
        in_loss("SquaredDifference", largest=1000.0, in_float32=1e6),
        ("squaring a difference of numbers up to 1,000 gives 1,000,000", "tf.cast(x, tf.float32)"),
    ),
    (
        "MP907",
        "bad-data",
        in_loss("", loss=math.inf, given="data", in_float32=None),
        ("the batch itself holds inf or NaN", "assert_all_finite"),
    ),
    (
        "MP907",
        "a-label-beyond-the-classes",
        in_loss(LABELS, dtype="float32", result="nan", in_float32=None, largest=5.0),
        ("a label names no class of the model's output", "raises on a CPU", "from 0 to one less", "units"),
    ),
    (
        "MP907",
        "in-a-layer",
        {**broken("Square"), "steps": in_loss("Log")["steps"]},
        ("It starts in layer `square`", "see MP904"),
    ),
    (
        "MP907",
        "broken-weights",
        {**broken("ReadVariableOp", in_float32=None), "steps": in_loss("Log")["steps"]},
        ("before the step begins", "the earlier steps"),
    ),
    (
        "MP907",
        "broken-weights-in-the-first-step",
        {"culprit": in_first_step("ReadVariableOp", in_float32=None), "steps": in_loss("Log")["steps"]},
        ("in the very first step", "what the step itself assigns to weights"),
    ),
    (
        "MP907",
        "an-update-that-breaks-the-weights",
        {
            "steps": tuple(
                StepFacts(32768.0, n < 2, None if n < 2 else "k", 1.0 if n < 2 else math.inf) for n in range(9)
            ),
            "growth": GrowthFacts(0.3, ((2, math.inf, math.inf),), 0.001),
        },
        ("The update of step 2 made weights inf or NaN", "Adam computes that", "See what Adam divides by"),
    ),
    (
        "MP907",
        "a-gradient-that-breaks-the-weights",
        {
            "steps": tuple(StepFacts(None, True, "k" if n > 0 else None, 1.0 if n < 2 else math.inf) for n in range(9)),
            "growth": GrowthFacts(0.3, ((2, math.inf, math.inf),), 0.001),
        },
        ("The loss is inf at step 3 and at 6 later steps, although",),
    ),
    (
        "MP907",
        "a-gradient-that-nothing-checked",
        gradient_applied(),
        (
            "because no LossScaleOptimizer skipped the step before it",
            "first in the gradient of `dense/bias`, step 2",
            "apply the gradients with a LossScaleOptimizer",
            "Clipping does not help",
        ),
    ),
    ("MP907", "on-this-device-alone", in_loss("Mean", **IN_FLOAT32), SILENT),
    (
        "MP907",
        "not-followed",
        {
            "steps": in_loss("Log")["steps"],
            "not_looked": (("first number not finite", "the failing step cannot be repeated eagerly: ValueError: no"),),
        },
        ("Check the batch of the failing step", "output: the failing step cannot be repeated eagerly: ValueError: no."),
    ),
    (
        "MP907",
        "weights-that-a-fixed-scale-broke",
        {**FIXED, "steps": (*FIXED["steps"], StepFacts(1e6, True, "dense/kernel", math.inf))},
        ("The loss is inf at step 6, because the gradients of step 5 are inf or NaN, and were applied",),
    ),
    (
        "MP907",
        "before-a-fixed-scale-broke-weights",
        {**FIXED, "steps": (StepFacts(1e6, True, "dense/kernel", math.inf), *FIXED["steps"])},
        ("The loss is inf at step 1, although no layer's output overflows.",),
    ),
    (
        "MP907",
        "of-predictions-in-float32",
        {**infinite_loss(), "model": FLOAT32_HEAD},
        ("although no layer's output overflows.", "the predictions are float32 already: look in the loss for"),
    ),
    ("MP907", "of-predictions-in-float16", infinite_loss(), ("`tf.cast(predictions, tf.float32)` before anything",)),
    (
        "MP907",
        "where-no-layer-was-called",
        {
            **infinite_loss(),
            "not_looked": (("first number not finite", "the call that applies the gradients calls no layer"),),
        },
        ("The loss is inf at step 1 and at 49 later steps.", "each layer's output: the call that applies"),
    ),
    (
        "MP907",
        "where-nothing-computes-in-16-bits",
        {**infinite_loss(), "model": model(layer("dense", policy="float32")), "policy": "float32"},
        ("The loss is inf at step 1", "precision is not the cause: lower the learning rate"),
    ),
    ("MP907", "finite", {}, SILENT),
]
