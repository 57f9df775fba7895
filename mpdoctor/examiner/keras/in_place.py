"""Live layers that compute in float32 for a while: their policies are changed in place and put back.

About forty kinds of layers give bit for bit what layers constructed with that dtype give, and afterwards what they
gave before (TensorFlow 2.4, 2.10, 2.15, tf_keras 2.21, Keras 3.15). Unchanged stays a dtype that a layer's `__init__`
or `build` has read, and a function that is traced already: whoever runs a step must run it eagerly, and look at what
the layers put out.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Iterable, Iterator

from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer


@contextmanager
def float32_in_place(keras: KerasAdapter, layers: Iterable[KerasLayer]) -> Iterator[None]:
    """While this context is active, those of these layers that compute in 16 bits compute in float32. Sublayers have
    policies of their own: they change only if they are given too (`private_state.all_layers`)."""
    with ExitStack() as stack:
        for layer in layers:
            if layer.compute_dtype in HALF:
                stack.callback(keras.change_policy(layer, "float32"))
        yield
