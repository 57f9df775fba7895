"""Programs with one defect each, whose layer and cause are known; and their right and bfloat16 twins.

Each function builds the program and returns what is true of it. `right` asks for the same program without the defect.
"""

from __future__ import annotations

from collections.abc import Callable

from .bodies import features, regression_head
from .writing import FLOAT16, KERAS3, Program, Truth, custom_layer

Disease = Callable[[Program, bool], Truth]
HEALTHY = Truth()
NEVER_FITS = frozenset({"collapsing", "stuck"})
NAMES = {
    "Boost": ("boost", "amplify", "gain", "units"),
    "Pool": ("pool", "total", "energy", "collect"),
    "Norm": ("unit", "normed", "direction"),
    "Logs": ("logs", "decibel", "entropy"),
    "Mask": ("attend", "masked", "scores"),
    "Ratio": ("ratio", "per_size", "density"),
}


def named(program: Program, kind: str) -> str:
    return program.random.choice(NAMES[kind])


def dense(program: Program, name: str, units: int, activation: str = "tanh") -> tuple[str, str]:
    return name, f'keras.layers.Dense({units}, activation="{activation}", name="{name}")'


def some_width(program: Program) -> int:
    return program.random.choice((8, 12, 16, 24))


# --- what overflows on the way forward ------------------------------------------------------------------------------
def large_constant(program: Program, right: bool) -> Truth:
    """A layer multiplies by a constant, the next one divides by it: inf / C stays inf."""
    name, factor = named(program, "Boost"), program.random.choice((30000.0, 45000.0, 60000.0))
    if right:
        factor = program.random.choice((20.0, 100.0))
    program.shape = (some_width(program),)
    program.definitions.append(custom_layer("Boost", f"return x * {factor}"))
    program.definitions.append(custom_layer("Shrink", f"return x / {factor}"))
    program.layers += [dense(program, "hidden", some_width(program), "linear"), (name, f'Boost(name="{name}")')]
    program.layers += [("shrink", 'Shrink(name="shrink")'), dense(program, "after", 8)]
    regression_head(program)
    program.data[0] += " * 20" if not right else ""
    if right:
        return HEALTHY
    return Truth("activation overflows by a large constant", NEVER_FITS, frozenset({name}), frozenset({"MP904"}))


def operator(program: Program, right: bool) -> Truth:
    """The same as an operator between functional layers, which Keras 3 makes a layer of."""
    factor = program.random.choice((40000.0, 60000.0)) if not right else 10.0
    program.shape, program.style, program.training = (some_width(program),), "functional", "fit"
    program.layers += [dense(program, "hidden", some_width(program), "linear")]
    program.layers += [("boost", f"* {factor}"), dense(program, "after", 8, "tanh")]
    regression_head(program)
    program.data[0] += " * 20" if not right else ""
    if right:
        return HEALTHY
    names = frozenset({"multiply", "tf.math.multiply"})
    return Truth("activation overflows in an operator", NEVER_FITS, names, frozenset({"MP904"}))


def long_sum(program: Program, right: bool) -> Truth:
    """Adds up over a long axis what a mean would have kept small."""
    name, length = named(program, "Pool"), program.random.choice((300, 500))
    program.shape = (length, 4)
    kind = program.random.choice(("reduce_sum(x, axis=1)", "reduce_sum(tf.square(x), axis=1)"))
    body = f"return tf.{kind}" if not right else "return tf.reduce_max(x, axis=1)"
    program.definitions.append(custom_layer("Pool", body))
    program.definitions.append(custom_layer("Squash", "return tf.math.log1p(tf.abs(x))"))
    program.layers += [("embed", f'keras.layers.Dense({some_width(program)}, activation="relu", name="embed")')]
    program.layers += [(name, f'Pool(name="{name}")'), ("squash", 'Squash(name="squash")'), dense(program, "after", 8)]
    regression_head(program, 'y = np.tanh(x[:, 0, :1]).astype("float32")')
    program.data[0] = program.data[0].replace("rng.normal", "100 + 400 * rng.normal" if not right else "rng.normal")
    if right:
        return HEALTHY
    codes = frozenset({"MP904", "MP503"})
    return Truth("activation overflows by a long sum", NEVER_FITS, frozenset({name}), codes)


