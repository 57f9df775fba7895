"""Programs that only predict: predict(), evaluate() and model(x), observed for outputs that are not finite.

A call whose numbers are finite costs one look at them; one whose numbers are not is repeated, with its layers observed.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple

from mpdoctor.examiner.capture import data as data_facts
from mpdoctor.examiner.capture.layer_calls import flat_tensors
from mpdoctor.examiner.probe.predicting.given_batches import batches_from_row
from mpdoctor.examiner.probe.predicting.put_out_numbers import count_nonfinite, first_bad_row
from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts
from mpdoctor.facts.training import PredictionFacts, TrainingFacts, excuse_of

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel
    from mpdoctor.examiner.probe.predicting.first_numbers import FirstNumbers
    from mpdoctor.examiner.replay.culprits import Culprits
    from mpdoctor.examiner.session import Session


METHODS = ("predict", "predict_on_batch", "evaluate", "test_on_batch")
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
    """The predictions of one process, until it trains."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: dict[int, Seen] = {}  # by model
        self._calls: dict[int, int] = {}
        self._first_weights: dict[int, FirstNumbers] = {}  # as they were at the first call
        # by tf.function: itself, and the model that its graph calls
        self._functions: dict[int, tuple[Callable[..., object], KerasAdapter, KerasModel]] = {}
        self._inside = 0  # calls of Keras' own methods, and repetitions, that are under way

    def install(self, keras: KerasAdapter) -> None:
        for name in METHODS:
            replace_method(keras.trainer, name, functools.partial(self._method, keras, name))
        self._session.layer_hooks.after_outermost.append(functools.partial(self._called, keras))

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
        with self._session.own_work():
            arrays = data_facts.arrays_from_arguments(arguments)
            step = model.predict_step if name.startswith("predict") else model.test_step
            self._note(
                Seen(keras, model, name, place, arrays, *count_nonfinite(result)),
                lambda row: (functools.partial(step, batch) for batch in batches_from_row(arguments, row)),
                first_bad_row(result) if name.startswith("predict") else 0,
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
        with self._session.own_work():
            arrays = data_facts.arrays_from_batch(tuple(flat_tensors([*given[0], *given[1].values()]))[:1])
            self._note(
                Seen(keras, model, "call", own_location(), arrays, *count_nonfinite(tensors)), lambda row: [again]
            )

    # --- a closer look ----------------------------------------------------------------------------------------------
    def _note(self, seen: Seen, repeats: Callable[[int], Iterable[Callable[[], object]]], row: int = 0) -> None:
        """`repeats(row)` gives what runs batches of the call again, from the one with that row on."""
        key = id(seen.model)
        known = self._seen.get(key)
        if known is None:
            from mpdoctor.examiner.probe.predicting.first_numbers import FirstNumbers  # which needs TensorFlow

            self._first_weights[key] = FirstNumbers(seen.model)
        self._calls[key] = self._calls.get(key, 0) + 1
        if known is not None and known.nonfinite:
            return
        self._seen[key] = self._explained(seen, repeats(row)) if seen.nonfinite else seen

    def _explained(self, seen: Seen, repeats: Iterable[Callable[[], object]]) -> Seen:
        from mpdoctor.examiner.exceptions import first_line
        from mpdoctor.examiner.probe.predicting.forward_pass import culprits_of_forward_pass

        self._session.events.stage("looking for what is not finite")
        self._inside += 1
        tried = 0
        try:
            for tried, repeat in enumerate(repeats, 1):
                culprits = culprits_of_forward_pass(seen.keras, self._session.layer_hooks, repeat)
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

    def changed_weights(self) -> bool:
        """Whether the weights of a model are no longer those with which it predicted first."""
        return any(first.changed() for first in self._first_weights.values())

    # --- telling ----------------------------------------------------------------------------------------------------
    def facts(self, trained: list[KerasModel | None] | None = None) -> list[TrainingFacts]:
        """Facts for each model that predicted. `trained`: the models of a training, if there was one; other models are
        then reported only if their outputs were not finite."""
        from mpdoctor.examiner.capture.model_facts import model_from_live
        from mpdoctor.examiner.probe.training_facts import device

        facts = []
        for key, seen in self._seen.items():
            if trained is not None and (not seen.nonfinite or any(seen.model is model for model in trained)):
                continue
            keras, session = seen.keras, self._session
            optimizer = getattr(seen.model, "optimizer", None)
            model = model_from_live(session, keras, seen.model, optimizer, self.call_of(seen.model), seen.data)
            place = f" at {session.request.line_in_words(seen.location)}" if seen.location else ""
            call = "model(x)" if seen.by == "call" else f"{seen.by}()"
            reason = f"{call}{place} gave {seen.nonfinite} of {seen.numbers} numbers as inf or NaN; {seen.not_looked}"
            layer = None if seen.culprits is None else seen.culprits.layer
            loss = None if seen.culprits is None else seen.culprits.loss
            excuse = excuse_of(layer.operation if layer is not None else loss, seen.nan)
            prediction = PredictionFacts(seen.by, self._calls[key], seen.numbers, seen.nonfinite, seen.nan, excuse)
            facts.append(
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
        return facts


def _arguments(
    method: Callable[..., object], model: KerasModel, args: tuple[object, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    bound = inspect.signature(method).bind(model, *args, **kwargs)
    (_, *given) = bound.arguments.items()
    named = dict(given)
    return {**named, **named.pop("kwargs", {})}
