"""Which model and optimizer a custom loop was about to train when it raised under its GradientTape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.examiner.keras.private_state import all_layers
from mpdoctor.examiner.probe.training import Training
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel
    from mpdoctor.examiner.session import Session


def training_of_failed_loop(session: Session, error: BaseException, failure: FailureFacts) -> Training:
    """A training with the model whose layer raised, or the only model, and with the only optimizer that the program
    made."""
    layer = session.layer_hooks.layer_of_error(error)
    models = session.models()
    holding = [(keras, model) for keras, model in models if layer is not None and _holds(model, layer)]
    keras, model = next(iter(holding or models), (session.hooked_keras, None))
    if len(holding or models) > 1:
        model = None
    optimizers = session.optimizer_hooks.outermost(keras)
    optimizer = optimizers[0] if len(optimizers) == 1 else getattr(model, "optimizer", None)
    training = Training(session, keras, CallFacts("loop", failure.location), model, optimizer)
    training.begin_loop()
    return training


def _holds(model: KerasModel, layer: KerasLayer) -> bool:
    return any(inner is layer for inner in all_layers(model))
