"""Under a forced policy: what raises in 16 bits is computed in float32 instead, in memory, and the program goes on.

So every obstacle is reported, not just the first."""

from __future__ import annotations

import functools
import weakref
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypeVar

from mpdoctor.examiner.capture.layer_calls import dtype_name, is_symbolic
from mpdoctor.examiner.capture.layer_hooks import OWN, WHOLE
from mpdoctor.examiner.failures.failure import failure_under_watch
from mpdoctor.examiner.keras.in_place import float32_in_place
from mpdoctor.examiner.keras.private_state import give_mask, layers_inside, mask_of
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.protocol.event_kinds import Mended
from mpdoctor.facts.failure import During, FailureFacts, MendedFacts, MendedPart
from mpdoctor.facts.half_dtypes import HALF, MIXED

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import Arguments
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer, KerasModel
    from mpdoctor.examiner.session import Session


T = TypeVar("T")
Call = Callable[..., object]  # Keras' own of a layer, or of a metric or loss
MOST_PLACES = 8
MOST_IN_VAIN = 12  # calls that were tried in float32 and raised there, too


class Mender:
    """Mends the calls that raise in one examination. That a call succeeds in float32 is tried, not guessed; if it
    raises there too, the first error is raised."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._layers: weakref.WeakKeyDictionary[KerasLayer, str] = weakref.WeakKeyDictionary()  # OWN or WHOLE
        self._outputs: weakref.WeakSet[KerasLayer] = weakref.WeakSet()  # models whose output is handed on in float32
        self._prepared: weakref.WeakSet[Any] = weakref.WeakSet()  # metrics and losses that try float32 themselves
        self._parts: weakref.WeakSet[Any] = weakref.WeakSet()  # those of them that need it
        self._places: dict[tuple[object, ...], MendedFacts] = {}
        self._pending: tuple[MendedFacts, KerasModel] | None = None  # a mend that no step has confirmed yet
        self._is_trying = self._rests = False
        self._in_vain = 0
        self.count = 0  # of what was mended, and not of places: a line may be run by many layers

    @property
    def is_on(self) -> bool:
        """Whether calls are mended: only where mpdoctor has set the policy. A program that sets one itself is reported
        as it is."""
        session = self._session
        forced = session.request.policy in MIXED and not session.policy_setters.overrules_policy
        return forced and session.keras is not None and not self._is_trying and not self._rests

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """While this context is active, nothing new is mended."""
        self._rests, before = True, self._rests
        try:
            yield
        finally:
            self._rests = before

    @property
    def _keras(self) -> KerasAdapter:
        return self._session.hooked_keras

    # --- layers ---------------------------------------------------------------------------------------------------
    def call_layer(self, original: Call, layer: KerasLayer, given: Arguments) -> object:
        """Keras' own call of a layer; in float32 where that is known to help, or helps now."""
        known = self._layers.get(layer)
        if known is not None:
            return self._called_in_float32(known, original, layer, given)
        args, kwargs = given
        try:
            return original(layer, *args, **kwargs)
        except Exception as error:
            if not self._may_mend(layer):
                raise
            return self._call_again(error, original, layer, given)

    def _may_mend(self, layer: KerasLayer) -> bool:
        return self.is_on and self._was_made(layer) and self._in_vain < MOST_IN_VAIN

    def _was_made(self, layer: KerasLayer) -> bool:
        """Whether the layer computes in 16 bits and has its weights: one that raised while it made them would make them
        twice."""
        makes_weights = type(layer).build is not self._keras.Layer.build  # type: ignore[attr-defined]
        return str(layer.compute_dtype) in HALF and (getattr(layer, "built", False) or not makes_weights)

    def _call_again(
        self,
        error: Exception,
        original: Call,
        layer: KerasLayer,
        given: Arguments,
    ) -> object:
        """The result of the layer's call in float32. Raises `error`, the first one, where that fails too."""
        layer_hooks = self._session.layer_hooks
        is_innermost = layer_hooks.failed is None
        layer_hooks.note_failure(layer, error, given)
        failed = layer_hooks.failed
        assert failed is not None
        for how in self._ways(layer):
            self._is_trying = True
            try:
                outputs = self._called_in_float32(how, original, layer, given)
            except Exception:  # float32 is no help: the first error is told
                continue
            finally:
                self._is_trying, layer_hooks.failed = False, failed
            self._layers[layer] = how
            if is_innermost:
                layer_hooks.failed = failed._replace(float32_way=how)
            kind: MendedPart = "operations" if how == OWN and layers_inside(layer) else "layer"
            self._note(kind, layer.name, type(layer).__name__, self._failure(error))
            layer_hooks.failed = None
            return outputs
        self._in_vain += 1
        if is_innermost:
            layer_hooks.failed = failed._replace(float32_way="")
        raise error

    def float32_way(self, original: Call, layer: KerasLayer, given: Arguments) -> str | None:
        """The way in which a call that raised in 16 bits, of a program that set its policy itself, does not raise in
        float32: OWN or WHOLE, "" where it raises in both. What comes of it is thrown away. None where it cannot be
        tried, as in a layer that holds 16-bit variables, which float32 arguments do not change."""
        if self._is_trying or not self._was_made(layer) or self._in_vain >= MOST_IN_VAIN:
            return None
        layer_hooks = self._session.layer_hooks
        failed, self._is_trying = layer_hooks.failed, True
        try:
            for how in self._ways(layer):
                try:
                    self._called_in_float32(how, original, layer, given)
                except Exception:  # float32 is no help here: the caller raises the first error
                    continue
                return how
        finally:
            self._is_trying, layer_hooks.failed = False, failed
        self._in_vain += 1
        return None if _holds_half(layer) else ""

    def _ways(self, layer: KerasLayer) -> list[str]:
        """A whole model in float32 would be another training."""
        return [OWN] if isinstance(layer, self._keras.Model) or not layers_inside(layer) else [OWN, WHOLE]

    def _called_in_float32(self, how: str, original: Call, layer: KerasLayer, given: Arguments) -> object:
        """The layer takes and computes in float32, and hands on what it would hand on in 16 bits."""
        half, (args, kwargs) = str(layer.compute_dtype), given
        before = self._layers.get(layer)
        self._layers[layer] = how
        try:
            with float32_in_place(self._keras, [layer, *(layers_inside(layer) if how == WHOLE else [])]):
                outputs = original(layer, *args, **kwargs)
        finally:
            if before is None:
                del self._layers[layer]
        return self._cast(outputs, ("float32",), half)

    def handed_on(self, layer: KerasLayer, outputs: object) -> object:
        """The layer's outputs in the dtype that its caller takes."""
        callers = self._session.layer_hooks.stack
        if (callers and self._layers.get(callers[-1]) == OWN) or (not callers and layer in self._outputs):
            return self._cast(outputs, HALF, "float32")
        return outputs

    def _cast(self, structure: T, dtypes: tuple[str, ...], to: str) -> T:
        import tensorflow as tf

        def cast(value: Any) -> Any:
            if not hasattr(value, "dtype") or not hasattr(value, "shape") or dtype_name(value) not in dtypes:
                return value
            if is_symbolic(value):
                self._keras.promise_dtype(value, to)
                return value
            if not tf.is_tensor(value):
                return value
            done, mask = tf.cast(value, to), mask_of(value)
            if mask is not None:
                give_mask(done, mask)
            return done

        return tf.nest.map_structure(cast, structure)

    # --- metrics and losses ---------------------------------------------------------------------------------------
    def _prepare(self, kind: MendedPart, objects: list[object], method: str) -> bool:
        """Have these objects called in float32 where they raise, from now on. Whether any of them was not prepared
        before."""
        new = [part for part in objects if part not in self._prepared]
        for part in new:
            self._prepared.add(part)
            called = functools.partial(self._call_part, kind, part, getattr(part, method))
            part.__dict__[method] = functools.update_wrapper(called, getattr(part, method))
        return bool(new)

    def _call_part(self, kind: MendedPart, part: Any, original: Call, *args: object, **kwargs: object) -> object:
        in_float32 = functools.partial(self._cast, dtypes=HALF, to="float32")
        if part in self._parts:
            return original(*in_float32(args), **in_float32(kwargs))
        try:
            return original(*args, **kwargs)
        except Exception as error:
            if not self.is_on:
                raise
            try:
                result = original(*in_float32(args), **in_float32(kwargs))
            except Exception:  # float32 is no help: the first error is told
                raise error from None
            self._parts.add(part)
            function = getattr(part, "fn", None)
            name = getattr(function, "__name__", "") or part.name
            self._note(kind, name, type(part).__name__, replace(self._failure(error), inside=kind))
            return result

    # --- steps ----------------------------------------------------------------------------------------------------
    def mends_step(self, error: Exception, model: KerasModel | None, count: int) -> bool:
        """Whether a step that raised may be run again, because something of it is computed in float32 from now on.
        `count`: what had been mended before the step."""
        if not self.is_on or len(self._places) >= MOST_PLACES:
            return False
        if self.count > count:
            return True
        pending, self._pending = self._pending, None
        failure = failure_under_watch(self._session, error, "training")
        if pending is not None and _place(pending[0].failure) == _place(failure):
            self._outputs.discard(pending[1])
            return False
        self._confirm(pending)
        return model is not None and self._prepare_step(model, failure)

    def _prepare_step(self, model: KerasModel, failure: FailureFacts) -> bool:
        if failure.inside == "metric" and self._prepare("metric", self._keras.metrics(model), "update_state"):
            return True
        if failure.inside == "loss" and self._prepare("loss", self._keras.losses(model), "call"):
            return True
        if failure.inside in ("layer", "data", "optimizer", "loss scaling") or model in self._outputs:
            return False
        self._outputs.add(model)
        self._pending = MendedFacts("output", model.name, type(model).__name__, failure), model
        return True

    def step_ran(self) -> None:
        """A step ran to its end: the last change helped."""
        if self._pending is not None:
            self._confirm(self._pending)
            self._pending = None

    def _confirm(self, pending: tuple[MendedFacts, KerasModel] | None) -> None:
        if pending is not None:
            mended = pending[0]
            self._note(mended.what, mended.name, mended.class_name, mended.failure)

    # --- the facts of what was mended -----------------------------------------------------------------------------
    def _failure(self, error: Exception) -> FailureFacts:
        session = self._session
        during: During = "training" if session.training is not None else "script"
        failure = failure_under_watch(session, error, during)
        return failure if failure.location is not None else replace(failure, location=own_location())

    def _note(self, kind: MendedPart, name: str, class_name: str, failure: FailureFacts) -> None:
        self.count += 1
        mended = MendedFacts(kind, name, class_name, failure)
        place = _place(failure) if failure.location is not None else (kind, class_name, failure.exception)
        if place not in self._places:
            self._places[place] = mended
            self._session.events.send(Mended(mended))


def _place(failure: FailureFacts) -> tuple[object, ...]:
    return failure.location, failure.exception


def _holds_half(layer: KerasLayer) -> bool:
    """Whether any variable of the layer is 16-bit: a copy of an autocast weight, for one, that it made under the mixed
    policy."""
    return any(dtype_name(variable) in HALF for variable in getattr(layer, "variables", ()))
