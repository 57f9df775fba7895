"""What a training script is made of, and its text: a model, data, a loss, an optimizer, a way to train."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

KERAS3, TF_KERAS = "3", "tf_keras"
FLOAT16, BFLOAT16 = "mixed_float16", "mixed_bfloat16"
MODEL_STYLES = ("sequential", "added", "functional", "subclassed")
TRAININGS = ("fit", "dataset", "train_on_batch", "train_step", "loop", "eager")
LOOPS = ("loop", "eager")


@dataclass(frozen=True)
class Truth:
    """What is known of a script because it was made so.

    disease
        Its name; "healthy" where there is none.
    verdicts
        What plain Keras must show for the construction to have come out as meant; empty where any may.
    culprits
        The layers of which one must be named; "(loss)" where it breaks outside of all layers, "(data)" where the batch
        itself is not finite; empty where there is no such place.
    codes, words
        One of these findings must be among mpdoctor's, and match this regular expression ("" matches all).
    never
        What no warning or error may say: a cause that it is not.
    unfit
        Whether the batches that fail do so without any loss scale.
    device_alone
        Whether they fail in kernels of this device alone.
    """

    disease: str = "healthy"
    verdicts: frozenset[str] = frozenset({"healthy"})
    culprits: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    words: str = ""
    never: str = ""
    unfit: bool = False
    device_alone: bool = False

    @property
    def is_healthy(self) -> bool:
        return not self.codes


@dataclass
class Program:
    """A script before it is text. `layers` are (attribute, constructor call), in their order; `data` are the lines that
    make `x` and `y` of `rows` rows; `step`, in a loop, says how the loss scale is handled (see `loops`)."""

    random: Random
    keras: str
    policy: str = FLOAT16
    title: str = ""
    definitions: list[str] = field(default_factory=list)
    layers: list[tuple[str, str]] = field(default_factory=list)
    shape: tuple[int, ...] = (8,)
    ids: bool = False
    data: list[str] = field(default_factory=list)
    loss: str = "keras.losses.MeanSquaredError()"
    optimizer: str = "keras.optimizers.SGD(0.01)"
    batch: int = 32
    batches: int = 10
    steps: int = 60
    style: str = "sequential"
    training: str = "fit"
    step: str = "right"
    wrapper: str = "keras.mixed_precision.LossScaleOptimizer({inner})"
    compiled: str = "{inner}"
    shuffle: bool = True

    @property
    def rows(self) -> int:
        return self.batch * self.batches

    @property
    def epochs(self) -> int:
        return -(-self.steps // self.batches)

    @property
    def scales(self) -> bool:
        return self.policy == FLOAT16


@dataclass(frozen=True)
class Script:
    """`steps` is how many mpdoctor is asked for; `twin` names what this is the right or the bfloat16 twin of."""

    seed: int
    number: int
    keras: str
    text: str
    truth: Truth
    steps: int
    kind: str
    style: str = ""
    twin: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.seed}_{self.number}"


def custom_layer(name: str, call: str, arguments: str = "self, x") -> str:
    """A class of the user's; `call` is the body of its call(), unindented."""
    return f"class {name}(keras.layers.Layer):\n    def call({arguments}):\n{indented(call, 2)}"


def indented(text: str, levels: int = 1) -> str:
    return "\n".join("    " * levels + line if line else line for line in text.strip("\n").splitlines())


