"""A recurrent layer that computes in 16 bits gets a float32 state.

## Why it matters
Keras 2 casts only the input sequence of a recurrent layer. With `initial_state=[tf.zeros(…), tf.zeros(…)]` an
LSTM under `mixed_float16` raises (`cannot compute MatMul as input #1 … expected to be a float tensor`). So does
a functional model whose states are Inputs, and a cell whose `get_initial_state` returns float32 (tf_keras 2.21,
TensorFlow 2.15 and 2.10). Keras 3 casts the states as well, but before 3.8 `stateful=True` failed (seen in
3.3.3: `Tensor conversion requested dtype float32 for Tensor with dtype float16`). A custom cell that returns
its state in float32 raises in every Keras (`Loop var … enters the loop with type float16`).

## Flagged
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
lstm = tf.keras.layers.LSTM(8)
outputs = lstm(tf.zeros((1, 4, 3)), initial_state=[tf.zeros((1, 8)), tf.zeros((1, 8))])
```

## Fixed
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
lstm = tf.keras.layers.LSTM(8)
state = tf.zeros((1, 8), dtype=lstm.compute_dtype)
outputs = lstm(tf.zeros((1, 4, 3)), initial_state=[state, state])
```

## Versions
States: Keras 2. `stateful=True`: TensorFlow up to 2.6 and Keras 3.0 to 3.7; fine in TensorFlow 2.10, 2.15,
tf_keras 2.21 and Keras 3.15.

## Where users met it
keras-team/keras-io#1861, tensorflow/addons#1968, tensorflow/tensorflow#35466, keras-team/keras#14047,
keras-team/keras#20605.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Finding, Fix, Severity
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.events import Call, Operation, Return
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.program.values import Collection, Value, known, options
from mpdoctor.semantics.live.errors.dtype_error_causes import changed_state, is_float32_state, state_of_a_stateful_layer
from mpdoctor.semantics.live.errors.error_texts import evidence_of, place_of_failure
from mpdoctor.semantics.source.edits.casts import cast, each_cast, second_returned_cast
from mpdoctor.semantics.source.edits.expressions import safe_fix, unsafe_fix
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_of_instances
from mpdoctor.semantics.source.layers.later_inputs import given_to_call
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.programs.branches import is_asked_for_others
from mpdoctor.semantics.source.texts.written import argument_at, callee_text
from mpdoctor.semantics.wording import quoted

SEVERITY = Severity.ERROR
FIXES = ("safe", "unsafe")
FAILS_IN = ("model", "training")
EXPLAINS = {"MP202": "line"}
CONFIRMED_LIVE = True
ONLY_IN_HALF = True
RECURRENT = (
    *("keras.layers.LSTM", "keras.layers.GRU", "keras.layers.SimpleRNN", "keras.layers.RNN"),
    *("keras.layers.Bidirectional", "keras.layers.ConvLSTM1D", "keras.layers.ConvLSTM2D", "keras.layers.ConvLSTM3D"),
)
CELLS = ("keras.layers.LSTMCell", "keras.layers.GRUCell", "keras.layers.SimpleRNNCell", "keras.layers.StackedRNNCells")
CAST = "Cast the state to the layer's dtype"
STATEFUL_BROKEN_UNTIL = {"keras": (3, 8), "tf.keras": (2, 7)}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    yield from _stateful(facts)
    yield from _states_given_back(facts)
    if not facts.keras.is_keras3:
        yield from _states_handed_over(facts)
        yield from _states_of_cells(facts)


def _states_handed_over(facts: SourceFacts) -> Iterator[Finding]:
    """Calls of a 16-bit recurrent layer, or of a cell, with a float32 state: one for each layer and state."""
    told: dict[tuple[Location, int], dict[Location, Finding]] = {}
    for call in facts.calls:
        layer = call.callee
        if isinstance(layer, Call) and is_call_of(layer, *RECURRENT, *CELLS) and half_dtype_of_layer(facts, layer):
            states = _spread(call.argument(1, "initial_state") or call.keyword("states"))
            given = [handed for state in states for handed in (state, *given_to_call(facts, state))]
            state = _first_float32(facts, (part for handed in given for part in _spread(handed)))
            if state is not None and not asks_for_dtype(call.context) and not is_asked_for_others(call, layer):
                of, fix = callee_text(facts, call.location), _cast_where_called(facts, call)
                finding = _finding(facts, state, layer.method, of, call.location, fix)
                told.setdefault((state.location, id(layer)), {}).setdefault(call.location, finding)
    yield from (_with_other_calls(list(findings.values())) for findings in told.values())


def _with_other_calls(findings: list[Finding]) -> Finding:
    """The first of the findings about one state that a layer is called with, with the places of the others and with the
    edits of all."""
    first, *others = findings
    if not others:
        return first
    fixes = [finding.fix for finding in findings]
    edits = [list(fix.edits) for fix in fixes if fix is not None]
    places = [finding.location for finding in others if finding.location is not None]
    sights = [AlsoSeen("MP212", "source", "The layer gets it here, too.", place.path, place.line) for place in places]
    fix = safe_fix(first.fix.title, *edits) if first.fix is not None and len(edits) == len(fixes) else None
    return dataclasses.replace(first, fix=fix, also_seen=tuple(sights))


def _states_of_cells(facts: SourceFacts) -> Iterator[Finding]:
    """User's cells in 16 bits whose `get_initial_state` returns a float32 state."""
    for returned in facts.returns:
        cell = _cell_with_initial_state(returned.context)
        if cell is None or SIXTEEN_BITS.keys().isdisjoint(policies_of_instances(facts, cell)):
            continue
        state = _first_float32(facts, _spread(returned.value))
        if state is not None and not asks_for_dtype(returned.context):
            yield _finding(facts, state, cell.name, "self", returned.location, _cast_where_returned(facts, returned))


