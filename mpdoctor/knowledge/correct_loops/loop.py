"""The parts that the loops of Keras 2 and Keras 3 share: models, tapes, penalty, sums of gradients, replicas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

ARGUMENTS = {"model": "x, y", "generator": "x"}
STEP = {"model": "train_step", "generator": "generator_step"}
APPLYING = {"model": "apply_sums", "generator": "apply_generator_sums"}
ONE_A_REPLICA = (
    "synchronization=tf.VariableSynchronization.ON_READ",
    "aggregation=tf.VariableAggregation.SUM",
)


class Loop(ABC):
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
            f"{named(model, 'sums')} = [",
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
            f"for total, gradient in zip({named(model, 'sums')}, gradients):",
            "    total.assign_add(gradient / 4.0)",
        ]

    def applying(self, model: str) -> str:
        """The function that applies what was added up."""
        if not self.adds_up:
            return ""
        body = [
            f"gradients = [tf.identity(total) for total in {named(model, 'sums')}]",
            *self.apply_lines(model),
            f"for total in {named(model, 'sums')}:",
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


def named(model: str, name: str) -> str:
    """The name of a model's own optimizer, sums or averages."""
    return name if model == "model" else f"generator_{name}"
