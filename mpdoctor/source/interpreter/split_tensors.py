"""What a tensor is split into: how many parts there are is said in the call."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Collection, Item, Known, Value, known

_BY_COUNT = {
    "tensorflow.split": "num_or_size_splits",
    "tensorflow.unstack": "num",
    "keras.ops.unstack": "num",
}
_BY_COUNT_OR_PLACES = {
    "keras.ops.split": "indices_or_sections",
    "tensorflow.experimental.numpy.split": "indices_or_sections",
    "numpy.split": "indices_or_sections",
}
_MOST_PARTS = 64


def parts_of_split(value: Value, location: Location) -> Value:
    """The list of as many parts as the call says, of `tf.split(x, 3)` and the like; other values as they are."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return value
    count = _count_of_parts(value, value.callee)
    if count is None or not 0 < count <= _MOST_PARTS:
        return value
    return Collection(location, "list", tuple(Item(location, value, Known(location, i)) for i in range(count)))


def _count_of_parts(call: Call, callee: Api) -> int | None:
    for names, more in ((_BY_COUNT, 0), (_BY_COUNT_OR_PLACES, 1)):
        for name, parameter in names.items():
            if callee.is_(name):
                said = call.argument(1, parameter)
                number = known(said)
                if isinstance(said, Collection) and not said.open and not said.uniform:
                    return len(said.items) + more
                return number if isinstance(number, int) and not isinstance(number, bool) else None
    return None