def _states_given_back(facts: SourceFacts) -> Iterator[Finding]:
    """Cells in 16 bits, looped over by a Keras layer, whose `call()` returns a state in float32."""
    cells = {cell for call in facts.calls_of("keras.layers.RNN") for cell in _cells_looped_over(facts, call)}
    for returned in facts.returns:
        function, owner = returned.context.function, returned.context.owner
        if owner not in cells or function is None or function.name != "call" or not function.parameters:
            continue
        states = _states_returned(returned)
        if states is None or asks_for_dtype(returned.context):
            continue
        if _first_float32(facts, _spread(states)) is not None:
            dtype = f"{function.parameters[0]}.compute_dtype"
            yield Finding(
                f"{owner.name} computes in 16 bits and returns a state in float32: the loop over the time steps starts "
                "with a state in the cell's dtype and raises when that dtype changes.",
                "Cast the states to the dtype of the cell: `tf.cast(state, self.compute_dtype)`. The cell's output "
                "may be float32.",
                returned.location,
                fix=safe_fix(CAST, second_returned_cast(facts, returned, dtype))
                or _cast(facts, states.location, dtype, options(states)),
            )


def _cells_looped_over(facts: SourceFacts, recurrent: Call) -> Iterator[ClassFacts]:
    """The classes of cells in 16 bits whose states begin in the cell's dtype."""
    for given in options(recurrent.argument(0, "cell")):
        cell = class_of(given)
        if cell is None or known(recurrent.keyword("unroll")) is True:
            continue
        has_own_start = cell.find_method("get_initial_state") is not None or recurrent.keyword("dtype") is not None
        begins_elsewhere = has_own_start and not facts.keras.is_keras3
        if not begins_elsewhere and all(policy in SIXTEEN_BITS for policy in policies_of_instances(facts, cell)):
            yield cell


def _cast_where_called(facts: SourceFacts, call: Call) -> Fix | None:
    """The edit that casts the state to the layer's dtype, where the layer has a name to ask for it."""
    layer = callee_text(facts, call.location)
    place = argument_at(facts, call.location, 1, "initial_state")
    if place is None or not re.fullmatch(r"[\w.]+", layer):
        return None
    given = [
        handed
        for state in options(call.argument(1, "initial_state"))
        for handed in (state, *given_to_call(facts, state))
    ]
    return _cast(facts, place, f"{layer}.compute_dtype", given)


def _cast_where_returned(facts: SourceFacts, returned: Return) -> Fix | None:
    function = returned.context.function
    if function is None or not function.parameters:
        return None
    dtype = f"{function.parameters[0]}.compute_dtype"
    return _cast(facts, returned.value.location, dtype, options(returned.value))


def _cast(facts: SourceFacts, place: Location, dtype: str, given: Iterable[Value]) -> Fix | None:
    """The edit that casts a single state, or each state of a list. None where it may be either, or where the list is a
    named tuple or holds more than tensors, which a list of casts would not be."""
    lists = [_listed(state) for state in given if not isinstance(state, Parameter)]
    listed = {held is not None for held in lists}
    if len(listed) != 1 or any(held.keys or any(map(_listed, held.items)) for held in lists if held is not None):
        return None
    edit = each_cast(facts, place, dtype) if listed.pop() else cast(facts, place, dtype)
    return safe_fix(CAST, edit)


