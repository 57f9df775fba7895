"""Custom training loops in mixed precision that are right, as text: for each Keras, and for each thing that loops do
besides (`FEATURES`), alone and together.

Keras 3's LossScaleOptimizer scales with `scale_loss` and divides the gradients in `apply`; Keras 2's has
`get_scaled_loss` and `get_unscaled_gradients`, and its `apply_gradients` divides nothing. What comes after the division
(clipping, accumulation, averages of the weights) is the inner optimizer's in Keras 3 and the loop's own in Keras 2.
https://github.com/keras-team/keras/blob/master/keras/src/optimizers/loss_scale_optimizer.py
https://www.tensorflow.org/versions/r2.15/api_docs/python/tf/keras/mixed_precision/LossScaleOptimizer
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Literal

Generation = Literal["3", "2"]
FEATURES = {
    "clip": "gradients clipped by their global norm",
    "accumulate": "one update from the gradients of four batches",
    "ema": "an average of the weights kept beside them",
    "penalty": "a penalty on the gradient with respect to the input",
    "gan": "two models, each with an optimizer of its own",
    "xla": "compiled by XLA",
    "replicas": "several replicas",
}
ARGUMENTS = {"model": "x, y", "generator": "x"}
STEP = {"model": "train_step", "generator": "generator_step"}
APPLYING = {"model": "apply_sums", "generator": "apply_generator_sums"}
ONE_A_REPLICA = (
    "synchronization=tf.VariableSynchronization.ON_READ",
    "aggregation=tf.VariableAggregation.SUM",
)
IMPORTS = {
    "3": "import keras\nimport numpy as np\nimport tensorflow as tf\n",
    "2": "import numpy as np\nimport tensorflow as tf\n\nkeras = tf.keras\n",
    "tf_keras": "import numpy as np\nimport tensorflow as tf\nimport tf_keras as keras\n",
}


def correct_loop(generation: Generation, features: Collection[str] = (), package: str = "") -> str:
    """A program that runs as it stands. `package`: "tf_keras" for Keras 2 beside TensorFlow 2.16 and later.

    Raises ValueError for a feature that is none of `FEATURES`, and for XLA with several replicas, whose gradients
    TensorFlow adds up outside of what it compiles."""
    unknown = set(features) - set(FEATURES)
    if unknown:
        raise ValueError(f"no such features of a loop: {', '.join(sorted(unknown))}")
    if {"xla", "replicas"} <= set(features):
        raise ValueError("a step of several replicas is not compiled as a whole")
    make = _Keras3(features) if generation == "3" else _Keras2(features)
    return IMPORTS[package or generation] + "\n" + make.program()


class _Loop(ABC):
    """The parts that the loops of both generations share."""

    policy = "mixed_float16"

    def __init__(self, features: Collection[str]) -> None:
        self.has = frozenset(features)
        self.models = ["model", "generator"] if "gan" in self.has else ["model"]

    def program(self) -> str:
        parts = [
            f'keras.mixed_precision.set_global_policy("{self.policy}")\n',
            self.setup(),
            *(self.step(model) for model in self.models),
            self.training(),
        ]
        return "\n".join(part for part in parts if part)

    def setup(self) -> str:
        lines = []
        for model in self.models:
            width = 1 if model == "model" else 8
            lines += [
                f"{model} = keras.Sequential([",
                "    keras.Input((8,)),",
                '    keras.layers.Dense(32, activation="tanh"),',
                f'    keras.layers.Dense({width}, dtype="float32"),  # the output in float32',
                "])",
                *self.optimizer_lines(model),
            ]
        if "replicas" not in self.has:
            return "\n".join(lines) + "\n"
        inside = "".join(f"    {line}\n" for line in lines)
        return f"strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n{inside}"

    @abstractmethod
    def optimizer_lines(self, model: str) -> list[str]: ...

    @property
    def adds_up(self) -> bool:
        """Whether the loop itself adds gradients up over several batches."""
        return "accumulate" in self.has

    def sum_lines(self, model: str) -> list[str]:
        if not self.adds_up:
            return []
        options = ["tf.zeros(variable.shape)", "trainable=False"]
        options += ONE_A_REPLICA if "replicas" in self.has else ()
        return [
            f"{_named(model, 'sums')} = [",
            "    tf.Variable(",
            *(f"        {option}," for option in options),
            "    )",
            f"    for variable in {model}.trainable_variables",
            "]",
        ]

    @abstractmethod
    def scaled(self, model: str) -> str:
        """The loss as the outer tape is to differentiate it."""

    def unscaling_lines(self, model: str) -> list[str]:
        """The lines by which the loop itself divides `gradients` by the scale."""
        return []

    @abstractmethod
    def apply_lines(self, model: str) -> list[str]:
        """The lines that lead from `gradients` to updated weights."""

    def update_lines(self, model: str) -> list[str]:
        if not self.adds_up:
            return [*self.unscaling_lines(model), *self.apply_lines(model)]
        return [
            *self.unscaling_lines(model),
            f"for total, gradient in zip({_named(model, 'sums')}, gradients):",
            "    total.assign_add(gradient / 4.0)",
        ]

    def applying(self, model: str) -> str:
        """The function that applies what was added up."""
        if not self.adds_up:
            return ""
        body = [
            f"gradients = [tf.identity(total) for total in {_named(model, 'sums')}]",
            *self.apply_lines(model),
            f"for total in {_named(model, 'sums')}:",
            "    total.assign(tf.zeros_like(total))",
        ]
        return "\n" + self.function(APPLYING[model], "", body)

    @abstractmethod
    def unscaled_slope(self) -> str:
        """What the gradient with respect to the input is divided by, as the scaled output was differentiated."""

    @abstractmethod
    def scaled_output(self) -> str: ...

    def step(self, model: str) -> str:
        body = ["with tf.GradientTape() as tape:", *(f"    {line}" for line in self.loss_lines(model))]
        body.append(f"gradients = tape.gradient({self.scaled(model)}, {model}.trainable_variables)")
        body += [*self.update_lines(model), "return loss"]
        compiled = "@tf.function(jit_compile=True)" if "xla" in self.has else "@tf.function"
        return self.function(STEP[model], ARGUMENTS[model], body, compiled) + self.applying(model)

    def function(self, name: str, arguments: str, body: list[str], decorator: str = "@tf.function") -> str:
        decorated = "" if "replicas" in self.has else f"{decorator}\n"
        lines = "".join(f"    {line}\n" for line in body)
        return f"\n{decorated}def {name}({arguments}):\n{lines}{self.on_replicas(name, arguments)}"

    def loss_lines(self, model: str) -> list[str]:
        if model == "generator":
            lines = ["loss = -tf.reduce_mean(model(generator(x, training=True), training=True))"]
        elif "gan" in self.has:
            lines = [
                "loss = tf.reduce_mean(model(generator(x), training=True)) - tf.reduce_mean(model(x, training=True))"
            ]
        else:
            lines = ["loss = tf.reduce_mean(tf.square(model(x, training=True) - y))"]
        if "penalty" in self.has and model == "model":
            lines += [
                "with tf.GradientTape() as inner:",
                "    inner.watch(x)",
                f"    output = {self.scaled_output()}",
                f"slope = tf.cast(inner.gradient(output, x), tf.float32) / {self.unscaled_slope()}",
                "norm = tf.sqrt(tf.reduce_sum(tf.square(slope), axis=-1) + 1e-6)",
                "loss += 0.1 * tf.reduce_mean(tf.square(norm - 1.0))",
            ]
        if "replicas" in self.has:
            lines.append("loss /= strategy.num_replicas_in_sync  # the replicas' gradients are added up")
        return [*lines, *self.scaling(model)]

    @abstractmethod
    def scaling(self, model: str) -> list[str]: ...

    def on_replicas(self, name: str, arguments: str) -> str:
        """The function that the training calls in place of `name`; "" where there are no replicas."""
        if "replicas" not in self.has:
            return ""
        given = f", args=({arguments}{'' if ', ' in arguments else ','})" if arguments else ""
        return f"\n\n@tf.function\ndef distributed_{name}({arguments}):\n    strategy.run({name}{given})\n"

    def call(self, name: str, arguments: str) -> str:
        return f"{'distributed_' if 'replicas' in self.has else ''}{name}({arguments})"

    def training(self) -> str:
        lines = [
            "",
            'features = np.random.rand(960, 8).astype("float32")',
            "targets = features.sum(axis=1, keepdims=True)",
            "for number in range(60):",
            "    x = tf.constant(features[16 * number : 16 * number + 16])",
            "    y = tf.constant(targets[16 * number : 16 * number + 16])",
            *(f"    {self.call(STEP[model], ARGUMENTS[model])}" for model in self.models),
        ]
        lines += [f"    {line}" for line in self.after_step()]
        return "\n".join([*lines, *self.after_training()]) + "\n"

    def after_step(self) -> list[str]:
        if not self.adds_up:
            return []
        return ["if number % 4 == 3:", *(f"    {self.call(APPLYING[model], '')}" for model in self.models)]

    def after_training(self) -> list[str]:
        return []


def _named(model: str, name: str) -> str:
    """The name of a model's own optimizer, sums or averages."""
    return name if model == "model" else f"generator_{name}"


