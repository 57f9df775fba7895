"""Guards: where a program itself asks whether something exists, and which tests decide a path for certain."""

from __future__ import annotations

import ast
import itertools
from functools import cache
from typing import NamedTuple

from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import NAMES
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Answer, Api, Collection, Known, Unknown, Value, is_api, known, options, walk
from mpdoctor.source.asked_kinds import certain_arm
from mpdoctor.source.syntax_nodes import nodes_in

UNKNOWN = Unknown()
WRAPPER_CLASSES = ("LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3", "BaseLossScaleOptimizer")
LOOP_METHODS = ("get_scaled_loss", "get_unscaled_gradients")
_OF_TEXTS = ("startswith", "endswith", "lower", "upper", "strip")
_NEAR = 40  # values
_MODULES_OF_DTYPES = ("tf", "tensorflow", "np", "numpy")
_ASKING = frozenset(
    ("hasattr", "getattr", "isinstance", "issubclass", "dir", "callable", "vars", "signature", "find_spec")
)

_OF_KINDS = ("isinstance", "callable")

# What every optimizer and model of every version has: who asks for it asks for nothing.
_ALWAYS_THERE = frozenset(("learning_rate", "iterations", "optimizer", "model"))
_OTHER_ERRORS = frozenset(
    [
        "KeyboardInterrupt",
        "SystemExit",
        "GeneratorExit",
        "StopIteration",
        "OSError",
        "IOError",
        "FileNotFoundError",
        "FileExistsError",
        "PermissionError",
        "ConnectionError",
        "TimeoutError",
        "MemoryError",
        "RuntimeError",
        "OutOfRangeError",
        "ResourceExhaustedError",
        "KeyError",
        "IndexError",
        "ZeroDivisionError",
        "UnicodeDecodeError",
        "JSONDecodeError",
        "CalledProcessError",
        "HTTPError",
        "URLError",
    ]
)


def asks_whether_it_works(test: ast.expr, value: Value) -> bool:
    """Whether it asks by hasattr, getattr, dir, isinstance, or a version, in the test itself or in what it stands for
    (`is_keras3`): the code behind it is written for more than one library version."""
    answer = getattr(test, "asks", None)
    if answer is None:
        nodes = nodes_in([test])
        idle = {node.func for node in nodes if isinstance(node, ast.Call) and _asks_for_nothing(node)}
        answer = test.asks = any(  # type: ignore[attr-defined]
            _names_a_question(node) for node in nodes if node not in idle
        )
    return bool(answer) or _comes_from_asking(value)


def _asks_for_nothing(call: ast.Call) -> bool:
    """Whether the `hasattr` asks for an attribute that is always there, as `hasattr(self.model.optimizer,
    "learning_rate")` does."""
    is_asked = isinstance(call.func, ast.Name) and call.func.id == "hasattr" and len(call.args) == 2
    name = call.args[1] if is_asked else None
    return isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value in _ALWAYS_THERE


def arm_of_wrapper(test: ast.expr, value: Value) -> bool | None:
    """The arm of `if isinstance(optimizer, LossScaleOptimizer):` in which it is one; that arm is as certain to run as
    the optimizer's type. None where the test, or the value that it stands for (`scales = isinstance(…)`), asks for
    anything else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inside = arm_of_wrapper(test.operand, value.operands[0] if isinstance(value, Operation) else UNKNOWN)
        return None if inside is None else not inside
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.And)
        return decides if decides in (arm_of_wrapper(value, UNKNOWN) for value in test.values) else None
    return True if _is_written_question(test) or _asks_for_wrapper(value) else None


def _is_written_question(test: ast.expr) -> bool:
    """Whether it reads `isinstance(…, LossScaleOptimizer)`."""
    is_asked = isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    return isinstance(test, ast.Call) and is_asked and len(test.args) == 2 and _is_wrapper_class(test.args[1])


def arm_that_scales(test: ast.expr, value: Value) -> bool | None:
    """The arm of `if hasattr(optimizer, "get_scaled_loss"):` in which it has that method, as only the
    LossScaleOptimizer of Keras 2 does. None where the test, or the value that it stands for, asks for anything else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inside = arm_that_scales(test.operand, UNKNOWN)
        return None if inside is None else not inside
    if isinstance(test, ast.Call):
        is_asked = isinstance(test.func, ast.Name) and test.func.id == "hasattr" and len(test.args) == 2
        written = test.args[1] if is_asked else None
        return True if isinstance(written, ast.Constant) and written.value in LOOP_METHODS else None
    name = value.argument(1) if isinstance(value, Call) and is_api(value.callee, "builtins.hasattr") else None
    return True if known(name) in LOOP_METHODS else None


