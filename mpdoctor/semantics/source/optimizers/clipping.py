"""Functions that clip gradients, and the values that they clip at."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.values import Value, is_api

# Function → the positions of the limits, and their names.
CLIPPING: dict[str, tuple[tuple[int, str], ...]] = {
    "tensorflow.clip_by_global_norm": ((1, "clip_norm"),),
    "tensorflow.clip_by_norm": ((1, "clip_norm"),),
    "tensorflow.clip_by_average_norm": ((1, "clip_norm"),),
    "tensorflow.clip_by_value": ((1, "clip_value_min"), (2, "clip_value_max")),
    "tensorflow.keras.backend.clip": ((1, "min_value"), (2, "max_value")),
    "keras.backend.clip": ((1, "min_value"), (2, "max_value")),
    "keras.ops.clip": ((1, "x_min"), (2, "x_max")),
    "numpy.clip": ((1, "a_min"), (2, "a_max")),
}
# What to give the inner optimizer instead.
ARGUMENT = {"clip_by_global_norm": "global_clipnorm", "clip_by_norm": "clipnorm", "clip_by_average_norm": "clipnorm"}


def limits(value: Value) -> tuple[Value, ...] | None:
    """What a call clips at; None if it clips nothing."""
    arguments = limit_arguments(value)
    if not isinstance(value, Call) or not arguments:
        return None
    given = [value.argument(position, keyword) for position, keyword in arguments]
    return tuple(limit for limit in given if limit is not None)


def limit_arguments(value: Value) -> tuple[tuple[int, str], ...]:
    """The positions and the names of a call's limits; none if it clips nothing."""
    if isinstance(value, Call):
        for name, arguments in CLIPPING.items():
            if is_api(value.callee, name):
                return arguments
    return ()


def argument_for(call: Call) -> str:
    return ARGUMENT.get(call.method, "clipvalue")
