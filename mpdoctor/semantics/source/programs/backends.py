"""Whether Keras 3 runs on another backend than TensorFlow: JAX's and PyTorch's fit() builds the optimizer earlier."""

from __future__ import annotations

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, known

VARIABLE = "KERAS_BACKEND"
LIBRARIES = ("jax.", "torch.")


def may_run_on_another_backend(facts: SourceFacts) -> bool:
    """Whether a program names another backend in its environment, or calls the library of one."""
    written = [write.value for write in facts.writes if known(write.index) == VARIABLE]
    calls = facts.calls_of("os.environ.setdefault", "os.putenv")
    written += [value for call in calls if known(call.argument(0)) == VARIABLE and (value := call.argument(1))]
    names = (call.callee.name for call in facts.library_calls if isinstance(call.callee, Api))
    return any(known(value) != "tensorflow" for value in written) or any(map(_is_of_another, names))


def _is_of_another(name: str) -> bool:
    return name.startswith(LIBRARIES)