class Question(NamedTuple):
    """What an `if` asks.

    asks
        Whether it asks if something exists or works (`asks_whether_it_works`): its arms are then guarded.
    of_wrapper, that_scales
        The arms that `arm_of_wrapper` and `arm_that_scales` name.
    certain
        The arm that is not guarded after all: it asks of which kind the program's own data are, and they are of it.
    """

    asks: bool
    of_wrapper: bool | None
    that_scales: bool | None
    certain: bool | None = None


def question_of(test: ast.expr, value: Value) -> Question:
    asks = asks_whether_it_works(test, value)
    certain = None
    if asks and _asks_for_kinds_alone(test):
        certain = certain_arm(test, [option for option in options(value) if _comes_from_asking(option)])
    return Question(asks, arm_of_wrapper(test, value), arm_that_scales(test, value) if asks else None, certain)


def _asks_for_kinds_alone(test: ast.expr) -> bool:
    """Whether the only questions that the test is made of are `isinstance` and `callable`."""
    asked = [node for node in nodes_in([test]) if _names_a_question(node)]
    return bool(asked) and all(isinstance(node, ast.Name) and node.id in _OF_KINDS for node in asked)


def guarded_in_arm(outer: Context, taken: bool, question: Question) -> dict[str, bool]:
    """What the context of an arm says of guards: `Context.guarded`, `only_unwrapped` and `only_wrapped`."""
    guards = question.asks and taken is not question.of_wrapper and taken is not question.certain
    is_question = outer.only_unwrapped if outer.guarded else guards
    scales = guards and taken is question.that_scales
    return {
        "guarded": outer.guarded or guards,
        "only_unwrapped": is_question and not (guards and question.of_wrapper is None),
        "only_wrapped": (scales and not outer.guarded) or (outer.only_wrapped and (scales or not guards)),
    }


def _is_wrapper_class(kind: ast.expr) -> bool:
    if isinstance(kind, ast.Tuple):
        return bool(kind.elts) and all(map(_is_wrapper_class, kind.elts))
    last = kind.attr if isinstance(kind, ast.Attribute) else kind.id if isinstance(kind, ast.Name) else ""
    return last in WRAPPER_CLASSES


def _asks_for_wrapper(value: Value) -> bool:
    """Whether it is the answer of `isinstance(optimizer, LossScaleOptimizer)`."""
    kind = value.argument(1) if isinstance(value, Call) and is_api(value.callee, "builtins.isinstance") else None
    kinds = kind.items if isinstance(kind, Collection) else (kind,)
    names = [kind.name.rpartition(".")[2] if isinstance(kind, Api) else "" for kind in kinds]
    return bool(names) and all(name in WRAPPER_CLASSES for name in names)


def is_answer(value: Value) -> bool:
    """Whether it tells, or may tell, that a part of a library could not be imported."""
    return any(isinstance(part, Answer) for part in walk(value))


