"""The variables of a program as they were before its first step: copied where that costs least, never in the way."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.replay.variable_snapshot import has_numbers, variables_alive

if TYPE_CHECKING:
    from typing import Optional, Tuple

    Kept = Tuple[
        weakref.ref[Any], Optional[tf.Tensor]
    ]  # of a variable's handle, several objects may share one; None: 0

LARGE = 2**16  # numbers; looked at before they are copied


class FirstValues:
    """Of all variables that are alive when it is made; and of each one that is made later, as it was made: an
    optimizer's in the first step, or those of a model that its first step builds.

    On a CPU a copy shares the memory of the weights until a step writes them, and with the copy that the probe keeps
    anyway; a large variable of zeros, as an optimizer's are, is not copied."""

    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        for variable in variables_alive():
            self._keep(variable)
        self._end: Callable[[], None] | None = replace_for_now(ResourceVariable, "__init__", self._note_birth)

    def end(self) -> None:
        """No further ones are noted, and the values are let go."""
        if self._end is not None:
            self._end()
            self._end = None
        self._kept.clear()

    def _note_birth(self, original: Callable[..., None], variable: Any, *args: object, **kwargs: object) -> None:
        original(variable, *args, **kwargs)
        with tf.init_scope():
            if has_numbers(variable):
                self._keep(variable)

    def _keep(self, variable: Any) -> None:
        handle, value = variable._handle, variable.read_value()
        if (value.shape.num_elements() or 0) >= LARGE and not bool(tf.math.count_nonzero(value)):
            self._kept[id(handle)] = weakref.ref(handle), None
            return
        with tf.device("CPU:0"):  # none of a GPU's memory is taken
            self._kept[id(handle)] = weakref.ref(handle), tf.identity(value)

    def put_back(self, slots: Callable[[], Iterable[tuple[Any, tf.Tensor]]]) -> list[str]:
        """The names of variables that are alive and whose first values nobody knows. `slots()` gives (variable, value)
        of those that an optimizer made while a graph was traced, where they have no values; it is asked when the
        weights are put back."""
        late = [variable for variable in variables_alive() if not self._put_back(variable)]
        values = {id(slot._handle): value for slot, value in slots()} if late else {}
        unknown = []
        for variable in late:
            value = values.get(id(variable._handle))
            if value is None:
                unknown.append(str(variable.name).partition(":")[0])
            else:
                variable.assign(value)
        return unknown

    def _put_back(self, variable: Any) -> bool:
        handle = variable._handle
        reference, value = self._kept.get(id(handle), (None, None))
        if reference is None or reference() is not handle:
            return False
        variable.assign(tf.zeros(variable.shape, variable.dtype) if value is None else value)
        return True
