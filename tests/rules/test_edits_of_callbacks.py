"""Edits of what a callback sets on the optimizer, once fit() has compiled its step."""

from __future__ import annotations

import pytest
from test_fixes_of_rules import in_rounds

CALLBACK = """import keras
keras.mixed_precision.set_global_policy("mixed_float16")
class Schedule(keras.callbacks.Callback):
    def {method}(self, number, logs=None):
        self.model.optimizer.{name} = 0.1 * number
        print(number)
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.optimizers.SGD(0.1), "mse")
model.fit([], callbacks=[Schedule()])
"""
COMPILED_ANEW = "\n        self.model.make_train_function(force=True)"


@pytest.mark.parametrize(
    ("method", "unsafe", "name"),
    [
        ("on_epoch_begin", True, f"inner_optimizer.clipnorm = 0.1 * number{COMPILED_ANEW}"),
        ("on_epoch_begin", False, "clipnorm = 0.1 * number"),
        ("on_train_batch_begin", True, "clipnorm = 0.1 * number"),  # the step keeps the first number
    ],
)
def test_what_a_callback_sets_between_steps_is_edited_only_where_the_step_is_compiled_anew(
    method: str, unsafe: bool, name: str
) -> None:
    before = CALLBACK.format(method=method, name="clipnorm")
    after = before.replace("clipnorm = 0.1 * number", name)
    assert in_rounds(before, "3", unsafe=unsafe) == after