def large_kernel(program: Program, right: bool) -> Truth:
    """A dense layer or a convolution whose weights begin far too large."""
    conv = program.random.random() < 0.5
    large = "keras.initializers.Constant(400.0)" if not right else '"he_normal"'
    program.shape = (10, 10, 2) if conv else (16,)
    kinds = ("Conv2D(4, 3", "GlobalAveragePooling2D()") if conv else ("Dense(12", "")
    program.layers += [("first", f'keras.layers.{kinds[0]}, name="first")')]
    program.layers += [("wide", f'keras.layers.{kinds[0]}, kernel_initializer={large}, name="wide")')]
    if conv:
        if program.random.random() < 0.5:
            program.layers += [("norm", 'keras.layers.BatchNormalization(name="norm")')]
        program.layers += [("pool", f"keras.layers.{kinds[1]}")]
    # A tanh would make 1 of inf and a gradient of 0: the training would go on.
    program.layers += [("squash", "keras.layers.LayerNormalization()")]
    regression_head(program, 'y = np.tanh(x.reshape(len(x), -1)[:, :1]).astype("float32")')
    program.data[0] = program.data[0].replace("rng.normal", "100 + 30 * rng.normal" if not right else "rng.normal")
    if right:
        return HEALTHY
    return Truth("activation overflows in a large kernel", NEVER_FITS, frozenset({"wide"}), frozenset({"MP904"}))


def small_epsilon(program: Program, right: bool) -> Truth:
    """An epsilon that is 0 in float16, under a division or a logarithm of what is 0."""
    epsilon = program.random.choice(("1e-8", "1e-9", "1e-12")) if not right else "1e-3"
    program.shape = (some_width(program),)
    if program.random.random() < 0.5:
        name, kind = named(program, "Norm"), "Norm"
        body = f"size = tf.reduce_sum(tf.abs(x), axis=-1, keepdims=True)\nreturn x / (size + {epsilon})"
        program.layers += [(name, f'{kind}(name="{name}")'), dense(program, "hidden", 8), dense(program, "after", 8)]
        rows = "x[::4] = 0.0"
    else:
        name, kind = named(program, "Logs"), "Logs"
        body = f"return tf.math.log(tf.nn.relu(x) + {epsilon})"
        program.layers += [dense(program, "hidden", 8, "linear"), (name, f'{kind}(name="{name}")')]
        program.layers += [dense(program, "after", 8)]
        rows = ""
    program.definitions.append(custom_layer(kind, body))
    regression_head(program)
    program.data.insert(1, rows)
    program.data[:] = [line for line in program.data if line]
    if right:
        return HEALTHY
    codes = frozenset({"MP502", "MP904"})
    return Truth("epsilon vanishes", NEVER_FITS, frozenset({name}), codes, words="epsilon|1e-")


def mask_constant(program: Program, right: bool) -> Truth:
    """A mask times -1e9: 0 · -inf is NaN."""
    name, width = named(program, "Mask"), program.random.choice((8, 16))
    program.shape = (program.random.choice((6, 8)), width)
    style = program.random.choice(("(1.0 - mask) * -1e9", "mask_out * -1e9"))
    made = "mask = tf.cast(tf.range(tf.shape(x)[1]) < 4, x.dtype)"
    if style.startswith("mask_out"):
        made = "mask_out = tf.cast(tf.range(tf.shape(x)[1]) >= 4, x.dtype)"
    added = f"scores = scores + {style}"
    if right:
        made = "keep = tf.range(tf.shape(x)[1]) < 4"
        added = "scores = tf.where(keep, scores, tf.cast(-1e4, scores.dtype))"
    body = (
        f"scores = tf.matmul(x, x, transpose_b=True) * {width}**-0.5\n{made}\n{added}\n"
        "return tf.matmul(tf.nn.softmax(scores), x)"
    )
    program.definitions.append(custom_layer("Attend", body))
    program.layers += [("embed", f'keras.layers.Dense({width}, name="embed")'), (name, f'Attend(name="{name}")')]
    program.layers += [("pool", "keras.layers.GlobalAveragePooling1D()")]
    regression_head(program, 'y = np.tanh(x[:, 0, :1]).astype("float32")')
    if right:
        return HEALTHY
    return Truth(
        "mask of -1e9", NEVER_FITS, frozenset({name}), frozenset({"MP501", "MP904"}), words="-1e9|constant|mask"
    )


