"""What is known of the losses that compile() was given."""

from __future__ import annotations

import pytest

from mpdoctor.examiner.keras.compiled_losses import compute_in_predictions_dtype

pytestmark = pytest.mark.fast


class Huber:
    name = "robust"


class MeanSquaredError:
    pass


def own_loss(y_true: object, y_pred: object) -> None:
    """A loss of the user's."""


for of_keras in (Huber, MeanSquaredError):
    of_keras.__module__ = "keras.src.losses"


@pytest.mark.parametrize("losses", ["mse", ["mae", MeanSquaredError()], {"out": "binary_crossentropy"}])
def test_losses_of_keras_compute_in_the_dtype_of_the_predictions(losses: object) -> None:
    assert compute_in_predictions_dtype(losses)


@pytest.mark.parametrize("losses", ["huber", "huber_loss", "Huber", Huber(), ["mse", Huber()], own_loss, None, []])
def test_hubers_casts_to_float32_and_of_others_nobody_knows(losses: object) -> None:
    assert not compute_in_predictions_dtype(losses)
