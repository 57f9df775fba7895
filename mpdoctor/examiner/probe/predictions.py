"""What a program that does not train computes with its models: predict(), evaluate() and model(x) of its own, watched.

A call whose numbers are finite costs one look at them; one whose numbers are not is repeated, with its layers observed.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple

import numpy as np

from mpdoctor.examiner.capture import data as data_facts
from mpdoctor.examiner.capture.layer_calls import flat_tensors
from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts
from mpdoctor.facts.training import PredictionFacts, TrainingFacts, excuse_of

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel
    from mpdoctor.examiner.replay.culprits import Culprits
    from mpdoctor.examiner.session import Session


METHODS = ("predict", "predict_on_batch", "evaluate", "test_on_batch")
BATCH = 32  # of Keras, where nobody says
TRIES = 4  # batches that are repeated in search of one that is not finite


class Seen(NamedTuple):
    """One call, the first whose numbers were not finite, else the last; `nan` of the `nonfinite` were NaN."""

    keras: KerasAdapter
    model: KerasModel
    by: str
    location: Location | None
    data: tuple[ArrayFacts, ...]
    numbers: int
    nonfinite: int
    nan: int
    culprits: Culprits | None = None
    not_looked: str = ""


class Predictions:
    """Of one process, until it trains."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: dict[int, Seen] = {}  # by model
        self._calls: dict[int, int] = {}
        # by tf.function: itself, and the model that its graph calls
        self._functions: dict[int, tuple[Callable[..., object], KerasAdapter, KerasModel]] = {}
        self._inside = 0  # calls of Keras' own methods, and repetitions, that are under way

    def install(self, keras: KerasAdapter) -> None:
        for name in METHODS:
            replace_method(keras.trainer, name, functools.partial(self._method, keras, name))
        self._session.watch.after_outermost.append(functools.partial(self._called, keras))

    def call_of(self, model: KerasModel) -> CallFacts:
        seen = self._seen.get(id(model))
        return CallFacts("none") if seen is None else CallFacts("predict", seen.location)

    def data_of(self, model: KerasModel) -> tuple[ArrayFacts, ...]:
        seen = self._seen.get(id(model))
        return () if seen is None else seen.data

    @property
    def any(self) -> bool:
        return bool(self._seen)

    @property
    def _watches(self) -> bool:
        return not self._session.has_trained and not self._inside

    # --- the program's calls ----------------------------------------------------------------------------------------
    def _method(
        self,
        keras: KerasAdapter,
        name: str,
        original: Callable[..., object],
        model: KerasModel,
        *args: object,
        **kwargs: object,
    ) -> object:
        watches, place = self._watches, own_location(sys._getframe(2))
        self._inside += 1
        try:
            result = original(model, *args, **kwargs)
        finally:
            self._inside -= 1
        if watches and self._watches:
            self._look_at_method(keras, name, place, model, _arguments(original, model, args, kwargs), result)
        return result

    def _look_at_method(
        self,
        keras: KerasAdapter,
        name: str,
        place: Location | None,
        model: KerasModel,
        arguments: dict[str, Any],
        result: object,
    ) -> None:
        with self._own_work():
            arrays = data_facts.arrays_from_arguments(arguments)
            step = model.predict_step if name.startswith("predict") else model.test_step
            self._note(
                Seen(keras, model, name, place, arrays, *_count(result)),
                lambda row: (functools.partial(step, batch) for batch in _batches(arguments, row)),
                _first_row(result) if name.startswith("predict") else 0,
            )

    def _called(
        self,
        keras: KerasAdapter,
        model: KerasModel,
        args: tuple[object, ...],
        kwargs: dict[str, Any],
        outputs: object,
    ) -> None:
        """The call of a layer that no other layer called."""
        if not self._watches or not isinstance(model, keras.Model):
            return
        tensors = [tensor for tensor in flat_tensors(outputs) if hasattr(tensor, "numpy")]
        if tensors:
            self._look_at_call(keras, model, functools.partial(model, *args, **kwargs), (args, kwargs), tensors)
        elif self._session.function_calls.outermost is not None:
            function = self._session.function_calls.outermost
            self._functions[id(function)] = (function, keras, model)

    def function_returned(
        self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, Any], result: object
    ) -> None:
        """The outermost tf.function of the program's, which may have called a model in its graph."""
        if not self._watches or id(function) not in self._functions:
            return
        _, keras, model = self._functions[id(function)]
        again = functools.partial(function, *args, **kwargs)
        self._look_at_call(keras, model, again, (args, kwargs), flat_tensors(result))

    def _look_at_call(
        self,
        keras: KerasAdapter,
        model: KerasModel,
        again: Callable[[], object],
        given: tuple[tuple[object, ...], dict[str, Any]],
        tensors: list[tf.Tensor],
    ) -> None:
        with self._own_work():
            arrays = data_facts.arrays_from_batch(tuple(flat_tensors([*given[0], *given[1].values()]))[:1])
            self._note(Seen(keras, model, "call", own_location(), arrays, *_count(tensors)), lambda row: [again])

    @contextmanager
    def _own_work(self) -> Iterator[None]:
        """An exception in here is a defect of ours, and no `except` of the user's can take it for the program's."""
        try:
            yield
        except Exception as error:
            self._session.broke(error)

    # --- a closer look ----------------------------------------------------------------------------------------------
    def _note(self, seen: Seen, repeats: Callable[[int], Iterable[Callable[[], object]]], row: int = 0) -> None:
        """`repeats(row)` gives what runs batches of the call again, from the one with that row on."""
        key = id(seen.model)
        known = self._seen.get(key)
        self._calls[key] = self._calls.get(key, 0) + 1
        if known is not None and known.nonfinite:
            return
        self._seen[key] = self._explained(seen, repeats(row)) if seen.nonfinite else seen

    def _explained(self, seen: Seen, repeats: Iterable[Callable[[], object]]) -> Seen:
        from mpdoctor.examiner.exceptions import first_line
        from mpdoctor.examiner.replay.forward_pass import culprits_of_forward_pass

        self._session.events.stage("looking for what is not finite")
        self._inside += 1
        tried = 0
        try:
            for tried, repeat in enumerate(repeats, 1):
                culprits = culprits_of_forward_pass(seen.keras, self._session.watch, repeat)
                if culprits is not None:
                    return seen._replace(culprits=culprits)
                if tried == TRIES:
                    break
        except Exception as error:  # the user's call, which may be fit for graphs only
            return seen._replace(not_looked=f"it cannot be repeated eagerly: {first_line(error)}")
        finally:
            self._inside -= 1
        if not tried:
            return seen._replace(not_looked="its data come from a generator, which gives each batch once")
        return seen._replace(not_looked="no layer's output was inf or NaN when it was repeated")

    # --- telling ----------------------------------------------------------------------------------------------------
    def facts(self, trained: list[KerasModel | None] | None = None) -> list[TrainingFacts]:
        """Of each model one. `trained`: the models of a training, if there was one; of others only those are told whose
        numbers were not finite."""
        from mpdoctor.examiner.capture.model_facts import model_from_live
        from mpdoctor.examiner.probe.training_facts import device

        told = []
        for key, seen in self._seen.items():
            if trained is not None and (not seen.nonfinite or any(seen.model is model for model in trained)):
                continue
            keras, session = seen.keras, self._session
            optimizer = getattr(seen.model, "optimizer", None)
            model = model_from_live(session, keras, seen.model, optimizer, self.call_of(seen.model), seen.data)
            place = f" at line {seen.location.line}" if seen.location else ""
            what = "model(x)" if seen.by == "call" else f"{seen.by}()"
            reason = f"{what}{place} gave {seen.nonfinite} of {seen.numbers} numbers as inf or NaN; {seen.not_looked}"
            layer = None if seen.culprits is None else seen.culprits.layer
            loss = None if seen.culprits is None else seen.culprits.loss
            excuse = excuse_of(layer.operation if layer is not None else loss, seen.nan)
            prediction = PredictionFacts(seen.by, self._calls[key], seen.numbers, seen.nonfinite, seen.nan, excuse)
            told.append(
                TrainingFacts(
                    model=model,
                    data="stand-in" if session.stand_ins.data else "real",
                    device=device(),
                    steps_wanted=0,
                    policy=model.global_policy,
                    ended="script",
                    culprit=None if excuse else layer,
                    loss_culprit=None if excuse else loss,
                    not_looked=(("first number not finite", reason),) if seen.not_looked else (),
                    prediction=prediction,
                )
            )
        return told


