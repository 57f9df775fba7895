"""Loops of the user's own that handle the loss scale wrongly, each with a right twin."""

from __future__ import annotations

from .bodies import regression_head
from .writing import KERAS3, LOOPS, Program, Truth, custom_layer

HEALTHY = Truth()
# step, Kerases, findings of which one must be told
WRONG: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "loss_not_scaled": ("not_scaled", ("3", "tf_keras"), ("MP401",)),
    "gradients_not_unscaled": ("not_unscaled", ("tf_keras",), ("MP402",)),
    "unscaled_twice": ("unscaled_twice", ("3", "tf_keras"), ("MP403",)),
    "clipped_while_scaled": ("clipped_scaled", ("3", "tf_keras"), ("MP405",)),
    "bare_optimizer": ("bare", ("3", "tf_keras"), ("MP106",)),
    "wrapped_twice": ("right", ("3",), ("MP306",)),
}


def wrong_loop(program: Program, kind: str, right: bool) -> Truth:
    """What plain Keras shows is not known beforehand: most such trainings go on, with updates of a wrong size."""
    random = program.random
    step, _, codes = WRONG[kind]
    program.shape = (random.choice((6, 10, 16)),)
    program.layers += [
        ("hidden", f'keras.layers.Dense({random.choice((8, 16))}, activation="tanh", name="hidden")'),
    ]
    if random.random() < 0.4:
        program.definitions.append(custom_layer("Gate", "return x * tf.sigmoid(x)"))
        program.layers.append(("gate", 'Gate(name="gate")'))
    regression_head(program, rate=random.choice(("1e-6", "1e-8")) if kind == "gradients_not_unscaled" else "1e-2")
    program.training = random.choice(LOOPS if kind in ("bare_optimizer", "wrapped_twice") else (*LOOPS, "train_step"))
    program.step = step if not right else "right"
    if kind == "clipped_while_scaled" and right and program.keras != KERAS3:
        program.step = "clipped"
    if kind == "wrapped_twice" and not right:
        program.wrapper = "keras.optimizers.LossScaleOptimizer(keras.optimizers.LossScaleOptimizer({inner}))"
    if right:
        return HEALTHY
    return Truth(kind.replace("_", " "), frozenset(), codes=frozenset(codes))
