"""Why a target cannot be examined: what the examiner raises where it gives up, and says to the user."""

from __future__ import annotations


class Unusable(Exception):
    """The target cannot be examined, and the message says why and what to do."""


class OtherBackend(Unusable):
    """Keras 3 runs on another backend than TensorFlow; there is no loss scaling of TensorFlow's to examine."""