def _comes_from_asking(value: Value) -> bool:
    """Whether a value was computed from an answer. An answer lies near: what takes many steps is data."""
    waiting, seen = [value], {value}
    for part in itertools.islice(waiting, _NEAR):  # which grows; without `walk`, as it is asked at each test
        made_of = part.parts
        if not made_of:
            if isinstance(part, Answer) or (isinstance(part, Api) and _is_of_an_answer(part.name)):
                return True
        elif len(waiting) < _NEAR and not (isinstance(part, Call) and _is_idle(part)):
            for further in made_of:
                if further not in seen:
                    seen.add(further)
                    waiting.append(further)
    return False


def _is_idle(call: Call) -> bool:
    """Whether it is a `hasattr` for an attribute that is always there, as in `hasattr(model, "optimizer")`."""
    if not isinstance(call.callee, Api) or call.callee.name != "builtins.hasattr":
        return False
    name = call.argument(1)
    return isinstance(name, Known) and isinstance(name.value, str) and name.value in _ALWAYS_THERE


@cache
def _is_of_an_answer(name: str) -> bool:
    """Whether a library's name asks, or is a version or part of one (`__version__.startswith`)."""
    parts = name.split(".")
    return parts[-1] in _ASKING or any(map(_names_a_version, parts))


def _names_a_question(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _ASKING or _names_a_version(node.id)
    if isinstance(node, ast.Attribute):
        return node.attr in _ASKING or _names_a_version(node.attr)
    return False


def _names_a_version(name: str) -> bool:
    """Whether it is `__version__`, `version_info`, `TF_VERSION` or `LooseVersion`; not `conversion`."""
    return any(word in ("version", "versions", "looseversion") for word in name.lower().strip("_").split("_"))


def attributes_asked(test: ast.expr) -> frozenset[str]:
    """The names of the attributes (`self.mixed`) on which the answer to a test depends: they may differ from one object
    to the next, or be set from elsewhere. Dtypes (`tf.float16`) may not."""
    answer = getattr(test, "attributes_asked", None)
    if answer is None:
        nodes = nodes_in([test])
        asked = [node.func for node in nodes if isinstance(node, ast.Call) and _asks_dict_or_text(node.func)]
        attributes = (node for node in nodes if isinstance(node, ast.Attribute) and node not in asked)
        answer = frozenset(node.attr for node in attributes if not _is_dtype(node))
        test.attributes_asked = answer  # type: ignore[attr-defined]
    return answer


def _is_dtype(attribute: ast.Attribute) -> bool:
    """Whether the attribute is a dtype such as `tf.float16`."""
    return (
        isinstance(attribute.value, ast.Name) and attribute.value.id in _MODULES_OF_DTYPES and attribute.attr in NAMES
    )


def _asks_dict_or_text(function: ast.expr) -> bool:
    """Whether the function is a method of a dict or a text: `settings.get`, `policy.startswith`,
    `policy.lower().startswith`."""
    if not isinstance(function, ast.Attribute) or function.attr not in ("get", *_OF_TEXTS):
        return False
    return isinstance(function.value, ast.Name) or (function.attr != "get" and isinstance(function.value, ast.Call))


def is_guarding_context(name: str) -> bool:
    """Whether it is the name of `with pytest.raises(…)` or `pytest.warns(…)`, of `with self.assertRaises(…)` or of
    `with contextlib.suppress(…)`."""
    last = name.rpartition(".")[2]
    return last in ("raises", "suppress", "warns") or last.startswith("assertRaises")


def is_guarding_handler(handler: ast.ExceptHandler) -> bool:
    """Whether an `except` clause is prepared for a name or an argument that does not exist, and goes on. One
    that catches KeyboardInterrupt, a RuntimeError of CUDA or a missing file asks another question, and one
    that raises again, or ends the program, is prepared for nothing."""
    if handler.body and _ends_program(handler.body[-1]):
        return False
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in caught}
    return not names or not names <= _OTHER_ERRORS


def _ends_program(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return True
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return called is not None and ast.unparse(called) in ("sys.exit", "exit", "quit", "os._exit")
