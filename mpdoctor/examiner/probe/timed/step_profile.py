"""Which operations a training step spends its time in, by TensorFlow's own profiler.

The profiler writes a protocol buffer (XSpace, tsl/profiler/protobuf/xplane.proto), whose Python class lies in another
place in each TensorFlow: the few fields that are needed are read here. Measured in 2.4, 2.10, 2.15 and 2.21 on a CPU,
where each operation that an executor runs is an event called `name:Type`.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator

from mpdoctor.examiner.saved.counted_messages import varint
from mpdoctor.facts.examination import LayerTime, OperationTime, ProfileFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.timed.layer_scopes import LayerScopes, ScopedLayer

EVERY_OPERATION = 3  # the level of the host tracer: 2 leaves out those that TensorFlow thinks are cheap
MOST_TYPES = 64  # a step of fit() has some 40
HOST = b"/host:CPU"
_OPERATION = re.compile(r"([^\s:]+):(_?[A-Z]\w*)")
_XLA = "XlaLaunch", "XlaRun"
_PYTHON = "PyFunc", "PyFuncStateless", "EagerPyFunc"  # of a generator, which waits for its next batch meanwhile


class NotProfiled(Exception):
    """The text is why, a clause."""


def profiled(run: Callable[[], object], steps: int, folder: str, scopes: LayerScopes) -> ProfileFacts:
    """The profile of `steps` calls of `run`. `folder` is made and removed. `scopes`: of the layers in the graph that
    runs.

    Raises NotProfiled, and what `run` raises."""
    import tensorflow as tf

    profiler = tf.profiler.experimental
    options = profiler.ProfilerOptions(host_tracer_level=EVERY_OPERATION, python_tracer_level=0, device_tracer_level=0)
    try:
        profiler.start(folder, options=options)
    except tf.errors.OpError as error:  # the program profiles itself
        raise NotProfiled(f"TensorFlow's profiler does not start: {error.message}") from error
    try:
        began = time.perf_counter()
        for _ in range(steps):
            run()
        seconds = time.perf_counter() - began
    finally:
        profiler.stop()
    try:
        return profile_from_events(_events(_written(folder)), steps, seconds, scopes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _written(folder: str) -> bytes:
    paths = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
    if not paths:
        raise NotProfiled("TensorFlow's profiler wrote nothing")
    with open(paths[0], "rb") as file:
        return file.read()


def profile_from_events(
    events: list[tuple[str, float, float]], steps: int, seconds: float, scopes: LayerScopes
) -> ProfileFacts:
    """`events`: (name, begin, end in seconds). Raises NotProfiled."""
    named = [(match.group(1), match.group(2), begin, end) for name, begin, end in events
             for match in [_OPERATION.fullmatch(name)] if match]  # fmt: skip
    named = [event for event in named if event[1] not in _PYTHON]
    operations = [(kind, begin, end) for _, kind, begin, end in named]
    if not operations:
        raise NotProfiled("TensorFlow's profiler saw no operation")
    if any(kind in _XLA for kind, _, _ in operations):
        raise NotProfiled("XLA compiles the step to one operation")
    times: dict[str, tuple[int, float]] = {}
    for kind, begin, end in operations:
        number, took = times.get(kind, (0, 0.0))
        times[kind] = (number + 1, took + end - begin)
    longest = sorted(times, key=lambda kind: -times[kind][1])[:MOST_TYPES]
    if "Cast" in times and "Cast" not in longest:
        longest.append("Cast")
    return ProfileFacts(
        steps=steps,
        seconds=seconds,
        busy=_covered([(begin, end) for _, begin, end in operations]),
        in_operations=sum(took for _, took in times.values()),
        operations=tuple(OperationTime(kind, *times[kind]) for kind in longest),
        layers=_layer_times([(name, end - begin) for name, _, begin, end in named], scopes),
    )


def _layer_times(operations: list[tuple[str, float]], scopes: LayerScopes) -> tuple[LayerTime, ...]:
    """`operations`: (name, seconds). The longest first."""
    times: dict[ScopedLayer, float] = {}
    for name, took in operations:
        layer = scopes.layer_of(name)
        if layer is not None:
            times[layer] = times.get(layer, 0.0) + took
    return tuple(LayerTime(*layer, times[layer]) for layer in sorted(times, key=lambda layer: -times[layer]))


def _covered(intervals: list[tuple[float, float]]) -> float:
    """The time in which at least one of them was under way."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(end - max(begin, reached), 0.0)
        reached = max(reached, end)
    return total


# --- the protocol buffer ----------------------------------------------------------------------------------------------
def _events(written: bytes) -> list[tuple[str, float, float]]:
    """(name, start, duration) of the events in the host's threads, read from the protocol buffer: XSpace.planes = 1;
    XPlane.name = 2, lines = 3, event_metadata = 4; XLine.timestamp_ns = 3, events = 4; XEvent.metadata_id = 1,
    offset_ps = 2, duration_ps = 3."""
    events: list[tuple[str, float, float]] = []
    for plane in _all(written, 1):
        if HOST not in _all(plane, 2):
            continue
        names = dict(_named(entry) for entry in _all(plane, 4))
        for line in _all(plane, 3):
            start = _first(line, 3) * 1e-9
            for event in _all(line, 4):
                begin = start + _first(event, 2) * 1e-12
                events.append((names.get(_first(event, 1), ""), begin, begin + _first(event, 3) * 1e-12))
    return events


def _named(entry: bytes) -> tuple[int, str]:
    """An entry of a map: key = 1, value = 2; XEventMetadata.name = 2."""
    metadata = next(iter(_all(entry, 2)), b"")
    return _first(entry, 1), next(iter(_all(metadata, 2)), b"").decode(errors="replace")


def _all(message: bytes, field: int) -> list[Any]:
    return [value for number, value in _fields(message) if number == field]


def _first(message: bytes, field: int) -> int:
    return next((int(value) for number, value in _fields(message) if number == field), 0)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each: an integer, or bytes."""
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = varint(message, place)
            yield key >> 3, value
            continue
        if kind == 2:
            length, place = varint(message, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise NotProfiled("what TensorFlow's profiler wrote is not understood")
        yield key >> 3, message[place : place + length]
        place += length