def _states_returned(returned: Return) -> Value | None:
    """The states that a cell returns: the second of two values; None where it does not return two."""
    given = returned.value.items if isinstance(returned.value, Collection) else ()
    return given[1] if len(given) == 2 else None


def _cell_with_initial_state(context: Context) -> ClassFacts | None:
    """The user's layer whose own `get_initial_state` this is, if it has a `call()` as a cell has."""
    function, owner = context.function, context.owner
    if function is None or owner is None or function.name != "get_initial_state" or owner.kind != "layer":
        return None
    return owner if owner.find_method("call") else None


def _first_float32(facts: SourceFacts, states: Iterable[Value]) -> Value | None:
    return next((state for state in states if _is_float32(facts, state)), None)


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    made = state_of_a_stateful_layer(failure)
    if made is not None:
        yield Finding(
            f"In {place_of_failure(failure)} Keras tries to store a {made} state in a float32 variable, as Keras 3.0 "
            "to 3.7 do for stateful layers.",
            'Update Keras to 3.8 or newer, or give the layer `dtype="float32"`.',
            failure.location,
            layer=failure.layer,
            evidence=evidence_of(failure),
        )
    changed = changed_state(failure)
    if changed is not None:
        yield Finding(
            f"In {place_of_failure(failure)} a state starts as {changed[0]}, and its cell returns it as {changed[1]}: "
            "the loop over the time steps does not let its dtype change.",
            "Return the states in the dtype of the cell, `tf.cast(state, self.compute_dtype)`, or give the layer "
            '`dtype="float32"`.',
            failure.location,
            layer=failure.layer,
            evidence=evidence_of(failure),
        )
    if is_float32_state(failure):
        yield Finding(
            f"In {place_of_failure(failure)} the state is float32, but the layer computes in {failure.layer_dtype}: "
            "Keras 2 casts only the input.",
            "Make the state in the layer's dtype, `tf.zeros(…, dtype=layer.compute_dtype)`, or cast it, "
            "`tf.cast(state, x.dtype)`.",
            failure.location,
            layer=failure.layer,
            evidence=evidence_of(failure),
        )


def _stateful(facts: SourceFacts) -> Iterator[Finding]:
    release, until = facts.keras.release, STATEFUL_BROKEN_UNTIL.get(facts.keras.package)
    if not release or until is None or release >= until:
        return
    for call in facts.calls_of(*RECURRENT):
        if known(call.keyword("stateful")) is True and half_dtype_of_layer(facts, call):
            yield Finding(
                f"{call.method} stores its state in float32 and computes it in 16 bits: with `stateful=True` its first "
                f"call raises in {facts.keras}.",
                'Give it `dtype="float32"`, or use Keras 3.8 or later, TensorFlow 2.7 to 2.15 or tf_keras.',
                call.location,
                fix=unsafe_fix('Give the layer dtype="float32"', in_float32(facts, call)),
            )


def _finding(facts: SourceFacts, state: Value, layer: str, of: str, location: Location, fix: Fix | None) -> Finding:
    made = quoted(facts, state.location, location) or "This state"
    named = of if re.fullmatch(r"(?:\w+\.)*[a-z_]\w*", of) else "layer"
    return Finding(
        f"{made} is float32, but {layer} computes in 16 bits: Keras 2 does not cast "
        "states, so the layer's first call raises.",
        f"Make the state in the layer's dtype: `dtype={named}.compute_dtype`, or cast it to the dtype of the inputs.",
        location,
        fix=fix,
    )


def _spread(value: Value | None) -> Iterator[Value]:
    """The elements of a list, also of `[state] * 2`."""
    for option in options(value):
        listed = _listed(option)
        for item in (option,) if listed is None else listed.items:
            yield from options(item)


def _listed(value: Value) -> Collection | None:
    """The list that a value is, or repeats."""
    if isinstance(value, Operation) and value.operator == "*":
        lists = [operand for operand in value.operands if isinstance(operand, Collection)]
        return lists[0] if len(lists) == 1 else None
    return value if isinstance(value, Collection) else None


def _is_float32(facts: SourceFacts, state: Value) -> bool:
    return facts.dtype_of(state) == "float32" and not is_array(state)