class _Keras3(_Loop):
    """`scale_loss` and `apply`. The wrapper looks at the first replica's gradients alone, so that several replicas are
    right in bfloat16, which wants no loss scale (MP315)."""

    def __init__(self, features: Collection[str]) -> None:
        super().__init__(features)
        self.is_scaled = "replicas" not in self.has
        self.policy = "mixed_float16" if self.is_scaled else "mixed_bfloat16"

    def optimizer_lines(self, model: str) -> list[str]:
        options = ["1e-3"]
        options += ["global_clipnorm=1.0"] if "clip" in self.has else []
        options += ["gradient_accumulation_steps=4"] if "accumulate" in self.has and not self.adds_up else []
        options += ["use_ema=True", "ema_momentum=0.99"] if "ema" in self.has else []
        inner = f"keras.optimizers.Adam({', '.join(options)})"
        wrapped = f"keras.mixed_precision.LossScaleOptimizer({inner})" if self.is_scaled else inner
        name = _named(model, "optimizer")
        return [
            f"{name} = {wrapped}",
            f"{name}.build({model}.trainable_variables)  # before the first tf.function is traced",
            *self.sum_lines(model),
        ]

    @property
    def adds_up(self) -> bool:
        """The inner optimizer does, but for several replicas: there its condition stands between them."""
        return {"accumulate", "replicas"} <= self.has

    def scaling(self, model: str) -> list[str]:
        return [f"scaled_loss = {_named(model, 'optimizer')}.scale_loss(loss)"] if self.is_scaled else []

    def scaled(self, model: str) -> str:
        return "scaled_loss" if self.is_scaled else "loss"

    def scaled_output(self) -> str:
        return "optimizer.scale_loss(model(x, training=True))" if self.is_scaled else "model(x, training=True)"

    def unscaled_slope(self) -> str:
        return "optimizer.dynamic_scale" if self.is_scaled else "1.0"

    def apply_lines(self, model: str) -> list[str]:
        comment = "  # divides by the scale, or skips the step" if self.is_scaled else ""
        return [f"{_named(model, 'optimizer')}.apply(gradients, {model}.trainable_variables){comment}"]

    def after_training(self) -> list[str]:
        if "ema" not in self.has:
            return []
        return [
            f"{_named(model, 'optimizer')}.finalize_variable_values({model}.trainable_variables)"
            for model in self.models
        ]


