"""From an exception to FailureFacts: what was raised, in which layer, and through which frames."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Iterator

from mpdoctor.examiner.capture.layer_calls import dtype_name, flat_tensors
from mpdoctor.examiner.capture.layer_hooks import WHOLE, Arguments, FailedCall
from mpdoctor.examiner.exceptions import chain_of, text_of_error
from mpdoctor.examiner.failures.library_frames import inside_from_frames
from mpdoctor.examiner.failures.missing_modules import folder_of_missing_module
from mpdoctor.examiner.failures.parts import part_of_error
from mpdoctor.examiner.keras.private_state import casts_its_input
from mpdoctor.examiner.process.autograph_files import PREFIX
from mpdoctor.examiner.process.user_code import class_location, is_own
from mpdoctor.facts.failure import During, FailureFacts, Frame
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import BatchFacts
from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer
    from mpdoctor.examiner.session import Session


_LONGEST_MESSAGE = 4000


def failure_under_watch(session: Session, error: BaseException, during: During) -> FailureFacts:
    """An exception that left the program, with the layer and the dtypes that were about."""
    session.events.raised(error)
    failure = failure_from_exception(error, during)
    if session.keras is None:
        return failure
    # It needs TensorFlow, which the program may not have.
    from mpdoctor.examiner.failures.operands import operands_of_line

    layer = session.layer_hooks.layer_of_error(error)
    failed = session.layer_hooks.failed
    if layer is not None and failed is not None:
        failure = _with_layer(failure, session, layer, failed)
    policy = session.keras.global_policy()
    return replace(
        failure,
        under_tape=session.tapes.left_a_tape(error),
        computes_in_half=policy.endswith(HALF) or failure.layer_dtype in HALF or session.layer_hooks.saw(HALF),
        operands=() if failure.location is None else operands_of_line(error, failure.location),
        part=part_of_error(
            session.keras,
            error,
            all_frames(error),
            session.layer_hooks.origins.part_made_at,
            session.half_given_to_saved,
        ),
        batches=tuple(_batches(session)),
        keras=session.keras.facts,
        saved_file=getattr(error, "saved_file", None) or session.load_hooks.file_of_error(error),
    )


def _with_layer(failure: FailureFacts, session: Session, layer: KerasLayer, failed: FailedCall) -> FailureFacts:
    """The failure, with the layer whose call raised."""
    origins = session.layer_hooks.origins
    return replace(
        failure,
        layer=layer.name,
        layer_class=type(layer).__name__,
        own_layer_location=class_location(type(layer)),
        layer_dtype=str(layer.compute_dtype or "") if casts_its_input(layer) else "",
        layer_inputs=tuple(_inputs(layer, failed.given)),
        layer_in_library=failed.in_library,
        layer_made_at=origins.made_at(layer),
        layer_made_by=origins.made_by(layer),
        layer_takes_dtype=_takes_dtype(type(layer)),
        ran_in_float32=None if failed.float32_way is None else bool(failed.float32_way),
        float32_with_layers_inside=failed.float32_way == WHOLE,
        layer_is_recurrent=hasattr(layer, "state_size") or hasattr(layer, "cell"),
    )


def _takes_dtype(layer_class: type[object]) -> bool | None:
    """Whether `__init__` names a `dtype`; None where it has `**kwargs`, or cannot be asked."""
    try:
        parameters = inspect.signature(layer_class).parameters
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return True if "dtype" in parameters else None
    return "dtype" in parameters


def _batches(session: Session) -> Iterator[BatchFacts]:
    layer_hooks = session.layer_hooks
    for layer, given, returned in layer_hooks.calls.batches():
        place = class_location(type(layer)) or layer_hooks.origins.made_at(layer)
        yield BatchFacts(layer.name, type(layer).__name__, given, returned, place)


def failure_from_exception(error: BaseException, during: During) -> FailureFacts:
    """What the exception and its frames tell alone."""
    text = text_of_error(error)
    frames = _frames(error, text)
    own = [frame for frame in frames if frame.own]
    return FailureFacts(
        kind="raised",
        during=during,
        exception=_raised_in_python(text) or type(error).__name__,
        message=_shortened(text),
        location=_location(error, own),
        frames=tuple(frame for frame in frames if frame.own or frame is frames[-1])[-30:],
        inside=inside_from_frames(all_frames(error)),
        missing_module_in="" if not own else folder_of_missing_module(error, own[-1].path),
        raised_by_program=bool(frames) and frames[-1].own and frames[-1].text.startswith(("raise", "assert")),
    )


def all_frames(error: BaseException) -> list[Frame]:
    """The user's and the libraries', outermost first."""
    return [*_frames(error, text_of_error(error)), *_frames_of_origin(error)]


def _raised_in_python(text: str) -> str:
    """The class of what a function raised that a graph calls (tf.py_function, tf.numpy_function, a generator), which
    TensorFlow hands on as one of its own errors, with Python's traceback in its text."""
    _, of_call, traceback_of_call = text.rpartition("Traceback (most recent call last):\n")
    if not of_call or "/tensorflow/python/ops/script_ops.py" not in traceback_of_call.replace("\\", "/"):
        return ""
    raised = re.search(r"^([A-Za-z_][\w.]*)(?:: |$)", traceback_of_call, flags=re.MULTILINE)
    return raised[1].rpartition(".")[2] if raised else ""


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_MESSAGE:
        return text
    # of a long one the ends say something: a graph's error comes last, after the traceback of its node
    return text[: _LONGEST_MESSAGE // 2] + "\n…\n" + text[-_LONGEST_MESSAGE // 2 :]


def _location(error: BaseException, own: list[Frame]) -> Location | None:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(os.path.abspath(error.filename), error.lineno)
    return Location(own[-1].path, own[-1].line) if own else None


def _frames(error: BaseException, text: str) -> list[Frame]:
    """Every frame, outermost first. Where autograph rewrote a function, or a graph was built earlier than it failed,
    the traceback does not show the user's line: autograph's own record, the message or the graph node does."""
    frames = []
    for summary in traceback.extract_tb(error.__traceback__):
        if PREFIX not in summary.filename:
            frames.append(_frame(summary.filename, summary.lineno or 0, summary.name))
    metadata = getattr(error, "ag_error_metadata", None)
    for original in reversed(getattr(metadata, "translated_stack", None) or ()):
        frame = _frame(original.filename, original.lineno, original.function_name or "<lambda>")
        if frame.own:
            frames.append(frame)
    told = re.findall(r'File "([^"]+)", line (\d+), in ([\w<>]+)', text)
    frames.extend(_frame(path, int(line), name) for path, line, name in told)
    return frames


def _frames_of_origin(error: BaseException) -> list[Frame]:
    """The frames of the errors that this one was made from: an error that autograph makes shows no frame of the code
    that autograph has written."""
    origins = list(chain_of(error))[1:]
    summaries = [summary for origin in origins for summary in traceback.extract_tb(origin.__traceback__)]
    return [_frame(summary.filename, summary.lineno or 0, summary.name) for summary in summaries]


def _frame(path: str, line: int, function: str) -> Frame:
    absolute = os.path.abspath(path) if not path.startswith("<") else path
    return Frame(absolute, line, function, linecache.getline(path, line).strip(), is_own(path))


def _inputs(layer: KerasLayer, given: Arguments) -> Iterator[tuple[str, str]]:
    args, kwargs = given
    try:
        signature = inspect.signature(layer.call)
        named = {name: value for name, value in kwargs.items() if name in signature.parameters}
        arguments = signature.bind_partial(*args, **named).arguments
    except (TypeError, ValueError):  # a call that does not fit, and will say so itself
        return
    for name, value in arguments.items():
        for tensor in flat_tensors(value):
            yield name, dtype_name(tensor)
