"""The outputs of a saved model for fixed inputs, so that two files of it can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.protocol.event_kinds import Outputs, TrainingStatus
from mpdoctor.facts.model import CallFacts
from mpdoctor.facts.saved.file import MOST_VALUES, SAMPLES, OutputFacts

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.keras.adapter import KerasModel
    from mpdoctor.examiner.session import Session


def tell_outputs(session: Session, model: KerasModel) -> None:
    """Send the model's outputs, or the reason why no inputs can be made for it. Raises what the model's call raises."""
    import tensorflow as tf

    from mpdoctor.examiner.capture.model_facts import model_from_live
    from mpdoctor.examiner.stand_ins.computed_sizes import most_samples
    from mpdoctor.examiner.stand_ins.synthetic_data import MADE_UP_LOSS, data_from_specs

    keras = session.hooked_keras
    optimizer = model.optimizer if keras.is_compiled(model) else None
    session.events.model_seen(model_from_live(session, keras, model, optimizer, CallFacts("none")))
    session.events.stage("computing outputs")
    try:
        features, _ = data_from_specs(keras, model, MADE_UP_LOSS, most_samples(session.layer_hooks, model))
    except Unusable as reason:
        session.events.send(TrainingStatus("skipped", str(reason)))
        return
    few = tf.nest.map_structure(lambda tensor: tensor[:SAMPLES], features)
    outputs = tf.nest.flatten(model(few, training=False))
    names = list(getattr(model, "output_names", None) or ())
    if len(names) != len(outputs):
        names = [str(position) for position in range(len(outputs))]
    session.events.send(Outputs(tuple(_output(name, tensor) for name, tensor in zip(names, outputs))))


def _output(name: str, tensor: tf.Tensor) -> OutputFacts:
    import tensorflow as tf

    numbers = tf.reshape(tf.cast(tensor, tf.float64), [-1]).numpy()
    every = -(-len(numbers) // MOST_VALUES) or 1
    return OutputFacts(name, tf.as_dtype(tensor.dtype).name, len(numbers), tuple(numbers[::every].tolist()))