class _Keras2(_Loop):
    """`get_scaled_loss`, `get_unscaled_gradients` and `apply_gradients`."""

    def optimizer_lines(self, model: str) -> list[str]:
        name = _named(model, "optimizer")
        lines = [f"{name} = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-3))"]
        lines += self.sum_lines(model)
        if "ema" in self.has:
            lines += [
                f"{_named(model, 'averages')} = [",
                "    tf.Variable(tf.identity(variable), trainable=False)",
                f"    for variable in {model}.trainable_variables",
                "]",
            ]
        return lines

    def scaling(self, model: str) -> list[str]:
        return [f"scaled_loss = {_named(model, 'optimizer')}.get_scaled_loss(loss)"]

    def scaled(self, model: str) -> str:
        return "scaled_loss"

    def scaled_output(self) -> str:
        return "optimizer.get_scaled_loss(model(x, training=True))"

    def unscaled_slope(self) -> str:
        return "optimizer.loss_scale"

    def unscaling_lines(self, model: str) -> list[str]:
        return [f"gradients = {_named(model, 'optimizer')}.get_unscaled_gradients(gradients)"]

    def apply_lines(self, model: str) -> list[str]:
        lines = []
        if "clip" in self.has:
            lines.append("gradients, _ = tf.clip_by_global_norm(gradients, 1.0)  # after the division")
        lines.append(f"{_named(model, 'optimizer')}.apply_gradients(zip(gradients, {model}.trainable_variables))")
        if "ema" in self.has:
            lines += [
                f"for average, variable in zip({_named(model, 'averages')}, {model}.trainable_variables):",
                "    average.assign(0.99 * average + 0.01 * variable)",
            ]
        return lines