def _arguments(
    method: Callable[..., object], model: KerasModel, args: tuple[object, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    bound = inspect.signature(method).bind(model, *args, **kwargs)
    (_, *given) = bound.arguments.items()
    named = dict(given)
    return {**named, **named.pop("kwargs", {})}


def _count(result: object) -> tuple[int, int, int]:
    """(floating-point numbers, how many of them are inf or NaN, how many NaN)."""
    numbers = nonfinite = nan = 0
    for values in _arrays(result):
        finite = int(np.isfinite(values).sum())
        numbers += values.size
        nonfinite += values.size - finite
        nan += int(np.isnan(values).sum()) if finite < values.size else 0
    return numbers, nonfinite, nan


def _arrays(result: object) -> Iterator[np.ndarray]:
    if isinstance(result, float):
        yield np.asarray(result)
    for tensor in _leaves(result):
        dtype = str(getattr(tensor.dtype, "name", tensor.dtype))
        if "float" in dtype and (isinstance(tensor, (np.ndarray, np.generic)) or hasattr(tensor, "_id")):
            values = np.asarray(tensor)
            yield values.astype(np.float32) if dtype == "bfloat16" else values


def _leaves(result: object) -> list[tf.Tensor]:
    """Arrays and tensors in it, and plain numbers, which evaluate() gives in lists and dicts."""
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in _leaves(value)]
    if isinstance(result, (list, tuple)):
        return [leaf for value in result for leaf in _leaves(value)]
    if isinstance(result, float) and not hasattr(result, "dtype"):
        return [np.asarray(result)]
    return flat_tensors(result)


def _first_row(result: object) -> int:
    """Of what predict() returned, the first sample that is not finite."""
    rows = []
    for values in _arrays(result):
        if values.ndim and values.size:
            bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=-1)
            rows += [int(bad.argmax())] if bad.any() else []
    return min(rows, default=0)


