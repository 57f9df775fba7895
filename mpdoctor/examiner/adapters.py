"""Which adapter a Keras gets."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def adapter_for(module: ModuleType) -> Any:
    """The adapter of a just imported `keras` or `tf_keras`, or of a TensorFlow that holds its Keras itself.

    Raises OtherBackend where Keras 3 runs on JAX, PyTorch or OpenVINO."""
    if str(module.__version__).startswith("3"):
        from mpdoctor.examiner.session import OtherBackend

        backend = module.backend.backend()
        if backend != "tensorflow":
            raise OtherBackend(
                f"Keras runs on {backend} here (KERAS_BACKEND, or keras.json). mpdoctor examines TensorFlow's backend: "
                "set KERAS_BACKEND=tensorflow."
            )
        from mpdoctor.examiner.keras3 import Keras3

        return Keras3(module)
    from mpdoctor.examiner.keras2 import Keras2

    if module.__name__ == "tensorflow":
        return Keras2(module.keras, "tensorflow.python.keras")
    return Keras2(module, module.__name__)
