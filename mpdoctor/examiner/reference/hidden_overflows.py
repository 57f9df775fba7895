"""Layers in which a result overflows in a step that is not skipped, or a wave loses its phase, and that put out
something else for it than they do in float32 on the same input. Where nothing of that is seen, this costs one eager
step in bfloat16 and nothing in float16."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.examiner.protocol.event_kinds import HiddenOverflow
from mpdoctor.examiner.reference.measurement import ReferenceMeasurement
from mpdoctor.examiner.reference.twin_steps import NotComparable, with_sublayers
from mpdoctor.examiner.replay.overflow_watch import OverflowWatch
from mpdoctor.facts.causes.hidden_overflow import HiddenOverflowFacts
from mpdoctor.facts.reference import FAR

if TYPE_CHECKING:
    from mpdoctor.examiner.examination import Examination
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.reference.twin_steps import KeptStep, StepRunner
    from mpdoctor.examiner.replay.overflow_watch import SeenOverflow
    from mpdoctor.examiner.replay.step_replay import StepReplay

BFLOAT16 = "bfloat16"  # a step in it is not repeated at two loss scales, at which float16's are looked at
SHARE = 0.25  # of --budget
MOST = 3  # layers that are tried
MOST_ROUNDS = 4  # in which layers are added in which something overflows then
REPEATS = 1e-3  # of the norm: two runs of one step put out less than this apart


def tell_hidden_overflows(examination: Examination, look: StepReplay, trainings: list[ObservedOptimizer]) -> None:
    """Report hidden overflows in the last batch of each training that was reported last."""
    half = "float16" if examination.layer_hooks.saw(("float16",)) else BFLOAT16
    for place, observed in enumerate(trainings):
        if not observed.overflows and (half != BFLOAT16 or not examination.layer_hooks.saw((BFLOAT16,))):
            continue
        examination.events.stage("comparing with float32")
        measurement = ReferenceMeasurement(
            look, examination.layer_hooks, len(observed.steps), SHARE * examination.request.budget
        )
        try:
            with measurement.last_step(observed, half) as (runner, kept):
                if not observed.overflows:
                    with OverflowWatch(examination.layer_hooks) as watch:
                        runner.run(kept)
                    observed.overflows = watch.found
                tried = (_tried(examination, observed, runner, kept, seen) for seen in observed.overflows[:MOST])
                overflow = next((facts for facts in tried if facts is not None), None)
        except NotComparable:  # nobody knows what it does in float32
            continue
        if overflow is not None:
            examination.events.send(HiddenOverflow(place - len(trainings), overflow))


def _tried(
    examination: Examination, observed: ObservedOptimizer, runner: StepRunner, kept: KeptStep, seen: SeenOverflow
) -> HiddenOverflowFacts | None:
    """The step with this layer in float32 and all before it as they are: so both are given the same. None where it puts
    out the same. Raises NotComparable."""
    layers, number = with_sublayers(observed.keras, [seen.layer]), id(seen.layer)
    with OverflowWatch(examination.layer_hooks) as overflows:
        single = runner.run(kept, layers).seen
    again = runner.run(kept, layers, single=single).seen.ranges.get(number)
    half = runner.run(kept, single=single).seen.ranges.get(number)
    if seen.path in single.still_in_half or again is None or half is None or (again.apart or 0.0) > REPEATS:
        return None
    if half.apart is None or half.apart < FAR:
        return None
    chosen, is_healed = _with_those_behind(examination, observed, runner, kept, [seen], overflows.found)
    return HiddenOverflowFacts(
        layer=seen.path,
        class_name=type(seen.layer).__name__,
        operation=seen.operation,
        apart=half.apart,
        layers=tuple(overflow.path for overflow in chosen),
        locations=tuple(examination.layer_hooks.origins.made_at(overflow.layer) for overflow in chosen),
        is_healed=is_healed,
    )


def _with_those_behind(
    examination: Examination,
    observed: ObservedOptimizer,
    runner: StepRunner,
    kept: KeptStep,
    chosen: list[SeenOverflow],
    left: list[SeenOverflow],
) -> tuple[list[SeenOverflow], bool]:
    """These layers and those in which a result still overflows once they compute in float32, and so on; and whether
    none is left in the end. Raises NotComparable."""
    for _ in range(MOST_ROUNDS):
        known = {id(overflow.layer) for overflow in chosen}
        new = list({id(overflow.layer): overflow for overflow in left if id(overflow.layer) not in known}.values())
        if not new:
            break
        chosen = [*chosen, *new]
        with OverflowWatch(examination.layer_hooks) as overflows:
            runner.run(kept, with_sublayers(observed.keras, [overflow.layer for overflow in chosen]))
        left = overflows.found
    return chosen, not left
