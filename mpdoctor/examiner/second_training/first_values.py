"""Keeps the initial value of every variable, so that the training can start again from them."""

from __future__ import annotations

import functools
import sys
import weakref
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.replay.variable_snapshot import has_numbers, is_of_program, variables_alive

if TYPE_CHECKING:
    from typing import Optional, Tuple

    Kept = Tuple[
        weakref.ref[tf.Variable], Optional[tf.Tensor]
    ]  # of a variable's handle, several objects may share one; None: 0

LARGE = 2**16  # numbers; looked at before they are copied


class FirstValues:
    """The values of all live variables when this is made, and of each later variable when that is made: an optimizer's
    in the first step, or those of a model that its first step builds.

    On a CPU a copy shares the memory of the weights until a step writes them, and with the copy that the probe keeps
    anyway; a large variable of zeros, as an optimizer's are, is not copied."""

    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        for variable in variables_alive():
            self._keep(variable, variable.read_value())
        function = type(tf.function(lambda: None))
        functions = sys.modules[function.__module__]
        in_graph: Any = functions.UnliftedInitializerVariable
        self._ends = [
            replace_for_now(ResourceVariable, "__init__", self._note_birth),
            replace_for_now(in_graph, "__init__", self._note_birth_in_graph),
            replace_for_now(function, "_initialize_uninitialized_variables", self._note_initialized),
        ]

    def end(self) -> None:
        """No further ones are noted, and the values are let go."""
        while self._ends:
            self._ends.pop()()
        self._kept.clear()

    def _note_birth(
        self, original: Callable[..., None], variable: tf.Variable, *args: object, **kwargs: object
    ) -> None:
        original(variable, *args, **kwargs)
        with tf.init_scope():
            if has_numbers(variable):
                self._keep(variable, variable.read_value())

    def _note_birth_in_graph(
        self,
        original: Callable[..., None],
        variable: tf.Variable,
        *args: object,
        initial_value: object = None,
        **kwargs: object,
    ) -> None:
        """Keep the first value of a variable that is made while a tf.function is traced: Keras 2 computes it outside of
        the graph, which assigns it when it runs."""
        values = []
        given = initial_value
        if isinstance(given, (FunctionType, functools.partial)):

            def initial_value() -> object:
                values.append(given())
                return values[0]
        else:
            values.append(given)
        original(variable, *args, initial_value=initial_value, **kwargs)
        is_number = bool(values) and isinstance(values[0], (bool, int, float, np.ndarray, np.generic))
        if values and (is_number or hasattr(values[0], "numpy")) and is_of_program(variable):
            with tf.init_scope():
                self._keep(variable, tf.cast(values[0], variable.dtype))

    def _note_initialized(
        self, original: Callable[..., None], function: object, initializers: list[tuple[tf.Variable, object]]
    ) -> None:
        """Keep the values of variables that Keras 3 initializes in a graph, before the rest of it runs."""
        original(function, initializers)
        with tf.init_scope():  # one tf.function may be traced within another one
            for variable, _ in initializers:
                if has_numbers(variable) and id(variable._handle) not in self._kept:
                    self._keep(variable, variable.read_value())

    def _keep(self, variable: tf.Variable, value: tf.Tensor) -> None:
        handle = variable._handle
        if (value.shape.num_elements() or 0) >= LARGE and not bool(tf.math.count_nonzero(value)):
            self._kept[id(handle)] = weakref.ref(handle), None
            return
        with tf.device("CPU:0"):  # none of a GPU's memory is taken
            self._kept[id(handle)] = weakref.ref(handle), tf.identity(value)

    def put_back(self) -> list[str]:
        """Restore the first values. Returns the names of live variables whose first values are not known."""
        unknown = []
        for variable in variables_alive():
            handle: Any = variable._handle
            reference, value = self._kept.get(id(handle), (None, None))
            if reference is None or reference() is not handle:
                unknown.append(str(variable.name).partition(":")[0])
            else:
                variable.assign(tf.zeros(variable.shape, variable.dtype) if value is None else value)
        return unknown