# --- what overflows in the loss -------------------------------------------------------------------------------------
def loss_in_half(program: Program, right: bool) -> Truth:
    """Errors are squared and added up in float16."""
    program.shape = (some_width(program),)
    reduction = program.random.choice(("reduce_sum", "reduce_mean"))
    cast = "tf.float32" if right else "tf.float16" if program.policy == FLOAT16 else "tf.bfloat16"
    program.definitions.append(
        f"def squared_error(y_true, y_pred):\n    error = tf.cast(y_pred, {cast}) - tf.cast(y_true, {cast})\n"
        f"    return tf.{reduction if not right else 'reduce_mean'}(tf.square(error))"
    )
    program.layers += [dense(program, "hidden", some_width(program))]
    target = "1000" if not right else "1"
    regression_head(program, f'y = {target} * np.sign(x[:, :1]).astype("float32")', "1e-9" if not right else "1e-2")
    program.loss = "squared_error"
    if right:
        return HEALTHY
    codes = frozenset({"MP907", "MP504", "MP503", "MP207", "MP408", "MP902", "MP903"})
    words = "loss|squar|sum|float16"
    # A mean of squares that is inf has finite gradients: its steps are applied.
    verdicts = frozenset({*NEVER_FITS, "not-finite"})
    return Truth("overflow in the loss", verdicts, frozenset({"(loss)"}), codes, words, unfit=True)


def log_of_softmax(program: Program, right: bool) -> Truth:
    """The logarithm of a float16 softmax whose smaller entries are 0."""
    program.shape = (some_width(program),)
    dtype = ', dtype="float32"' if right else ""
    log = "tf.math.log(y_pred)" if not right else "tf.math.log(y_pred + 1e-7)"
    program.definitions.append(f"def cross_entropy(y_true, y_pred):\n    return -tf.reduce_mean(y_true * {log})")
    regression_head(program)
    program.layers[:] = [
        ("logits", 'keras.layers.Dense(4, kernel_initializer="random_normal", name="logits")'),
        ("shares", f'keras.layers.Activation("softmax", name="shares"{dtype})'),
    ]
    program.data[0] += " * 300" if not right else ""
    program.data[1] = 'y = np.eye(4, dtype="float32")[rng.integers(0, 4, len(x))]'
    program.loss = "cross_entropy"
    if right:
        return HEALTHY
    return Truth(
        "log of a float16 softmax",
        NEVER_FITS,
        frozenset({"(loss)"}),
        frozenset({"MP201", "MP507", "MP504"}),
        never="Add an epsilon",
        unfit=True,
    )


def mean_of_many(program: Program, right: bool) -> Truth:
    """A float16 mean over more than 65504 values: its gradient divides by a count that is inf."""
    size = program.random.choice((48, 52))
    program.shape, program.batch, program.batches = (size, size, 1), 32, 4
    cast = "tf.float32" if right else "tf.float16" if program.policy == FLOAT16 else "tf.bfloat16"
    program.definitions.append(
        f"def pixel_error(y_true, y_pred):\n    error = tf.cast(y_pred, {cast}) - tf.cast(y_true, {cast})\n"
        "    return tf.reduce_mean(tf.square(error))"
    )
    program.layers += [("conv", 'keras.layers.Conv2D(2, 3, padding="same", activation="tanh", name="conv")')]
    program.layers += [("head", 'keras.layers.Conv2D(1, 1, dtype="float32", name="head")')]
    program.data += [features(program).replace("normal(", "normal(scale=0.1, "), "y = 0.5 * x"]
    program.loss, program.optimizer = "pixel_error", "keras.optimizers.SGD(0.01)"
    if right:
        return HEALTHY
    codes = frozenset({"MP503", "MP504", "MP909"})
    return Truth(
        "mean over more than 65504 float16 values",
        frozenset({"no-update"}),
        codes=codes,
        words=r"65504|65,504|mean|average",
        never="flushed to 0|on a GPU",
    )


