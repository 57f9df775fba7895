"""Chooses the adapter for a Keras."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from mpdoctor.examiner.exceptions import OtherBackend

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


def adapter_for(module: ModuleType) -> KerasAdapter | None:
    """The adapter of a just imported `keras` or `tf_keras`, or of a TensorFlow that holds its Keras itself; None for a
    package `keras` before 2.6, which hands on the Keras of TensorFlow (2.4) or knows no mixed precision (2.3).

    Raises OtherBackend where Keras 3 runs on JAX, PyTorch or OpenVINO."""
    if str(module.__version__).startswith("3"):
        backend = module.backend.backend()
        if backend != "tensorflow":
            raise OtherBackend(
                f"Keras runs on {backend} here (KERAS_BACKEND, or keras.json). mpdoctor examines TensorFlow's backend: "
                "set KERAS_BACKEND=tensorflow."
            )
        from mpdoctor.examiner.keras.keras3 import Keras3

        return Keras3(module)
    if module.__name__ == "keras" and tuple(int(number) for number in module.__version__.split(".")[:2]) < (2, 6):
        return None
    import tensorflow as tf

    from mpdoctor.examiner.keras.keras2 import Keras2

    if hasattr(tf.debugging, "disable_traceback_filtering"):  # since 2.7
        tf.debugging.disable_traceback_filtering()  # what was going on in Keras would be cut out
    if module.__name__ == "tensorflow":
        return Keras2(module.keras, "tensorflow.python.keras")
    return Keras2(module, module.__name__)
