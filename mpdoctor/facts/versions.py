"""The Keras that a target is judged by: its package and version, and how it was chosen."""

from __future__ import annotations

from typing import Literal

from mpdoctor.facts.frozen import dataclass

KerasPackage = Literal["keras", "tf_keras", "tf.keras"]
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"  # the environment variable by which `tf.keras` is tf_keras
LEGACY_KERAS_ON = ("true", "True", "1")  # as TensorFlow reads it: "yes" and "TRUE" mean no


@dataclass(frozen=True)
class Keras:
    """One Keras as the target's program sees it.

    `package` is "keras" (Keras 3, also where the program writes tf.keras), "tf_keras" (Keras 2 kept alive for
    TensorFlow 2.16 and later) or "tf.keras" (Keras 2 inside TensorFlow up to 2.15). `version` and `tensorflow`
    are version texts, empty where nobody knows. `because` says in words how it was decided.
    """

    package: KerasPackage = "keras"
    version: str = ""
    tensorflow: str = ""
    because: str = "assumed, because nothing says otherwise"

    @property
    def is_keras3(self) -> bool:
        return self.package == "keras"

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers of the version: (3, 15, 1); () where it is not known."""
        return _numbers(self.version)

    @property
    def tensorflow_release(self) -> tuple[int, ...]:
        """The numbers of TensorFlow's version. Keras inside TensorFlow has TensorFlow's."""
        return _numbers(self.tensorflow) or (self.release if self.package == "tf.keras" else ())

    @property
    def autocasts(self) -> bool:
        """Whether its layers cast what they are given to their own dtype: not in TensorFlow 1."""
        return not self.tensorflow_release or self.tensorflow_release >= (2,)

    def __str__(self) -> str:
        name = {"keras": "Keras", "tf_keras": "tf_keras", "tf.keras": "tf.keras"}[self.package]
        return f"{name} {self.version or ('3' if self.is_keras3 else '')}".strip()


def _numbers(version: str) -> tuple[int, ...]:
    numbers = []
    for part in version.split("."):
        if not part.isdecimal():  # "²" is a digit, and no number
            break
        numbers.append(int(part))
    return tuple(numbers)