# --- what overflows on the way back ---------------------------------------------------------------------------------
def root_at_zero(program: Program, right: bool) -> Truth:
    """The gradient of a root at 0 is inf, at every scale."""
    name = named(program, "Norm")
    inside = "tf.reduce_sum(tf.square(x), axis=-1, keepdims=True)"
    inside = f"{inside} + 1e-3" if right else inside
    program.shape = (some_width(program),)
    program.definitions.append(custom_layer("Length", f"return tf.concat([x, tf.sqrt({inside})], axis=-1)"))
    hidden = f'keras.layers.Dense({some_width(program)}, use_bias=False, name="hidden")'
    program.layers += [("hidden", hidden), (name, f'Length(name="{name}")'), dense(program, "after", 8)]
    regression_head(program)
    program.data.insert(1, "x[::4] = 0.0")
    if right:
        return HEALTHY
    codes = frozenset({"MP902", "MP903", "MP905", "MP907"})
    verdicts = NEVER_FITS | {"overflowing"}  # at a scale far below 1 the gradients that come there are 0
    return Truth("gradient of a root at 0", verdicts, frozenset({name}), codes, r"sqrt|root", unfit=True)


def divided_by_small(program: Program, right: bool) -> Truth:
    """A quotient that float16 holds, whose gradient by the divisor it does not."""
    name, small = named(program, "Ratio"), program.random.choice(("1e-3", "2e-3")) if not right else "0.5"
    program.shape = (some_width(program),)
    program.definitions.append(
        f"class Ratio(keras.layers.Layer):\n    def build(self, shape):\n"
        f"        self.size = self.add_weight(shape=(shape[-1],), initializer=keras.initializers.Constant({small}), "
        f'name="size")\n\n    def call(self, x):\n        return x / self.size'
    )
    program.definitions.append(custom_layer("Squash", "return x * tf.cast(1e-3, x.dtype)"))
    program.layers += [dense(program, "hidden", some_width(program)), (name, f'Ratio(name="{name}")')]
    program.layers += [("squash", 'Squash(name="squash")'), dense(program, "after", 8)]
    regression_head(program, rate="1e-12" if not right else "1e-3")
    program.loss = f"lambda y_true, y_pred: {'3e4' if not right else '1'} * tf.reduce_mean(tf.square(y_true - y_pred))"
    if right:
        return HEALTHY
    codes = frozenset({"MP902", "MP903", "MP905"})
    # The scale may come to rest below 1: what happens then is plain Keras' to say.
    return Truth("gradient of a division overflows", frozenset(), frozenset({name}), codes, "divi|grad")


def loss_factor(program: Program, right: bool) -> Truth:
    """The loss is multiplied by so much that its gradient leaves float16 where float32 ends."""
    factor = program.random.choice(("1e13", "1e14")) if not right else "2.0"
    program.shape = (some_width(program),)
    program.definitions.append(
        f"def weighted(y_true, y_pred):\n    return {factor} * tf.reduce_mean(tf.square(y_true - y_pred))"
    )
    program.layers += [dense(program, "first", 8), dense(program, "hidden", some_width(program))]
    regression_head(program, rate="1e-18" if not right else "1e-3")
    program.loss = "weighted"
    if right:
        return HEALTHY
    codes = frozenset({"MP902", "MP903", "MP905"})
    return Truth("only gradients overflow", NEVER_FITS, frozenset({"hidden"}), codes, "gradient", unfit=True)


def fixed_scale(program: Program, right: bool) -> Truth:
    """A loss scale that nobody lowers: inf goes into the weights."""
    program.shape = (some_width(program),)
    program.layers += [dense(program, "first", 8), dense(program, "hidden", some_width(program))]
    scale = "2.0**30" if not right else "2.0**7"
    regression_head(program)
    if program.keras == KERAS3:
        program.training, program.step = program.random.choice(("loop", "eager")), "factor"
        program.optimizer = f"keras.optimizers.SGD(1e-3, loss_scale_factor={scale})"
    else:
        program.wrapper = f"keras.mixed_precision.LossScaleOptimizer({{inner}}, dynamic=False, initial_scale={scale})"
        program.compiled = program.wrapper
    if right:
        return HEALTHY
    return Truth("fixed scale overflows", frozenset({"not-finite"}), codes=frozenset({"MP911"}))


