"""Which callback, metric, loss, schedule or input function of the program raised an error: all but its layers.

A metric, a loss, an optimizer, a learning-rate schedule, an initializer, a constraint, a regularizer, a function of the
input pipeline, or the `get_config` of something that is saved or copied."""

from __future__ import annotations

import linecache
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Iterator

from mpdoctor.examiner.exceptions import chain_of, text_of_error
from mpdoctor.examiner.process.user_code import is_own
from mpdoctor.facts.failure import Frame, PartFacts, PartKind
from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import LIBRARIES

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


# Where a Keras keeps the classes that each kind of part derives from.
_BASES: tuple[tuple[PartKind, str, tuple[str, ...]], ...] = (
    ("metric", "metrics", ("Metric",)),
    ("loss", "losses", ("Loss",)),
    ("constraint", "constraints", ("Constraint",)),
    ("regularizer", "regularizers", ("Regularizer",)),
    ("initializer", "initializers", ("Initializer",)),
    ("schedule", "optimizers.schedules", ("LearningRateSchedule",)),
    ("data", "utils", ("Sequence", "PyDataset")),
)
_CONFIGURING = ("get_config", "get_build_config", "get_compile_config", "from_config", "build_from_config")
_CONSTRAINING = ("apply_gradients", "apply_grad_to_update_var")
_WRAPPERS = ("wrapper", "error_handler", "run")
# What an optimizer's base class checks is the caller's doing: of these kinds only code that is not Keras' own speaks.
_OF_THEIR_OWN_CODE = ("optimizer", "initializer", "schedule")
# Where a Keras calls a function that it was given as learning rate.
_TAKING_RATE = (
    *("_build_learning_rate", "_compute_current_learning_rate", "_get_current_learning_rate", "learning_rate"),
    *("_decayed_lr", "_get_hyper", "_serialize_hyperparameter"),
)
_EXAMINING = ("replacement", "replaced", "__new__", "_note_write")
_FROM_GENERATOR = ("/tensorflow/python/data/ops/from_generator_op.py", "/data_adapters/generator_data_adapter.py")


def classes_of_parts(keras: KerasAdapter) -> list[tuple[PartKind, type]]:
    """The classes of this Keras that parts derive from, without its optimizers."""
    classes: list[tuple[PartKind, type]] = []
    for kind, module, names in _BASES:
        known: Any = keras.module
        for name in module.split("."):
            known = getattr(known, name, None)
        classes += [(kind, getattr(known, name)) for name in names if isinstance(getattr(known, name, None), type)]
    return classes


def part_of_error(
    keras: KerasAdapter,
    error: BaseException,
    frames: list[Frame],
    made_at: Callable[[object], Location | None],
    saved: PartFacts | None,
) -> PartFacts | None:
    """The part of the program that raised the error; None where it is a layer, or the training code itself. `frames` is
    the traceback, the innermost last; `made_at` gives the user's line that made an object; `saved` is a SavedModel's
    function that was given 16-bit values for float32 ones: what its gradient raises is its own."""
    if saved is not None and any(_takes_gradients(frame) for frame in frames):
        return saved
    return (
        _configuration(error, frames)
        or _object_of_error(keras, error, made_at)
        or _refused_constraint(error, made_at)
        or _function_as_learning_rate(frames)
        or _function_of_pipeline(error, frames)
    )


def _takes_gradients(frame: Frame) -> bool:
    """Whether the line takes gradients: Keras leaves TensorFlow's frames out of its tracebacks, and the line is what is
    left."""
    in_tape = frame.function == "gradient" and frame.path.replace("\\", "/").endswith("/eager/backprop.py")
    return in_tape or ".gradient(" in frame.text


def _configuration(error: BaseException, frames: list[Frame]) -> PartFacts | None:
    own = [frame for frame in frames if frame.own]
    if not own or own[-1].function not in _CONFIGURING:
        return _without_configuration(error)
    method = own[-1].function
    owners = [_owner(frame) for frame in _frames(error) if frame.f_code.co_name == method]
    owner = owners[-1] if owners else None
    name = getattr(owner if isinstance(owner, type) else type(owner), "__name__", "") if owner is not None else ""
    return PartFacts("configuration", name or method, method if name else "", asked_by=_asked_by(frames))


def _asked_by(frames: list[Frame]) -> str:
    """The library function through which the user's code came to the configuration, such as `save`; "" for none."""
    outer = [number for number, frame in enumerate(frames) if frame.own and frame.function not in _CONFIGURING]
    called = [frame.function for frame in frames[outer[-1] + 1 :] if not frame.own] if outer else []
    return next((function for function in called if function not in _WRAPPERS), "")


def _without_configuration(error: BaseException) -> PartFacts | None:
    """A class of the user's that needs a get_config of its own, as Keras' own says."""
    frames = [frame for frame in _frames(error) if frame.f_code.co_name == "get_config"]
    owner = _owner(frames[-1]) if frames and isinstance(error, NotImplementedError) else None
    cls = type(owner)
    return PartFacts("configuration", cls.__name__, "get_config") if _is_own_class(cls) else None


