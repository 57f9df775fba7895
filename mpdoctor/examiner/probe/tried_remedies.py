"""Whether precision may be to blame for a failing step, and what was tried against it. Costs nothing where no step
failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.replay.variable_snapshot import snapshot_of_variables
from mpdoctor.examiner.trials.one_trial import Case, TrialRunner
from mpdoctor.examiner.trials.remedy_trials import RemedyTrials, Sickness
from mpdoctor.examiner.trials.smaller_scale import smaller_scale
from mpdoctor.facts.causes.culprits import broken_operation
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.knowledge.op_lists import READING_WEIGHTS

if TYPE_CHECKING:
    from mpdoctor.examiner.examination import Examination
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.replay.step_replay import StepReplay
    from mpdoctor.examiner.trials.units import Unit


Kind = Literal["float32-layers", "smaller-scale"]


class Tried(NamedTuple):
    """What was tried, and the layers that healed."""

    remedies: tuple[RemedyFacts, ...] = ()
    healing: tuple[Unit, ...] = ()


def tried_remedies(look: StepReplay, examination: Examination, observed: ObservedOptimizer) -> Tried:
    """Remedies tried for the last explained failure of this optimizer; none where there is none, or where precision
    cannot be its cause."""
    by_scale = _overflows_by_fixed_scale(observed)
    if not by_scale and not _may_be_precision(observed):
        return Tried()
    kind: Kind = "smaller-scale" if by_scale else "float32-layers"
    if observed.failing is None:
        return _not_tried(kind, "a step of an eager loop can be repeated only where one call of a function takes it")
    examination.events.stage("trying remedies")
    try:
        return (_tried_scale if by_scale else _tried)(look, examination, observed)
    except Exception as error:  # the user's step, which may be fit for graphs only
        return _not_tried(kind, f"the failing step cannot be repeated eagerly: {first_line(error)}")


def _not_tried(kind: Kind, reason: str) -> Tried:
    return Tried((RemedyFacts(kind, "not-tried", reason=reason),))


def _overflows_by_fixed_scale(observed: ObservedOptimizer) -> bool:
    """Whether a gradient is known to overflow at the fixed loss scale, and not without one."""
    gradient = observed.gradient_culprit
    return observed.fixed_scale is not None and gradient is not None and gradient.without_scale is False


def _tried_scale(look: StepReplay, examination: Examination, observed: ObservedOptimizer) -> Tried:
    """Smaller scales tried from the state before the failing step, which has written inf or NaN into the weights
    since."""
    failing, scale = observed.failing, observed.fixed_scale
    assert failing is not None and scale is not None
    repeats = dict.fromkeys((failing.repeat, failing.repeat_largest, observed.repeat_all))
    cases = [Case(repeat, failing.state) for repeat in repeats if repeat is not None]
    with look.repeating() as catchers:
        catchers[observed].stops = observed.steps_a_call > 1
        runner = TrialRunner(observed.keras, examination.layer_hooks, catchers[observed], observed.set_scale)
        return Tried((smaller_scale(runner, cases, scale, examination.request.budget),))


def _tried(look: StepReplay, examination: Examination, observed: ObservedOptimizer) -> Tried:
    with look.repeating() as catchers:
        catchers[observed].stops = observed.steps_a_call > 1
        trials = RemedyTrials(
            observed.keras,
            examination.layer_hooks,
            catchers[observed],
            observed.set_scale if observed.can_set_scale else None,
            _cases(observed),
            examination.request.budget,
        )
        return Tried(trials.remedies(_sickness(observed)), trials.healing)


def _cases(observed: ObservedOptimizer) -> list[Case]:
    """The failing batch, the one with the largest magnitudes since, and the last one, from the state of now."""
    failing = observed.failing
    assert failing is not None
    cases = [Case(failing.repeat, failing.state)]
    if failing.repeat_largest is not None:
        cases.append(Case(failing.repeat_largest, failing.state))
    last = observed.repeat_all or observed.call_of_step
    if last is not None and last is not failing.repeat:
        cases.append(Case(last, snapshot_of_variables()))
    return cases


def _sickness(observed: ObservedOptimizer) -> Sickness:
    gradient = observed.gradient_culprit
    after_layers = observed.loss_culprit is not None or (gradient is not None and gradient.where == "loss")
    return Sickness(gradient.layer if gradient is not None else "", after_layers)


def _may_be_precision(observed: ObservedOptimizer) -> bool:
    """Whether a step is known to have failed by a number of its own; not by what it was given, by a weight that an
    earlier one broke, by a loss scale too high for its gradients alone, or by a kernel of this device's."""
    gradient = observed.gradient_culprit
    if gradient is not None and not (gradient.without_scale or _tells_without_scale(observed)):
        return False
    operation = broken_operation(observed.culprit, observed.gradient_culprit, observed.loss_culprit)
    return operation is not None and not (
        operation.given in ("data", "labels") or operation.name in READING_WEIGHTS or operation.only_on_this_device
    )


def _tells_without_scale(observed: ObservedOptimizer) -> bool:
    """Whether it is still open if the gradient breaks without a loss scale, as in an eager loop, and a trial will show
    it."""
    gradient = observed.gradient_culprit
    unknown = gradient is not None and gradient.without_scale is None
    return unknown and observed.failing is not None and observed.can_set_scale