def scale_grows_often(program: Program, right: bool) -> Truth:
    """Doubled after every second step: every third one is skipped, for ever."""
    program.shape = (some_width(program),)
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program, "y = 3.0 + x[:, :1]")
    interval = "2" if not right else "2000"
    program.wrapper = f"keras.mixed_precision.LossScaleOptimizer({{inner}}, dynamic_growth_steps={interval})"
    program.compiled = program.wrapper
    if right:
        return HEALTHY
    codes = frozenset({"MP310", "MP905", "MP910"})
    return Truth("loss scale grows too often", frozenset(), codes=codes, words="growth")


def short_script(program: Program, right: bool) -> Truth:
    """The script ends before the scale has come down: none of its steps counts."""
    program.shape, program.training = (some_width(program),), program.random.choice(("fit", "dataset"))
    program.batches, program.steps = 8, 24
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program, "y = 1.0 + x[:, :1]")
    scale = "2.0**60" if not right else "2.0**14"
    program.wrapper = f"keras.mixed_precision.LossScaleOptimizer({{inner}}, initial_scale={scale})"
    program.compiled = program.wrapper
    if right:
        return HEALTHY
    codes = frozenset({"MP910"})
    return Truth(
        "every step of a short script is skipped", frozenset({"inconclusive"}), codes=codes, words="initial_scale"
    )


def rests_below_one(program: Program, right: bool) -> Truth:
    """The loss is multiplied by so much that its gradients fit float16 at a scale below 1 only (Keras 3)."""
    factor = program.random.choice(("3e8", "1e9")) if not right else "3.0"
    program.shape = (some_width(program),)
    program.definitions.append(
        f"def weighted(y_true, y_pred):\n    return {factor} * tf.reduce_mean(tf.square(y_true - y_pred))"
    )
    program.layers += [dense(program, "first", 8), dense(program, "hidden", some_width(program))]
    regression_head(program, rate="1e-13" if not right else "1e-3")
    program.loss = "weighted"
    if right:
        return HEALTHY
    codes = frozenset({"MP905", "MP902", "MP903"})
    return Truth("scale comes to rest below 1", frozenset(), codes=codes, words="gradient")


# --- the scale moves, and that is right -----------------------------------------------------------------------------
MOVING = Truth(verdicts=frozenset({"healthy", "settling"}))


def large_targets(program: Program, right: bool) -> Truth:
    """Targets in tens or hundreds: steps are skipped until the scale has found its place."""
    program.shape = (some_width(program),)
    program.layers += [dense(program, "hidden", some_width(program)), dense(program, "after", 8, "relu")]
    height = program.random.choice((30, 100, 300)) if not right else 10
    regression_head(program, f"y = {height} + {height} * x[:, :1]", "1e-5")
    return MOVING


def scale_that_grows(program: Program, right: bool) -> Truth:
    """A growth interval that ends within the training: the scale is doubled, and halved where that is too much."""
    program.shape = (some_width(program),)
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program, "y = 3.0 + x[:, :1]", "1e-4")
    interval, scale = program.random.choice((15, 25, 40)), program.random.choice((8, 12, 18)) if not right else 10
    program.wrapper = (
        f"keras.mixed_precision.LossScaleOptimizer({{inner}}, initial_scale=2.0**{scale}, "
        f"dynamic_growth_steps={interval})"
    )
    program.compiled = program.wrapper
    return MOVING


# --- what never learns ----------------------------------------------------------------------------------------------
def rate_of_zero(program: Program, right: bool) -> Truth:
    """A learning rate, or a schedule, that is 0."""
    program.shape = (some_width(program),)
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program)
    schedule = "keras.optimizers.schedules.PiecewiseConstantDecay([10000], [{first}, 1e-3])"
    rate = program.random.choice(("{first}", schedule)).format(first="0.0" if not right else "1e-2")
    kind = program.random.choice(("SGD", "Adam", "RMSprop"))
    program.optimizer = f"keras.optimizers.{kind}({rate})"
    if right:
        return HEALTHY
    words = "learning rate"
    return Truth(
        "learning rate 0", frozenset({"no-update"}), codes=frozenset({"MP909"}), words=words, never="flushed to 0"
    )