def _is_own_class(cls: type) -> bool:
    return cls.__module__ != "builtins" and _is_own(cls.__module__)


def _object_of_error(
    keras: KerasAdapter, error: BaseException, made_at: Callable[[object], Location | None]
) -> PartFacts | None:
    """The innermost one that is none of Keras' own, or that Keras made of a function which is not."""
    optimizers: list[tuple[PartKind, type]] = [("optimizer", base) for base in keras.optimizer_bases]
    bases, part = [*classes_of_parts(keras), *optimizers], None
    for frame in _frames(error):
        owner = _owner(frame)
        kind = next((kind for kind, base in bases if isinstance(owner, base)), None)
        if kind is not None and not (kind in _OF_THEIR_OWN_CODE and _is_of_keras(frame)):
            part = _part(kind, owner, frame.f_code.co_name, made_at) or part
    return part


def _is_of_keras(frame: FrameType) -> bool:
    path = frame.f_code.co_filename.replace("\\", "/")
    return not is_own(path) and any(f"/{package}/" in path for package in LIBRARIES)


def _function_as_learning_rate(frames: list[Frame]) -> PartFacts | None:
    called = [frame for frame in frames if frame.own or frame.function not in (*_WRAPPERS, *_EXAMINING)]
    pairs = zip(called, called[1:])
    given = [inner for outer, inner in pairs if inner.own and not outer.own and outer.function in _TAKING_RATE]
    if not given:
        return None
    name = given[-1].function  # of a class whose object no frame holds any more, as autograph rewrote them, its method
    return PartFacts("schedule", "" if name in ("__call__", "<lambda>") else name)


def _refused_constraint(error: BaseException, made_at: Callable[[object], Location | None]) -> PartFacts | None:
    """A constraint of Keras 2 whose result cannot be assigned to its weight: the line of the optimizer's that raised is
    `variable.assign(variable.constraint(variable))`."""
    for frame, line in _frames_and_lines(error):
        variable = frame.f_locals.get("variable", frame.f_locals.get("var"))
        constraint = getattr(variable, "constraint", None)
        if constraint is None or frame.f_code.co_name not in _CONSTRAINING:
            continue
        if ".constraint(" in linecache.getline(frame.f_code.co_filename, line):
            cls = type(constraint)
            name = getattr(constraint, "__name__", cls.__name__)
            own = _is_own(getattr(constraint, "__module__", cls.__module__))
            return PartFacts("constraint", name, own=own, made_at=made_at(constraint) or None, result_refused=True)
    return None


def _frames(error: BaseException) -> Iterator[FrameType]:
    return (frame for frame, _ in _frames_and_lines(error))


def _frames_and_lines(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames, with their lines, of the error and of the errors that caused it; of each the outermost first."""
    for cause in chain_of(error):
        trace = cause.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != "mpdoctor":  # no hook around a method
                yield trace.tb_frame, trace.tb_lineno
            trace = trace.tb_next


def _owner(frame: FrameType) -> Any:
    """The value of a method's first parameter; None for a function without one."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _part(kind: PartKind, owner: Any, function: str, made_at: Callable[[object], Location | None]) -> PartFacts | None:
    if type(owner).__module__.partition(".")[0] not in LIBRARIES:
        method = function[len("tf__") :] if function.startswith("tf__") else function  # as autograph names its copy
        return PartFacts(kind, type(owner).__name__, method, _is_own(type(owner).__module__), made_at(owner) or None)
    wrapped = getattr(owner, "_fn", None) or getattr(owner, "fn", None)
    module = str(getattr(wrapped, "__module__", "") or "")
    name = str(getattr(wrapped, "__name__", ""))
    if not name or module.partition(".")[0] in LIBRARIES:
        return None
    return PartFacts(kind, name, own=_is_own(module))


def _is_own(module: str) -> bool:
    """Whether a module of this name is the user's."""
    import sys

    path = getattr(sys.modules.get(module), "__file__", None)
    return path is None or is_own(path)


def _function_of_pipeline(error: BaseException, frames: list[Frame]) -> PartFacts | None:
    """The user's function that ran innermost, in a program's tf.data; its operations do not say whose they are."""
    paths = [frame.path.replace("\\", "/") for frame in frames]
    text = text_of_error(error).partition("Errors may have originated from an input operation")[0]
    in_operation = "IteratorGetNext" in text and hasattr(error, "op")
    if not in_operation and not any("/tensorflow/python/data/" in path or "/data_adapters/" in path for path in paths):
        return None
    own = [frame.function for frame in frames if frame.own and frame.function != "<module>"]
    generates = any(path.endswith(_FROM_GENERATOR) for path in paths)
    if not own:
        return PartFacts("pipeline", "") if in_operation else None
    return PartFacts("generator" if generates else "pipeline", own[-1])
