"""Trainings whose weights stand still or run away from those in float32, and what is said of them."""

from __future__ import annotations

import math

from samples import good_steps, layer, model
from training_facts import (
    MOVES,
    NO_LOSS,
    PURE,
    SILENT,
    in_loss,
    of_adam,
    operation,
    parted,
    skipped,
    stands_still,
    weights,
    with_optimizer,
)

from mpdoctor.facts.divergence import TriedLayer
from mpdoctor.facts.training import (
    StepFacts,
)
from training_rows import Row

ROWS: list[Row] = [
    (
        "MP313",
        "zero",
        with_optimizer(1e-8, steps=NO_LOSS),
        ("Adam keeps its state in float16", "1e-08 is 0 in float16", "step 4", "mixed_float16"),
    ),
    ("MP313", "too-small-to-divide-by", with_optimizer(1e-7, weights_finite=False), ("too small to divide by",)),
    ("MP313", "nothing-broke", with_optimizer(1e-7), SILENT),
    ("MP313", "large-enough", with_optimizer(1e-4, steps=NO_LOSS), SILENT),
    ("MP313", "float32-weights", with_optimizer(1e-8, "float32", steps=NO_LOSS), SILENT),
    ("MP313", "no-epsilon", with_optimizer(None, steps=NO_LOSS), SILENT),
    ("MP313", "a-gradient-broke-first", with_optimizer(1e-8, **in_loss("Log")), SILENT),
    (
        "MP908",
        "with-its-layer",
        parted(0.3, 0.011, layers=(TriedLayer("cancel", (0.02,) * 30, True),)),
        ("the last 10 of 30 steps", "0.3 in float16 and 0.01 in float32", 'Give `cancel` `dtype="float32"`'),
    ),
    (
        "MP908",
        "no-layer-alone",
        parted(0.3, 0.011, layers=(TriedLayer("a", (0.3,) * 30, False), TriedLayer("b", (0.3,) * 30, False))),
        ("with all layers in float32", "`a` and `b`, each alone, in float32 did not prevent it"),
    ),
    (
        "MP908",
        "all-of-its-class",
        parted(
            *(0.3, 0.011),
            layers=(
                TriedLayer("a", (0.2,) * 30, False),
                TriedLayer("head", (0.3,) * 30, False),
                TriedLayer("a", (0.02,) * 30, True, ("b", "c")),
            ),
        ),
        ("Give `a`, `b` and `c` `dtype=", "the mean is 0.02; with only `a` it is 0.2."),
    ),
    (
        "MP908",
        "not-all-of-its-class-either",
        parted(
            *(0.3, 0.011),
            layers=(TriedLayer("a", (0.3,) * 30, False), TriedLayer("a", (0.3,) * 30, False, ("b",))),
        ),
        ("`a` alone in float32 did not prevent it, nor did `a` and `b` together.",),
    ),
    (
        "MP908",
        "most-of-it-goes-with-a-layer",
        parted(
            *(0.3, 0.011),
            layers=(TriedLayer("a", (0.06,) * 30, False), TriedLayer("b", (math.nan,) * 30, False)),
        ),
        ("did not prevent it. With `a` in float32 the mean is 0.06, which is nearer to float32's.",),
    ),
    ("MP908", "bfloat16", parted(0.3, 0.011, dtype="bfloat16"), ("in bfloat16", "with all layers in float32")),
    ("MP908", "less-than-a-tenth-of-the-change", parted(0.1, 0.011), SILENT),
    ("MP908", "rounding-does-as-much", parted(0.3, 0.07), SILENT),
    ("MP908", "without-the-control", parted(0.3, None), SILENT),
    (
        "MP908",
        "a-part-of-the-loss-that-began-high",
        parted(1.7, 1.001, single=1.0, begins=1e5, throughout=1.01),
        ("its mean is 1.7 in float16 and 1 in float32", "hand on rounded as well, it is 1.01"),
    ),
    ("MP908", "what-rounding-throughout-does", parted(1.7, 1.001, single=1.0, begins=1e5, throughout=1.2), SILENT),
    ("MP908", "a-small-part-of-the-loss", parted(1.015, 1.0, single=1.0, begins=1e5, throughout=1.0), SILENT),
    ("MP908", "a-loss-below-0", parted(-1.7, -1.0, single=-1.0, begins=1e5, throughout=-1.0), SILENT),
    ("MP908", "near-0-as-roundings-are", parted(3e-6, 1e-6, single=1e-6, throughout=2.5e-6), SILENT),
    ("MP908", "roundings-of-the-loss", parted(1.005, 1.0, single=1.0), SILENT),
    ("MP908", "not-finite", parted(math.inf, 0.011), SILENT),
    ("MP908", "a-stuck-training", {**parted(0.3, 0.011), "steps": skipped(50)["steps"]}, SILENT),
    ("MP908", "nobody-asked", {}, SILENT),
    (
        "MP909",
        "float16-weights",
        {**PURE, **stands_still(0.01, 0.5, update=6.3e-6, half_digit=4.9e-4, variable="dense/kernel", dtype="float16")},
        ("50 steps were applied", "6.3e-06, is that of `dense/kernel`, which is float16", "0.00049", '"mixed_float16"'),
    ),
    (
        "MP909",
        "a-bfloat16-layer",
        {
            "model": model(layer("dense", policy="bfloat16"), layer("dense_1")),
            **stands_still(0.01, 0.5, factor=1.0, update=6.3e-6, variable="dense/kernel", dtype="bfloat16"),
        },
        ("is rounded away", 'Give `dense` `dtype="mixed_bfloat16"`'),
    ),
    (
        "MP909",
        "a-float16-weight-of-a-mixed-layer",
        {
            "model": model(layer("dense"), layer("dense/scale")),
            **stands_still(0.01, 0.5, factor=1.0, update=6.3e-6, variable="dense/scale/gain", dtype="float16"),
        },
        ("Make `dense/scale/gain` in float32", "leave the `dtype` out"),
    ),
    (
        "MP909",
        "float32-weights",
        stands_still(1e-12, 0.5, factor=1.0, update=5e-12, half_digit=3e-8, variable="dense/kernel", dtype="float32"),
        ("float32, where half of the last digit is 3e-08", "Raise the learning rate: 1e-12 is too small"),
    ),
    (
        "MP909",
        "flushed-at-a-scale-of-1",
        {**stands_still(0.01, 0.0, factor=256.0), "steps": tuple(StepFacts(1.0, True) for _ in range(50))},
        ("At the loss scale of 1 every gradient is 0, and at 256 some are not", "the default of 32768"),
    ),
    (
        "MP909",
        "flushed-at-the-default",
        stands_still(0.01, 0.0, factor=65536.0),
        ("At the loss scale of 32768 every gradient is 0", "initial_scale=2.14748e+09"),
    ),
    (
        "MP909",
        "flushed-without-a-scale",
        {**stands_still(0.01, 0.0, factor=256.0), "steps": tuple(StepFacts(None, True) for _ in range(50))},
        ("Without a loss scale every gradient is 0", "`LossScaleOptimizer(optimizer)`"),
    ),
    ("MP909", "a-rate-of-0", stands_still(0.0, 0.5), ("The learning rate is 0 after 50 steps", "Give the optimizer")),
    (
        "MP909",
        "a-schedule-of-0",
        stands_still(0.0, schedule="Warmup"),
        ("that `Warmup` returns is still 0 after 50 steps", "An integer division"),
    ),
    (
        "MP909",
        "a-schedule-in-float16",
        stands_still(0.0, schedule="Warmup", rate_dtype="float16"),
        ("is still 0 after 50 steps. It is float16", "`tf.cast(step, tf.float32)` in `Warmup`"),
    ),
    (
        "MP909",
        "a-loss-that-is-constant",
        stands_still(0.01, 0.0, most=4.3e9, reaches_output=False),
        (
            "Every gradient is 0, even with the loss multiplied by 4.3e+09",
            "already 0 where the loss passes it to the model",
        ),
    ),
    (
        "MP909",
        "a-loss-of-0",
        {
            **stands_still(0.01, 0.0, most=4.3e9, reaches_output=False),
            "steps": tuple(StepFacts(32768.0, True, loss=0.0) for _ in range(50)),
        },
        ("The loss is 0 at every step, and so is every gradient", "Train on data that the model does not fit yet"),
    ),
    (
        "MP909",
        "a-loss-divided-by-infinity",
        stands_still(
            0.01, 0.0, most=4.3e9, reaches_output=False, overflow=operation("Sum", 2.0, 131072.0, where="loss")
        ),
        (
            "In the loss summing numbers up to 2 gives 131,072 (line 6): inf in float16",
            "compute it in float32, `tf.cast(x, tf.float32)` before anything",
        ),
    ),
    (
        "MP909",
        "a-layer-divided-by-infinity",
        stands_still(0.01, 0.0, most=4.3e9, layer="norm", overflow=operation("Square", 2.0, 131072.0)),
        ("In a layer squaring numbers up to 2 gives 131,072 (line 6): inf in float16", "(Not tried.)"),
    ),
    (
        "MP909",
        "dead-relus",
        stands_still(0.01, 0.0, most=4.3e9, layer="hidden", layer_class="Dense", puts_out_zeros=True),
        ("reaches the output of layer `hidden` (Dense), which is 0 for the whole batch", "ReLU"),
    ),
    (
        "MP909",
        "a-gradient-that-is-stopped",
        stands_still(0.01, 0.0, most=4.3e9, layer="hidden", layer_class="Dense"),
        ("reaches the output of layer `hidden` (Dense), and ends there", "tf.stop_gradient"),
    ),
    (
        "MP909",
        "an-optimizer-that-does-nothing",
        stands_still(0.01, 32768.0, factor=1.0),
        ("The gradients reach 1 and the learning rate is 0.01, but the optimizer changes no weight",),
    ),
    (
        "MP909",
        "a-beta-2-that-is-1-in-bfloat16",
        {**of_adam(0.999), **stands_still(0.001, 0.5, dtype="bfloat16", **MOVES)},
        (
            "In float64 Adam would change `dense/kernel` by up to 0.00071. It computes in the weight's dtype, "
            "bfloat16, in which its beta_2 of 0.999 is 1",
            'set_global_policy("mixed_bfloat16")',
        ),
    ),
    (
        "MP909",
        "a-beta-2-below-1-in-bfloat16",
        {**of_adam(0.99), **stands_still(0.001, 0.5, dtype="bfloat16", **MOVES)},
        ("The gradients reach 1.53e-05 and the learning rate is 0.001, but the optimizer changes no weight",),
    ),
    ("MP909", "nothing-measured", weights("float16"), ("not one trainable variable changed.", "learning rate")),
    ("MP909", "weights-moved", {}, SILENT),
    ("MP909", "not-compared", {"weights_changed": None}, SILENT),
    ("MP909", "nothing-applied", skipped(50), SILENT),
    ("MP909", "too-few-steps", {"steps": good_steps(9), "weights_changed": False}, SILENT),
]
