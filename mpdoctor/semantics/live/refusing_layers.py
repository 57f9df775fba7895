"""A layer whose call raised only inside a library's code, because its input was 16-bit."""

from __future__ import annotations

import re

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.knowledge.missing_kernels import operation_without_kernel
from mpdoctor.semantics.live.errors.dtype_error_causes import is_float32_state, state_of_a_stateful_layer
from mpdoctor.semantics.live.errors.dtype_errors import (
    array_of_another_dtype,
    half_given_for_float32,
    mismatch_of_precisions,
)

_SIGNATURES = (
    r"Can not cast TensorSpec\(.*dtype=tf\.(?P<half>b?float16).*\) to TensorSpec\(.*dtype=tf\.float32",
    r"(?s)Could not find matching (?:concrete )?function to call.*Got:.*dtype=(?:tf\.)?(?P<half>b?float16).*Expected.*"
    r"TensorSpec\(.*dtype=tf\.float32",
    r"(?s)Python inputs incompatible with input_signature.*dtype=(?:tf\.)?(?P<half>b?float16).*dtype=tf\.float32",
)
_NAMES_A_DTYPE = re.compile(r"float16|float32|\bhalf\b|DT_HALF|BFLOAT16|\bdtype", re.IGNORECASE)


def uncast_variable(failure: FailureFacts) -> str | None:
    """What the failing line calls a float32 tf.Variable that a layer of Keras 2 was given: Keras 2 casts tensors, and a
    variable, which stays as it is, is none to it. None for other errors."""
    if failure.keras is None or failure.keras.is_keras3 or mismatch_of_precisions(failure) is None:
        return None
    if [dtype for _, dtype in failure.layer_inputs] != ["float32"]:
        return None
    named = [operand.name for operand in failure.operands if (operand.kind, operand.dtype) == ("variable", "float32")]
    return named[0] if len(named) == 1 else None


def refuses_half(failure: FailureFacts) -> bool:
    """Whether the layer itself is to blame: nothing of the user's ran in it, and all that it was given is 16-bit, as
    its policy says. A call that raised in float32 as well has another reason."""
    if failure.layer is None or not failure.layer_in_library or failure.ran_in_float32 is False:
        return False
    if later_float32_inputs(failure) or is_float32_state(failure) or state_of_a_stateful_layer(failure) is not None:
        return False
    if failure.ran_in_float32:
        return _NAMES_A_DTYPE.search(failure.said_by_library) is not None
    return failure.layer_dtype in HALF and _speaks_of_half(failure)


def half_given_to_signature(failure: FailureFacts) -> str | None:
    """The 16-bit dtype of what a function was given whose signature takes float32: a SavedModel's, or a tf.function's
    with `input_signature`. None for other errors."""
    if not failure.computes_in_half:
        return None
    matches = (re.search(words, failure.said_by_library) for words in _SIGNATURES)
    return next((match["half"] for match in matches if match), None)


def gradient_of_saved_function(failure: FailureFacts) -> str | None:
    """The 16-bit dtype that the gradient of a SavedModel's function met, which had been given it for float32; None for
    other errors."""
    mismatch = mismatch_of_precisions(failure)
    is_one = failure.part is not None and failure.part.kind == "saved-model"
    return mismatch.half if is_one and mismatch is not None else None


def later_float32_inputs(failure: FailureFacts) -> list[str]:
    """The inputs after the first that a layer of Keras 2 was given in float32, which are the caller's to cast: Keras 2
    casts the first one alone."""
    if failure.keras is None or failure.keras.is_keras3 or not failure.layer_inputs:
        return []
    first = failure.layer_inputs[0][0]
    return [name for name, dtype in failure.layer_inputs if name != first and dtype == "float32"]


def computing_in_float32(failure: FailureFacts) -> str:
    """The remedy that lets a library's layer compute in float32, with whether it was tried."""
    around = '`set_global_policy("float32")` before that line and the mixed policy again after it'
    untried = "" if failure.ran_in_float32 else " (Not tried.)"
    if failure.layer_made_by == "call":
        return (
            f"The library makes `{failure.layer_class}` anew in each call, under the global policy of that moment: "
            f'leave that at float32, give `dtype="mixed_{failure.layer_dtype or "float16"}"` to the layers that are to '
            f"compute in 16 bits{_and_wrap(failure)}.{untried}"
        )
    if failure.layer_made_by:
        maker = "the library" if failure.layer_made_by == "__init__" else f"`{failure.layer_made_by}`"
        return (
            f"Here {maker} makes `{failure.layer_class}`: write {around}. All that this line makes then computes in "
            f"float32.{untried}"
        )
    if failure.float32_with_layers_inside:
        return (
            'Make it and the layers in it with `dtype="float32"`; where a library makes those, write '
            '`set_global_policy("float32")` before it is made and the mixed policy again after that.'
        )
    if failure.layer_takes_dtype is False:
        return f"`{failure.layer_class}` takes no dtype: write {around}.{untried}"
    with_dtype = f'`{failure.layer_class}(…, dtype="float32")`'
    otherwise = "" if failure.layer_takes_dtype else f"; where it takes none, write {around}"
    return f"Make it with a dtype, {with_dtype}{otherwise}.{untried}"


def _and_wrap(failure: FailureFacts) -> str:
    """The end of a sentence: Keras wraps the optimizer only of a model that has the mixed policy itself."""
    return "" if failure.layer_dtype == "bfloat16" else ", and compile with a LossScaleOptimizer"


def _speaks_of_half(failure: FailureFacts) -> bool:
    explained = mismatch_of_precisions(failure) or half_given_for_float32(failure) or array_of_another_dtype(failure)
    return explained is not None or operation_without_kernel(failure.said_by_library) is not None