def text_from_program(program: Program) -> str:
    number = program.random.randrange(1, 1000)
    parts = [
        f'"""{program.title or "Trains a small model."}"""',
        "\n".join(_imports(program)),
        f'keras.mixed_precision.set_global_policy("{program.policy}")\nkeras.utils.set_random_seed({number})\n'
        f"rng = np.random.default_rng({number})\nBATCH, BATCHES, EPOCHS = {program.batch}, {program.batches}, "
        f"{program.epochs}",
        *program.definitions,
        "\n".join(program.data),
        f"loss_fn = {program.loss}",
        _model(program),
        _training(program),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _imports(program: Program) -> list[str]:
    plain = ["import numpy as np", "import tensorflow as tf"]
    if program.keras == KERAS3:
        spelled = program.random.choice((["import keras"], ["from tensorflow import keras"]))
    else:
        spelled = ["import tf_keras as keras"]
    return [*plain, *spelled] if "from" in spelled[0] else [*spelled, *plain]


# --- the model ------------------------------------------------------------------------------------------------------
def _model(program: Program) -> str:
    kind = ', dtype="int32"' if program.ids else ""
    given = f"keras.Input({program.shape!r}{kind})"
    base = "Net" if program.training == "train_step" else "keras.Model"
    step = _train_step(program) if program.training == "train_step" else ""
    if program.style == "subclassed":
        return _subclassed(program, step)
    shell = f"class Net(keras.Model):\n{indented(step)}\n\n\n" if step else ""
    if program.style == "functional" or step:
        lines = [f"inputs = {given}", "h = inputs", *(_applied(call) for _, call in program.layers)]
        return shell + "\n".join([*lines, f"model = {base}(inputs, h)"])
    if program.style == "added":
        lines = ["model = keras.Sequential()", f"model.add({given})"]
        return "\n".join([*lines, *(f"model.add({call})" for _, call in program.layers)])
    calls = "\n".join(f"        {call}," for _, call in program.layers)
    return f"model = keras.Sequential(\n    [\n        {given},\n{calls}\n    ]\n)"


def _applied(call: str) -> str:
    """A layer, or an operator such as "* 2.0", on `h`."""
    return f"h = h {call}" if call.startswith("*") else f"h = {call}(h)"


def _subclassed(program: Program, step: str) -> str:
    made = "\n".join(f"self.{name} = {call}" for name, call in program.layers)
    called = "\n".join(f"h = self.{name}(h)" for name, _ in program.layers)
    text = (
        f"class Net(keras.Model):\n    def __init__(self):\n        super().__init__()\n{indented(made, 2)}\n\n"
        f"    def call(self, x):\n        h = x\n{indented(called, 2)}\n        return h\n"
    )
    if step:
        text += f"\n{indented(step)}\n"
    return f"{text}\n\nmodel = Net()\nmodel(x[:1])"


# --- training -------------------------------------------------------------------------------------------------------
def _training(program: Program) -> str:
    if program.training in LOOPS:
        return _loop(program)
    compiled = program.compiled.format(inner=program.optimizer)
    if program.training == "train_step":
        lines = [f"model.compile(optimizer={compiled})"]
    else:
        lines = [f"model.compile(optimizer={compiled}, loss=loss_fn)"]
    shuffle = "" if program.shuffle else ", shuffle=False"
    if program.training == "dataset":
        shuffled = ".shuffle(64, seed=3)" if program.shuffle else ""
        lines.append(
            f"dataset = tf.data.Dataset.from_tensor_slices((x, y)){shuffled}.batch(BATCH, drop_remainder=True)"
        )
        lines.append("model.fit(dataset, epochs=EPOCHS, verbose=0)")
    elif program.training == "train_on_batch":
        lines.append("for epoch in range(EPOCHS):\n    for first in range(0, BATCH * BATCHES, BATCH):")
        lines.append("        model.train_on_batch(x[first : first + BATCH], y[first : first + BATCH])")
    else:
        lines.append(f"model.fit(x, y, batch_size=BATCH, epochs=EPOCHS{shuffle}, verbose=0)")
    return "\n".join(lines)


def _loop(program: Program) -> str:
    lines = [f"optimizer = {_loop_optimizer(program)}"]
    if program.keras == KERAS3 or program.random.random() < 0.3:
        lines.append("optimizer.build(model.trainable_variables)")
    decorator = "@tf.function\n" if program.training == "loop" else ""
    body = step_lines(program, "optimizer", "model(x, training=True)", "model.trainable_variables")
    lines.append(f"\n\n{decorator}def train(x, y):\n{indented(body)}\n    return loss\n\n")
    if program.random.random() < 0.5:
        lines.append("for epoch in range(EPOCHS):\n    for first in range(0, BATCH * BATCHES, BATCH):")
        lines.append("        loss = train(x[first : first + BATCH], y[first : first + BATCH])")
    else:
        lines.append("dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)")
        lines.append("for epoch in range(EPOCHS):\n    for features, targets in dataset:")
        lines.append("        loss = train(features, targets)")
    return "\n".join(lines)


def _loop_optimizer(program: Program) -> str:
    wrapped = program.scales and program.step not in ("bare", "factor")
    return program.wrapper.format(inner=program.optimizer) if wrapped else program.optimizer


def _train_step(program: Program) -> str:
    body = step_lines(program, "self.optimizer", "self(x, training=True)", "self.trainable_variables")
    return f'def train_step(self, data):\n    x, y = data\n{indented(body)}\n    return {{"loss": loss}}'


def step_lines(program: Program, optimizer: str, prediction: str, variables: str) -> str:
    """A training step. `program.step` is one of

    right           the loss is scaled once and the gradients are unscaled once
    not_scaled      the wrapper unscales what nobody scaled (Keras 3); nothing is scaled (Keras 2)
    not_unscaled    Keras 2: scaled, never unscaled
    unscaled_twice  by hand and by the wrapper (Keras 3), by the wrapper twice (Keras 2)
    clipped_scaled  clipped before the gradients are unscaled
    clipped         clipped after that (Keras 2 alone can)
    bare, factor    an optimizer without wrapper; with a factor of its own (Keras 3)
    """
    return (_step_of_keras3 if program.keras == KERAS3 else _step_of_keras2)(program, optimizer, prediction, variables)


def _step_of_keras3(program: Program, optimizer: str, prediction: str, variables: str) -> str:
    kind = program.step
    scaled = program.scales and kind not in ("not_scaled", "bare")
    lines = ["with tf.GradientTape() as tape:", f"    loss = loss_fn(y, {prediction})"]
    if scaled:
        lines.append(f"    scaled_loss = {optimizer}.scale_loss(loss)")
    lines.append(f"gradients = tape.gradient({'scaled_loss' if scaled else 'loss'}, {variables})")
    if kind == "unscaled_twice":
        lines.append(f"gradients = [g / {optimizer}.dynamic_scale for g in gradients]")
    if kind == "clipped_scaled":
        lines.append("gradients, _ = tf.clip_by_global_norm(gradients, 1.0)")
    applied = (
        f"{optimizer}.apply_gradients(zip(gradients, {variables}))",
        f"{optimizer}.apply(gradients, {variables})",
    )
    return "\n".join([*lines, program.random.choice(applied)])


def _step_of_keras2(program: Program, optimizer: str, prediction: str, variables: str) -> str:
    kind = program.step
    scaled = program.scales and kind not in ("not_scaled", "bare")
    lines = ["with tf.GradientTape() as tape:", f"    loss = loss_fn(y, {prediction})"]
    if scaled:
        lines.append(f"    scaled_loss = {optimizer}.get_scaled_loss(loss)")
    lines.append(f"gradients = tape.gradient({'scaled_loss' if scaled else 'loss'}, {variables})")
    if kind == "clipped_scaled":
        lines.append("gradients, _ = tf.clip_by_global_norm(gradients, 1.0)")
    if scaled and kind != "not_unscaled":
        times = 2 if kind == "unscaled_twice" else 1
        lines += times * [f"gradients = {optimizer}.get_unscaled_gradients(gradients)"]
    if kind == "clipped":
        lines.append("gradients, _ = tf.clip_by_global_norm(gradients, 1.0)")
    return "\n".join([*lines, f"{optimizer}.apply_gradients(zip(gradients, {variables}))"])
