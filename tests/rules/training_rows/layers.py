"""Trainings in which a layer or the input leaves the range of 16 bits, and what is said of them."""

from __future__ import annotations

import dataclasses
import math

from samples import layer, model
from training_facts import (
    IN_FLOAT32,
    LAYERS_RAISE,
    LOSS_FAILED,
    SIGMOID,
    SILENT,
    STORY,
    broken,
    culprit,
    diverging,
    function_that_overflows,
    hidden,
    in_loss,
    on_the_way_back,
    operation,
)

from mpdoctor.facts.training import (
    NamedOperand,
)
from training_rows import Row

ROWS: list[Row] = [
    (
        "MP503",
        "a-sum-in-a-layer",
        broken("Sum", largest=300.0, in_float32=1228800.0),
        ("summing numbers up to 300 gives 1,228,800", "65504"),
    ),
    ("MP503", "exp-in-the-loss", in_loss("Exp", largest=12.0, in_float32=162754.0), ("exp() of numbers up to 12",)),
    ("MP503", "a-matrix-product", broken("MatMul"), SILENT),
    (
        "MP503",
        "a-mean-of-too-many",
        in_loss("Mean", averaged=262144, **IN_FLOAT32),
        ("a mean over 262,144 float16 values is inf", "From 65520 values on", "gradient is 0 at every loss scale"),
    ),
    ("MP503", "a-mean-that-a-cpu-loses", broken("Mean", averaged=65519, **IN_FLOAT32), SILENT),
    ("MP503", "on-this-device-alone", broken("Mean", **IN_FLOAT32), SILENT),
    ("MP503", "on-the-way-back", on_the_way_back("Sum"), SILENT),
    ("MP503", "hidden", hidden("Square"), ("squaring numbers up to 332", "No step is skipped", "42% of its size")),
    ("MP503", "hidden-elsewhere", hidden("Mul"), SILENT),
    ("MP503", "a-wave", hidden("Cos"), SILENT),
    (
        "MP511",
        "in-a-layer",
        broken("Softmax", in_float32=None, masked=True, result="nan"),
        ("layer `square`", "(line 6)", "every value is -inf", "step 4", "-1e4"),
    ),
    ("MP511", "infinite-logits", broken("Softmax", in_float32=None, result="nan"), SILENT),
    ("MP511", "a-mask-times-zero", broken("Mul", in_float32=None, masked=True, result="nan"), SILENT),
    (
        "MP512",
        "a-wave",
        hidden("Sin"),
        ("sin() is taken of float16 angles up to 332", "lie 0.25 apart", 'dtype="float32": then no angle loses'),
    ),
    ("MP512", "a-wave-behind-it", hidden("Cos", is_healed=False), ("cos()", 'dtype="float32". A cast')),
    ("MP512", "hidden-overflow", hidden("Square"), SILENT),
    (
        "MP601",
        "a-timestamp",
        broken("Cast", largest=1.6e9, in_float32=1.6e9, from_data=True),
        ("1.6e+09", "step 4", "`square` (Square) casts it to float16", "65504", 'dtype="float32"'),
    ),
    ("MP601", "what-a-layer-made", broken("Cast", largest=1e6, in_float32=1e6), SILENT),
    ("MP601", "within-range", broken("Cast", largest=1e4, in_float32=1e4, from_data=True), SILENT),
    (
        "MP904",
        "with-what-led-up-to-it",
        culprit(),
        ("`square` (Square)", "40% of its values", "step 4", "`dense`, reaches 812", "65504", 'dtype="float32"'),
    ),
    ("MP904", "the-first-layer", culprit(frames=()), ("from finite inputs. The largest float16 number is",)),
    (
        "MP904",
        "a-loss-that-the-layer-adds",
        {"culprit": dataclasses.replace(culprit(nonfinite=0.0)["culprit"], operation=operation("Sum"))},
        ("In layer `square` (Square) a result is not finite, at step 4", "The layer's output itself is finite"),
    ),
    ("MP904", "one-value-of-many", culprit(nonfinite=0.0004), ("some of its values",)),
    ("MP904", "every-value", culprit(nonfinite=1.0), ("100% of its values",)),
    ("MP904", "its-input-was-not-finite", culprit(inputs_finite=False), SILENT),
    ("MP904", "in-float32", culprit(dtype="float32"), SILENT),
    ("MP904", "in-bfloat16", culprit(dtype="bfloat16"), SILENT),
    ("MP904", "nothing-overflowed", {}, SILENT),
    (
        "MP904",
        "names-the-operation",
        broken("Square"),
        ("squaring numbers up to 332 gives 110,556", "65504", 'give `square` dtype="float32". Or '),
    ),
    (
        "MP904",
        "in-the-code-of-a-whole-model",
        {**broken("Square"), "model": dataclasses.replace(model(layer("dense")), name="square")},
        (
            "Compute in float32 in this line, `tf.cast(x, tf.float32)`",
            "the layers inside `square` have their own dtypes",
        ),
    ),
    (
        "MP904",
        "in-the-code-of-a-layer-with-layers",
        {**broken("Square"), "model": model(layer("square", own_class=True), layer("square/dense"), layer("head"))},
        ("Compute in float32 in this line", "does not reach them. Or normalise"),
    ),
    (
        "MP904",
        "of-a-library-s-layer-with-layers",
        {**broken("Square"), "model": model(layer("square"), layer("square/dense", policy="float32"))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "a-division-in-a-whole-model",
        {**broken("RealDiv", in_float32=None, holds_zero=True), "model": dataclasses.replace(model(), name="square")},
        ("Divide with `tf.math.divide_no_nan`", "or compute what is 0 here in float32 from where it begins, `tf.cast("),
    ),
    (
        "MP904",
        "float32-layers-follow",
        {**broken("MatMul"), "model": model(layer("square"), layer("head", policy="float32"))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "its-activation-brings-the-values-back",
        {**broken("MatMul"), "model": model(layer("square", settings=SIGMOID), layer("next"))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "the-next-layer-would-cast-them-again",
        {**broken("MatMul"), "model": model(layer("square"), layer("norm", "LayerNormalization"), layer("last"))},
        ('give all of `square` and `norm` dtype="float32"',),
    ),
    (
        "MP904",
        "a-normalization-that-casts-nothing",
        {**broken("MatMul"), "model": model(layer("square"), layer("norm", "LayerNormalization", autocast=False))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "nothing-brings-them-back",
        {**broken("MatMul"), "model": model(layer("square"), *(layer(f"next_{n}") for n in range(6)))},
        ("Make its values smaller", "all 7 layers from `square` to `next_5`"),
    ),
    (
        "MP904",
        "a-shared-layer",
        {"culprit": dataclasses.replace(culprit(call=2)["culprit"], calls=3)},
        ("in call 2 of 3 in the step",),
    ),
    (
        "MP904",
        "a-root-of-nothing",
        broken("RealDiv", in_float32=math.inf, holds_zero=True),
        ("a division by 0 is inf", "divide_no_nan"),
    ),
    (
        "MP904",
        "beyond-float32-as-well",
        broken("Exp", largest=286.0, in_float32=math.inf),
        ("exp() of numbers up to 286 gives inf", "tf.clip_by_value"),
    ),
    (
        "MP904",
        "a-constant",
        broken("Mul", in_float32=None, given="constant", masked=True, result="nan"),
        ("-1e9, is -inf in float16", "tf.where()"),
    ),
    (
        "MP904",
        "a-constant-with-a-name",
        broken("Mul", in_float32=None, given="constant", constant=NamedOperand("self.factor", 1e5)),
        ("`self.factor` is 100,000, and inf in float16", "number that float16 holds, up to 65504"),
    ),
    (
        "MP904",
        "a-constant-in-the-text",
        broken("AddV2", in_float32=None, given="constant", masked=True, constant=NamedOperand("-1e9", -1e9)),
        ("-1e9 is -inf in float16", "tf.where()"),
    ),
    (
        "MP904",
        "hidden",
        hidden("Mul"),
        (
            "numbers up to 332 gives 110,556",
            "No step is skipped",
            "42% of its size",
            '(line 12) and `head` dtype="float32": then',
        ),
    ),
    ("MP904", "hidden-and-followed-by-another", hidden("Mul", is_healed=False), ("are not enough (tried", "Not tried")),
    ("MP904", "hidden-in-a-sum", hidden("Sum"), SILENT),
    ("MP904", "a-wave", hidden("Sin"), SILENT),
    ("MP904", "its-input-was-too-large", broken("Cast", largest=1e6, in_float32=1e6, from_data=True), SILENT),
    ("MP904", "weights-that-were-broken", broken("ReadVariableOp", in_float32=None), SILENT),
    ("MP904", "an-operation-in-float32", broken("Log", dtype="float32"), SILENT),
    ("MP904", "on-this-device-alone", broken("Mean", **IN_FLOAT32), SILENT),
    ("MP904", "a-function", function_that_overflows(), ("The output of `square` (Square)", "Use a smaller constant")),
    ("MP904", "diverging", diverging(culprit()), (STORY, "Lower the learning rate: 0.35 is too high")),
    ("MP904", "diverging-by-an-unknown-rate", diverging(culprit(), learning_rate=None), ("Lower the learning rate.",)),
    (
        "MP904",
        "a-loss-tried-and-layers-that-raise",
        {**broken("Exp"), "remedies": (LAYERS_RAISE, LOSS_FAILED)},
        (
            "A loss in float32 does not help (tried): the step is not finite either. Layers in float32 could not be "
            "tried: the step raises: TypeError.",
        ),
    ),
    (
        "MP904",
        "a-loss-and-layers-tried",
        {**broken("Exp"), "remedies": (dataclasses.replace(LAYERS_RAISE, tried="failed"), LOSS_FAILED)},
        ("`head` in float32 does not help (tried)", "A loss in float32 does not help either (tried)"),
    ),
]
