"""Whether Keras 3 runs on another backend than TensorFlow. There float16 and float32 tensors promote where TensorFlow
raises, and fit() builds the optimizer earlier."""

from __future__ import annotations

from mpdoctor.program.context import Branch, Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, known

VARIABLE, TENSORFLOW = "KERAS_BACKEND", "tensorflow"
NAMING = (VARIABLE, "set_backend", "jax")  # without one of these words a program names no backend
ASKING = ("keras.backend.backend", "keras.config.backend")
LIBRARIES = ("jax.", "torch.")


def runs_on_another_backend(facts: SourceFacts) -> bool:
    """Whether a program of Keras 3 says, or its project does, that it runs on another backend."""
    if not facts.keras.is_keras3 or facts.other_backend:
        return facts.keras.is_keras3
    if not any(word in facts.text for word in NAMING):
        return False
    names = _names_set(facts)
    if names:
        return all(isinstance(name, str) and name != TENSORFLOW for name in names)
    from mpdoctor.knowledge.keras_backends import backend_of_imports, backends_in_program, other_than_tensorflow

    named = backends_in_program(facts.text)
    return bool(other_than_tensorflow(named) if named else backend_of_imports(facts.text))


def is_for_another_backend(context: Context) -> bool:
    """Whether it stands in the arm of an `if` that runs on another backend: `if keras.backend.backend() == "jax":`."""
    return any(_is_of_another_backend(branch) for branch in context.branches)


def _is_of_another_backend(branch: Branch) -> bool:
    test = branch.test
    if not isinstance(test, Operation) or test.operator not in ("==", "!=") or len(test.operands) != 2:
        return False
    asked, name = test.operands
    if not (isinstance(asked, Call) and isinstance(asked.callee, Api) and asked.callee.is_(*ASKING)):
        return False
    is_named = branch.taken is (test.operator == "==")
    return isinstance(known(name), str) and is_named is (known(name) != TENSORFLOW)


def may_run_on_another_backend(facts: SourceFacts) -> bool:
    """Whether a program names another backend in its environment, or calls the library of one."""
    names = (call.callee.name for call in facts.library_calls if isinstance(call.callee, Api))
    return any(name != TENSORFLOW for name in _names_set(facts)) or any(map(_is_of_another, names))


def _names_set(facts: SourceFacts) -> list[object]:
    """What a program sets the variable to; MISSING for what is not known."""
    written = [write.value for write in facts.writes if known(write.index) == VARIABLE]
    calls = facts.calls_of("os.environ.setdefault", "os.putenv")
    written += [value for call in calls if known(call.argument(0)) == VARIABLE and (value := call.argument(1))]
    return [known(value) for value in written]


def _is_of_another(name: str) -> bool:
    return name.startswith(LIBRARIES)