def dead_relu(program: Program, right: bool) -> Truth:
    """The last layer is a ReLU far below 0: its gradient is 0 at every scale."""
    bias = "-500.0" if not right else "1.0"
    program.shape = (some_width(program),)
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program, "y = np.abs(x[:, :1])")
    program.layers[-1] = (
        "head",
        f'keras.layers.Dense(1, activation="relu", bias_initializer=keras.initializers.Constant({bias}), '
        'dtype="float32", name="head")',
    )
    if right:
        return HEALTHY
    words = "(?i)relu|gradients? (is|are) 0|dead|every gradient is 0"
    return Truth("dead ReLU", frozenset({"no-update"}), codes=frozenset({"MP909"}), words=words, never="flushed to 0")


def divergence(program: Program, right: bool) -> Truth:
    """A learning rate far too high: the weights grow, step by step, until float16 ends."""
    rate = program.random.choice(("2.0", "5.0")) if not right else "1e-2"
    program.shape = (some_width(program),)
    program.layers += [dense(program, "hidden", some_width(program), "linear")]
    regression_head(program, "y = 3 * x[:, :1]", rate)
    if right:
        return HEALTHY
    words = "(?i)diverg|learning rate|grew|grow"
    codes = frozenset({"MP904", "MP902", "MP903", "MP907", "MP905"})
    return Truth(
        "divergence", frozenset({*NEVER_FITS, "not-finite"}), codes=codes, words=words, never="initial weights"
    )


# --- data -----------------------------------------------------------------------------------------------------------
def broken_data(program: Program, right: bool) -> Truth:
    """NaN or inf in every batch, or in one an epoch."""
    value = program.random.choice(("np.nan", "np.inf"))
    every = program.random.random() < 0.5
    program.shape, program.shuffle, program.batches = (some_width(program),), False, 8
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program)
    program.data.append(
        f"x[::{'BATCH' if every else 'BATCH * BATCHES'}, 1] = {value}" if not right else "x[0, 0] = 1.0"
    )
    if right:
        return HEALTHY
    verdicts = NEVER_FITS if every else frozenset({"overflowing", "settling"})
    codes = frozenset({"MP902", "MP903", "MP905", "MP907", "MP904"})
    return Truth("NaN or inf in the data", verdicts, frozenset({"(data)"}), codes, "data|batch itself", unfit=True)


def broken_labels(program: Program, right: bool) -> Truth:
    """The same in the labels: no layer has to do with it."""
    value = program.random.choice(("np.nan", "np.inf"))
    every = program.random.random() < 0.5
    program.shape, program.shuffle, program.batches = (some_width(program),), False, 8
    program.layers += [dense(program, "hidden", some_width(program))]
    regression_head(program)
    program.data.append(f"y[::{'BATCH' if every else 'BATCH * BATCHES'}] = {value}" if not right else "y[0] = 1.0")
    if right:
        return HEALTHY
    verdicts = NEVER_FITS if every else frozenset({"overflowing", "settling"})
    codes = frozenset({"MP902", "MP903", "MP905", "MP907"})
    return Truth(
        "NaN or inf in the labels",
        verdicts,
        frozenset({"(data)"}),
        codes,
        "data|label|batch itself",
        "a constant",
        True,
    )


# name: (function, whether bfloat16 heals it)
DISEASES: dict[str, tuple[Disease, bool]] = {
    "large_constant": (large_constant, True),
    "operator": (operator, True),
    "long_sum": (long_sum, True),
    "large_kernel": (large_kernel, True),
    "small_epsilon": (small_epsilon, True),
    "mask_constant": (mask_constant, True),
    "loss_in_half": (loss_in_half, False),
    "log_of_softmax": (log_of_softmax, False),
    "mean_of_many": (mean_of_many, False),
    "root_at_zero": (root_at_zero, False),
    "divided_by_small": (divided_by_small, True),
    "loss_factor": (loss_factor, True),
    "fixed_scale": (fixed_scale, False),
    "scale_grows_often": (scale_grows_often, False),
    "short_script": (short_script, False),
    "rests_below_one": (rests_below_one, True),
    "large_targets": (large_targets, False),
    "scale_that_grows": (scale_that_grows, False),
    "rate_of_zero": (rate_of_zero, False),
    "dead_relu": (dead_relu, False),
    "divergence": (divergence, False),
    "broken_data": (broken_data, False),
    "broken_labels": (broken_labels, False),
}
