"""Why a 16-bit and a float32 tensor were combined in a custom layer: the known reasons, told from its line.

Each reason has its rule; MP202 speaks where none of the others does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts, OperandFacts
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.semantics.live.errors.dtype_errors import DtypeMismatch, half_given_for_float32, mismatch_of_precisions

# They make a tensor of their own, in float32 unless they are told otherwise.
_MAKES_A_TENSOR = (
    r"\b(constant|convert_to_tensor|zeros|ones|fill|eye|one_hot|sequence_mask|range|linspace|normal|uniform|"
    r"truncated_normal|cast)\("
)
_SIGNS = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "MatMult": "matmul"}
_FUNCTIONS = {"+": ("add",), "-": ("subtract",), "*": ("multiply",), "/": ("divide", "truediv")}
_CHANGED_STATE = r"enters the loop with type <dtype: '(\w+)'> but has type <dtype: '(\w+)'> after 1 iteration"
_VARIABLE_DTYPE = r"\bself\.(?:dtype|variable_dtype)\b"


def mismatch_in_call(failure: FailureFacts) -> DtypeMismatch | None:
    """The known reason for the failure, where the layer itself computes in 16 bits and the line that raised is in its
    own call(); else None."""
    if failure.inside != "layer" or failure.layer_dtype not in HALF:
        return None
    if failure.own_layer_location is None and failure.layer_class != "Lambda":
        return None
    if failure.layer_in_library or failure.failing_function in ("build", "__init__"):
        return None
    mismatch = mismatch_of_precisions(failure)
    return mismatch if mismatch is not None and failure.layer_dtype in mismatch.dtypes else None


def has_a_reason_of_its_own(failure: FailureFacts) -> bool:
    """Whether MP203, MP206, MP212 or MP217 explains it."""
    reasons = (raw_variable(failure), later_input(failure))
    return any(reasons) or names_variable_dtype(failure) or is_float32_state(failure)


def raw_variable(failure: FailureFacts) -> OperandFacts | None:
    """A tf.Variable of the layer's own that the line names: of several the one that the failing operation is given."""
    named = (o for o in failure.operands if o.kind == "variable" and o.name.startswith("self."))
    in_float32 = [o for o in named if o.dtype == "float32"]
    mismatch = mismatch_of_precisions(failure)
    given = (
        operands_given(failure.failing_line, mismatch.operation) if mismatch is not None and len(in_float32) > 1 else ()
    )
    return next((o for name in given for o in in_float32 if o.name == name), in_float32[0] if in_float32 else None)


def operands_given(line: str, operation: str) -> tuple[str, ...]:
    """The names that stand on either side of an operation in a line, in the order in which Python computes them: of
    `(x - self.mean) * self.gamma` and "*" it is `self.gamma`. () where the line cannot be read by itself."""
    try:
        tree = ast.parse(line.strip())
    except (SyntaxError, ValueError):
        return ()
    return tuple(
        ast.unparse(operand)
        for node in _as_computed(tree)
        for operand in _given_to(node, operation)
        if isinstance(operand, (ast.Name, ast.Attribute))
    )


def _as_computed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a syntax tree in the order in which Python computes them: parts before what is made of them."""
    for child in ast.iter_child_nodes(node):
        yield from _as_computed(child)
    yield node


def _given_to(node: ast.AST, operation: str) -> list[ast.expr]:
    """The operands of the operation in a syntax node; [] for a node that is another operation."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if _SIGNS.get(type(node.op).__name__) == operation else []
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value] if _SIGNS.get(type(node.op).__name__) == operation else []
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        name = ast.unparse(node.func).rpartition(".")[2]
        return node.args if name in (operation, *_FUNCTIONS.get(operation, ())) else []
    return []


def names_variable_dtype(failure: FailureFacts) -> bool:
    return re.search(_VARIABLE_DTYPE, failure.failing_line) is not None


def later_input(failure: FailureFacts) -> OperandFacts | None:
    """An input after the first that came in float32, and that the line names as the only float32 tensor."""
    if failure.keras is None or failure.keras.is_keras3 or re.search(_MAKES_A_TENSOR, failure.failing_line):
        return None
    first = failure.layer_inputs[0][0] if failure.layer_inputs else ""
    later = {name for name, dtype in failure.layer_inputs if name != first and dtype == "float32"}
    named = [o for o in failure.operands if o.kind == "tensor" and o.dtype == "float32"]
    return named[0] if named and all(operand.name in later for operand in named) else None


def state_of_a_stateful_layer(failure: FailureFacts) -> str | None:
    """The 16-bit dtype of the state that a recurrent layer of Keras 3.0 to 3.7 makes, and keeps in float32; None for
    other errors."""
    if failure.keras is None or not failure.keras.is_keras3 or not failure.layer_is_recurrent:
        return None
    by_keras = failure.own_layer_location is None and failure.inside == "layer"
    return half_given_for_float32(failure) if by_keras else None


def changed_state(failure: FailureFacts) -> tuple[str, str] | None:
    """The 16-bit dtype of a state before a step of a recurrent layer, and the one that its cell gives it back in."""
    if failure.raised_by_program or not failure.computes_in_half or not failure.layer_is_recurrent:
        return None
    said = re.search(_CHANGED_STATE, failure.message)
    if said is None or said[1] != failure.layer_dtype or said[1] not in HALF:
        return None
    return said[1], said[2]


def was_given_float32_states(failure: FailureFacts) -> bool:
    """Whether a cell of Keras 2, of the program's own, was called with states in float32: a tensor that meets its input
    may be made of them."""
    if failure.keras is None or failure.keras.is_keras3 or not failure.layer_is_recurrent:
        return False
    return any(dtype == "float32" for _, dtype in failure.layer_inputs[1:])


def is_float32_state(failure: FailureFacts) -> bool:
    """Whether a recurrent layer of Keras 2, or a cell, met a state that came in float32."""
    if failure.keras is None or failure.keras.is_keras3 or not failure.layer_is_recurrent:
        return False
    mismatch = mismatch_of_precisions(failure)
    if mismatch is None or failure.layer_dtype not in mismatch.dtypes:
        return False
    first = failure.layer_inputs[0][0] if failure.layer_inputs else ""
    came_in_float32 = any(name != first and dtype == "float32" for name, dtype in failure.layer_inputs)
    by_keras = failure.own_layer_location is None
    return came_in_float32 and (by_keras or later_input(failure) is not None)