def _batches(arguments: dict[str, Any], row: int) -> Iterator[object]:
    """Batches as Keras' steps take them, from the one with this sample on; none where the data are spent."""
    x = arguments.get("x", arguments.get("data"))
    first = 0
    for batch in _all_batches(x, arguments):
        size = next((int(t.shape[0]) for t in flat_tensors(batch) if len(t.shape)), 1)
        first += size
        if first > row:
            yield batch


def _all_batches(x: Any, arguments: dict[str, Any]) -> Iterator[Any]:
    if hasattr(x, "element_spec"):  # a tf.data.Dataset
        yield from x
    elif hasattr(x, "__next__") or (x is not None and not _is_data(x) and not hasattr(x, "__getitem__")):
        return
    elif not _is_data(x):  # a Sequence or PyDataset
        yield from (_as_tensors(x[place]) for place in range(len(x)))
    else:
        parts = tuple(arguments[name] for name in ("x", "y", "sample_weight") if arguments.get(name) is not None)
        arrays = _as_tensors(parts)
        rows = max((int(t.shape[0]) for t in flat_tensors(list(arrays)) if len(t.shape)), default=0)
        size = arguments.get("batch_size") or BATCH
        for batch in range(math.ceil(rows / size)):
            yield _mapped(functools.partial(_rows, batch * size, size), arrays)


def _rows(start: int, size: int, tensor: tf.Tensor) -> tf.Tensor:
    return tensor[start : start + size]


def _is_data(x: object) -> bool:
    """Arrays, tensors, data frames, and lists, tuples and dicts of them."""
    return isinstance(x, (list, tuple, dict)) or hasattr(x, "shape")


def _as_tensors(structure: object) -> Any:
    """As Keras hands them to a step: 64-bit floats are float32 there."""
    import tensorflow as tf

    def tensor(value: object) -> tf.Tensor:
        made = tf.convert_to_tensor(value if isinstance(value, tf.Tensor) else np.asarray(value))
        return tf.cast(made, tf.float32) if made.dtype == tf.float64 else made

    return _mapped(tensor, structure)


def _mapped(change: Callable[[tf.Tensor], object], structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _mapped(change, value) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)) and any(hasattr(part, "shape") or _is_data(part) for part in structure):
        return type(structure)(_mapped(change, value) for value in structure)
    return change(structure)
