"""Remedies of precision, tried in place on the batches of a training that failed: the fewest layers in float32 with
which a step is finite at a loss scale of hardly more than 1, and the model's outputs in float32.

A trial counts only where every layer that was to compute in float32 was seen to put out float32, and the step did not
raise. A batch that is finite is not yet a cure, because weights grow: what stays in 16 bits must be well below 65504,
on the batch that failed, on the one with the largest magnitudes, and on a late one with the weights of then.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, FrozenSet, NamedTuple, Tuple

from mpdoctor.examiner.replay.two_scales import GradientCatcher
from mpdoctor.examiner.trials.one_trial import Case, Trial, TrialRunner
from mpdoctor.examiner.trials.set_search import smallest_healing
from mpdoctor.examiner.trials.step_outcome import SeenCall
from mpdoctor.examiner.trials.units import Unit, units_of_step
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT, HALF
from mpdoctor.facts.remedies import FAILS_IN_FLOAT32, ROOM, RemedyFacts, RemedyKind, TrialResult
from mpdoctor.facts.written_numbers import magnitude_text

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasAdapter

FEW = 3  # so many layers may be all that a model has
NEARLY_ALL = 0.75
SAID = 4  # layers named in a reason

Chosen = FrozenSet[int]
Tight = Tuple[str, float]  # a layer that stayed in 16 bits in a finite step, and what it reached there


class Sickness(NamedTuple):
    """What is known of the step that failed: the layer in which its gradient broke, "" for none; whether it broke after
    all layers."""

    gradient_layer: str = ""
    after_layers: bool = False


class OutOfTime(Exception):
    """The time for trials is spent."""


class RemedyTrials:
    """The trials of one optimizer's failing step. The caller has steps run eagerly and change nothing."""

    def __init__(
        self,
        keras: KerasAdapter,
        layer_hooks: LayerHooks,
        catcher: GradientCatcher,
        set_scale: Callable[[float], None] | None,
        cases: list[Case],
        seconds: float,
    ) -> None:
        self._keras, self._layer_hooks = keras, layer_hooks
        self._runner = TrialRunner(keras, layer_hooks, catcher, set_scale)
        self._cases = cases
        self._began = time.monotonic()
        self._until = self._began + seconds
        self._trials = 0
        self._units: list[Unit] = []
        self._fixed: dict[str, str] = {}  # layers that put out 16 bits whatever their policy: (path, dtype)
        self._errors: list[str] = []
        self._failed: list[tuple[Chosen, Tight | None]] = []
        self._tight: Tight | None = None
        self.healing: tuple[Unit, ...] = ()  # the layers that were found
        self._exempt: set[int] = set()  # layers whose outputs are not finite in float32 either, as those of masks are

    # --- the remedies, in the order in which they are tried -------------------------------------------------------
    def remedies(self, sickness: Sickness) -> tuple[RemedyFacts, ...]:
        """The remedies that were tried, with their results; () where the batch that failed is finite now, without a
        remedy."""
        try:
            first = self._run(frozenset(), self._cases[0], scale=1.0)
            if first.error:
                return (self._not_tried(f"the failing step cannot be repeated eagerly: {first.error}"),)
            if not first.calls:
                return (self._not_tried("no layer is called where the failing step is repeated"),)
            if first.is_finite:
                return ()
            self._units = units_of_step(self._keras, self._layer_hooks, first.calls)
            layers = self._remedy_of_layers(first.calls, sickness)
            if layers.tried == "healed" and not sickness.after_layers:
                return (layers,)
            return tuple(remedy for remedy in (layers, self._remedy_of_loss()) if remedy is not None)
        except OutOfTime:
            return (self._not_tried(f"the time of --budget was spent after {self._trials} trials"),)

    # --- float32 layers -------------------------------------------------------------------------------------------
    def _remedy_of_layers(self, calls: list[SeenCall], sickness: Sickness) -> RemedyFacts:
        if not self._units:
            return self._remedy("failed", (), reason="no layer of this step computes in 16 bits")
        self._leave_out_fixed()
        everything = frozenset(range(len(self._units)))
        cases = [case for case in self._cases if self._heals_case(everything, case)]
        if self._cases[0] not in cases and not self._errors:
            return self._without_cure(everything)
        self._cases = [self._cases[0], *(case for case in cases if case is not self._cases[0])]
        start, forwards = self._start(calls, sickness)
        healing = smallest_healing(len(self._units), start, forwards, self._heals)
        if healing is None:
            return self._without_cure(everything)
        if len(healing) > FEW and len(healing) > NEARLY_ALL * len(self._units):
            reason = f"{len(healing)} of the {len(self._units)} layers in 16 bits would have to compute in float32"
            return self._remedy("failed", tuple(sorted(healing)), reason=reason)
        self.healing = tuple(self._units[place] for place in sorted(healing))
        nothing: tuple[Chosen, Tight | None] = frozenset(), None
        fewer, tight = next((failed for failed in self._failed if failed[0] and failed[0] < healing), nothing)
        needed = [place for place in sorted(healing) if self._is_broken(healing - {place})]
        reason = "" if tight is None else _still_reaches(tight)
        return self._remedy(
            "healed", tuple(sorted(healing)), reason=reason, not_enough=tuple(sorted(fewer)), needed=tuple(needed)
        )

    def _is_broken(self, chosen: Chosen) -> bool:
        """Whether a batch is seen not to be finite with these at a loss scale of 1. That it is not at ROOM proves
        nothing: the scale may come to rest below."""
        with suppress(OutOfTime):
            trials = (self._run(chosen, case, scale=1.0) for case in self._cases)
            return any(not trial.error and not trial.is_finite for trial in trials)
        return False

    def _leave_out_fixed(self) -> None:
        """Layers that put out 16 bits although they compute in float32: what they would do if they had been made with
        that dtype, no trial in place can tell."""
        trial = self._run(frozenset(range(len(self._units))), self._cases[0])
        self._fixed = self._still_in_half(trial, self._units)
        self._units = [unit for unit in self._units if unit.path not in self._fixed]

    def _without_cure(self, everything: Chosen) -> RemedyFacts:
        """The remedy where not even all of them help: because they do not, or because no trial counts."""
        if self._fixed:
            names = ", ".join(f"`{path}`" for path in list(self._fixed)[:SAID])
            dtype = next(iter(self._fixed.values()))
            several = "put" if len(self._fixed) > 1 else "puts"
            reason = f"{names} {several} out {dtype} under any policy that is set later"
            return self._remedy("not-tried", tuple(everything), reason=reason)
        if self._errors:
            reason = f"with these layers in float32 the step raises: {self._errors[0]}"
            return self._remedy("not-tried", tuple(everything), reason=reason)
        reason = FAILS_IN_FLOAT32
        if self._tight is not None:
            reason = _still_reaches(self._tight)
        return self._remedy("failed", tuple(everything), reason=reason)

    def _start(self, calls: list[SeenCall], sickness: Sickness) -> tuple[int, bool]:
        """The number of the layer at which the search begins, and whether it goes forwards from there."""
        number = {id(unit.layer): place for place, unit in enumerate(self._units)}
        last = max(len(self._units) - 1, 0)
        if sickness.gradient_layer:
            paths = [unit.path for unit in self._units]
            return (paths.index(sickness.gradient_layer) if sickness.gradient_layer in paths else last), False
        if sickness.after_layers:
            return last, False
        bad = (
            number[id(call.layer)] for call in calls if id(call.layer) in number and (call.given_bad or call.gave_bad)
        )
        return next(bad, last), True

    def _heals(self, chosen: Chosen) -> Chosen | None:
        """Those of the chosen units that heal together. Left out are units that put out 16 bits all the same, because
        their last sublayer computes in them; and where dtypes conflict, units that contain others of them."""
        self._tight = None
        in_half: Chosen = frozenset()
        for case in self._cases:
            trial = self._run(chosen, case)
            if trial.error:
                self._errors.append(trial.error)
                return self._heals_without(self._holding(chosen), chosen)
            if not self._is_healed(trial, chosen):
                self._failed.append((chosen, self._tight))
                return None
            in_half |= self._seen_in_half(trial, chosen)
        return self._heals_without(in_half, chosen) if in_half else chosen

    def _heals_without(self, left_out: Chosen, chosen: Chosen) -> Chosen | None:
        rest = chosen - left_out
        return self._heals(rest) if left_out and rest else None

    def _holding(self, chosen: Chosen) -> Chosen:
        paths = [self._units[place].path for place in chosen]
        return frozenset(at for at in chosen if any(path.startswith(f"{self._units[at].path}/") for path in paths))

    def _heals_case(self, chosen: Chosen, case: Case) -> bool:
        trial = self._run(chosen, case)
        if trial.error:
            self._errors.append(trial.error)
        return not trial.error and self._is_healed(trial, chosen) and not self._seen_in_half(trial, chosen)

    def _is_healed(self, trial: Trial, chosen: Chosen) -> bool:
        if not trial.is_finite:
            return False
        if len(chosen) == len(self._units):
            self._exempt |= {id(call.layer) for call in trial.calls if call.gave_bad or call.given_bad}
        judged = [call for call in trial.calls if id(call.layer) not in self._exempt]
        largest = max(judged, key=lambda call: call.largest, default=None)
        if largest is None or largest.largest <= FLOAT16_LIMIT / ROOM:
            return True
        self._tight = (largest.path, largest.largest)
        return False

    def _seen_in_half(self, trial: Trial, chosen: Chosen) -> Chosen:
        """Those of the chosen units that put out 16 bits."""
        return frozenset(place for place in chosen if self._still_in_half(trial, [self._units[place]]))

    def _still_in_half(self, trial: Trial, units: list[Unit]) -> dict[str, str]:
        """(path, dtype) of those whose outputs were not float32."""
        paths = {id(unit.layer): unit.path for unit in units}
        return {
            paths[id(call.layer)]: dtype
            for call in trial.calls
            if id(call.layer) in paths
            for dtype in call.dtypes
            if dtype in HALF
        }

    # --- the loss in float32 --------------------------------------------------------------------------------------
    def _remedy_of_loss(self) -> RemedyFacts | None:
        """The trial with the outputs in float32. None where they are float32 already, or several models take turns:
        then the output of one may be the input of another."""
        outermost = [call for call in self._run(frozenset(), self._cases[0]).calls if call.parent is None]
        dtypes = {dtype for call in outermost for dtype in call.dtypes}
        if dtypes.isdisjoint(HALF) or len({id(call.layer) for call in outermost}) > 1:
            return None
        trials = [self._run(frozenset(), case, outputs_in_float32=True) for case in self._cases]
        error = next((trial.error for trial in trials if trial.error), "")
        if error:
            return self._remedy("not-tried", (), "float32-loss", f"the step raises then: {error}")
        if all(trial.is_finite for trial in trials):
            return self._remedy("healed", (), "float32-loss")
        return self._remedy("failed", (), "float32-loss", "with the outputs in float32 the step is not finite either")

    # --- one trial ------------------------------------------------------------------------------------------------
    def _run(self, chosen: Chosen, case: Case, outputs_in_float32: bool = False, scale: float = ROOM) -> Trial:
        """Run the step with the chosen units in float32. Raises OutOfTime."""
        if time.monotonic() > self._until:
            raise OutOfTime
        self._trials += 1
        layers = [layer for place in sorted(chosen) for layer in self._units[place].layers]
        return self._runner.run(layers, case, outputs_in_float32, scale)

    # --- the facts of a remedy ------------------------------------------------------------------------------------
    def _remedy(
        self,
        tried: TrialResult,
        chosen: tuple[int, ...],
        kind: RemedyKind = "float32-layers",
        reason: str = "",
        not_enough: tuple[int, ...] = (),
        needed: tuple[int, ...] = (),
    ) -> RemedyFacts:
        units = [self._units[place] for place in chosen]
        return RemedyFacts(
            kind=kind,
            tried=tried,
            layers=tuple(unit.path for unit in units),
            locations=tuple(unit.location for unit in units),
            with_parts=tuple(unit.path for unit in units if unit.holds_given_layers),
            reason=reason,
            not_enough=tuple(self._units[place].path for place in not_enough),
            needed=tuple(self._units[place].path for place in needed),
            batches=len(self._cases),
            trials=self._trials,
            seconds=time.monotonic() - self._began,
        )

    def _not_tried(self, reason: str) -> RemedyFacts:
        return self._remedy("not-tried", (), reason=reason)


def _still_reaches(tight: Tight) -> str:
    path, largest = tight
    return f"`{path}` stays in 16 bits and reaches {magnitude_text(largest)}"
