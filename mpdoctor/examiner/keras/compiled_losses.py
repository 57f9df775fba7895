"""The loss that compile() was given: its name, and what is known about Keras' own losses."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any, Dict, Iterator, List, Union

from mpdoctor.examiner.process.user_code import class_location
from mpdoctor.knowledge.api_names import CROSS_ENTROPIES, LIBRARIES

LossNames = Union[str, List[str], Dict[str, str]]


def loss_names(losses: Any) -> LossNames:
    """The name of one loss for all outputs, or of each output's loss, by position or by name."""
    if isinstance(losses, dict):
        return {str(name): loss_name(loss) for name, loss in losses.items()}
    if isinstance(losses, (list, tuple)):
        return [loss_name(loss) for loss in losses]
    return loss_name(losses)


def loss_name(loss: Any) -> str:
    if loss is None or isinstance(loss, str):
        return loss or ""
    return getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__


def compute_in_predictions_dtype(losses: Any) -> bool:
    """Whether there are losses, and all of them are such of Keras' own as Keras 2 computes in the dtype of the
    predictions: its Huber loss casts to float32 (TensorFlow 2.4, 2.10 and 2.15)."""
    leaves = list(_leaves(losses))
    return bool(leaves) and all(_is_of_keras(loss) and _own_name(loss) not in ("huber", "huberloss") for loss in leaves)


def _is_of_keras(loss: Any) -> bool:
    return isinstance(loss, str) or _package(loss) in LIBRARIES


def _own_name(loss: Any) -> str:
    """The plain name of a loss of Keras' own: of its class, whatever the object is called."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", None) or type(loss).__name__
    return _plain(name)


def take_probabilities(losses: Any) -> bool:
    """Whether one of them is a cross-entropy of Keras' without `from_logits=True`."""
    return any(_takes_probabilities(leaf) for leaf in _leaves(losses))


def casts_prediction(model: Any, losses: Any) -> bool:
    """Whether every loss is the user's own, or the train_step is, and the first thing done to the prediction is a cast
    to float32."""
    functions = [_own_function(leaf) for leaf in _leaves(losses)]
    if functions and all(function is not None and _casts(function[0], function[1]) for function in functions):
        return True
    step = getattr(type(model), "train_step", None)
    return inspect.isfunction(step) and class_location(type(model)) is not None and _casts(step, None)


def _own_function(loss: Any) -> Any:
    """(function, position of the prediction) of a loss of the user's own; None for Keras'."""
    if isinstance(loss, str) or _package(loss) in LIBRARIES:
        return None
    if inspect.isfunction(loss):
        return loss, 1
    method = getattr(type(loss), "call", None)
    return (method, 2) if inspect.isfunction(method) else None


def _casts(function: FunctionType, position: Any) -> bool:
    """Whether the function holds `cast(prediction, float32)`. The prediction is the parameter at `position`; without a
    position, the result of a call of `self`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # no file has it, or it is a lambda in the middle of a line
        return False
    predictions = _names_of_prediction(tree, function, position)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name_of(node.func) == "cast")
    widened = (call.args[0] for call in calls if len(call.args) == 2 and "float32" in ast.dump(call.args[1]))
    return any(
        (isinstance(argument, ast.Name) and argument.id in predictions)
        or (position is None and _is_call_of_self(argument))
        for argument in widened
    )


def _names_of_prediction(tree: ast.AST, function: FunctionType, position: Any) -> set[str]:
    """The names that the prediction has in the function: of its parameter, or of what a call of `self` is assigned
    to."""
    if position is not None:
        return set(function.__code__.co_varnames[: function.__code__.co_argcount][position : position + 1])
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_call_of_self(node.value))
    return {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def _is_call_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "self"


def _name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _takes_probabilities(loss: Any) -> bool:
    if isinstance(loss, str):
        return _plain(loss) in map(_plain, CROSS_ENTROPIES)
    if _package(loss) not in LIBRARIES:
        return False
    if isinstance(loss, type) or callable(getattr(loss, "__code__", None)) or hasattr(loss, "__name__"):
        return _plain(loss.__name__) in map(_plain, CROSS_ENTROPIES)
    is_one = _plain(type(loss).__name__) in map(_plain, CROSS_ENTROPIES)
    return is_one and not (getattr(loss, "_fn_kwargs", None) or {}).get(
        "from_logits", getattr(loss, "from_logits", False)
    )


def _plain(name: str) -> str:
    """The name in lower case without underscores: BinaryCrossentropy and binary_crossentropy are one."""
    return name.replace("_", "").lower()


def _package(loss: Any) -> str:
    cls = loss if hasattr(loss, "__name__") else type(loss)
    return str(getattr(cls, "__module__", "")).partition(".")[0]


def _leaves(losses: Any) -> Iterator[Any]:
    if isinstance(losses, dict):
        losses = list(losses.values())
    if isinstance(losses, (list, tuple)):
        for loss in losses:
            yield from _leaves(loss)
    elif losses is not None:
        yield losses
