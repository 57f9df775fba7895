"""Why one policy is faster or slower than another, in sentences: each says what was measured, and advises only where
that says what there is to gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.facts.machine.devices import TF32
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Severity, Verdict
from mpdoctor.reporters.compared.layer_times import layer_times
from mpdoctor.reporters.compared.rows import cast_share, share_text, time_text
from mpdoctor.reporters.compared.slower_operations import profiles_of, slower_operations, times_by_kind
from mpdoctor.reporters.text.style import Style

_NOTHING_LEARNED = (Verdict.COLLAPSING, Verdict.STUCK, Verdict.NOT_FINITE, Verdict.NO_UPDATE)
MUCH_BETWEEN = 0.3  # of a step's time
MUCH_CAST = 0.1
MUCH_IDLE = 0.5
MOST_NAMED = 4
MOST_OF_ERROR = 600  # characters


def headline(compared: Compared, look: Style) -> str:
    return " ".join([_reason_of_times(compared, look), *_reasons_of_trainings(compared, look)])


def _reasons_of_trainings(compared: Compared, look: Style) -> Iterator[str]:
    """Sentences on policies whose times are those of a training that raises without changes, or that learns nothing."""
    raising = [run.policy for run in compared.runs if _goes_on_mended(run)]
    if raising:
        yield f"As it is, it raises under {look.listed(raising, MOST_NAMED)}."
    for run in compared.runs:
        if run.probe is not None and run.probe.verdict in _NOTHING_LEARNED:
            yield f"Its short training under {run.policy} was {run.probe.verdict.value}."


def _reason_of_times(compared: Compared, look: Style) -> str:
    name = look.name(compared.base.diagnosis.targets[0].id, 60) if compared.base.diagnosis.targets else "the target"
    timed = [run for run in compared.runs if run.seconds is not None]
    if not timed:
        return f"{name}: its step was timed under no policy."
    if len(timed) < 2:
        return f"{name}: a step was timed under {timed[0].policy} only, so there is nothing to compare it with."
    fastest = min(timed, key=lambda run: run.seconds or 0.0)
    others = [(run, compared.speed(run)) for run in compared.runs[1:]]
    once = "" if compared.rounds > 1 else " in one round: --rounds 3 tells whether that repeats"
    if all(ratio is None or not ratio.is_clear for _, ratio in others):
        return f"{name}: no policy was faster than {compared.base.policy}, or slower, in each round."
    if fastest is compared.base and all(ratio is None or ratio.is_clear for _, ratio in others):
        return f"{name} trains fastest under {compared.base.policy}{once}."
    ratio = compared.speed(fastest)
    if fastest is compared.base or ratio is None or not ratio.is_clear:
        return f"{name}: none was faster than {compared.base.policy} in each round."
    return (
        f"{name} trains {ratio.middle:.2f} times as fast under {fastest.policy} as under {compared.base.policy}{once}."
    )


def reasons_from_compared(compared: Compared, look: Style) -> list[tuple[str, str]]:
    """All reasons as (policy, sentence)."""
    return [(run.policy, sentence) for run in compared.runs for sentence in _reasons_of_run(compared, run, look)]


def _reasons_of_run(compared: Compared, run: PolicyRun, look: Style) -> Iterator[str]:
    if run.not_timed:
        yield f"Its step was not timed: {look.name(run.not_timed, 300)}."
        yield from _first_error(run, look)
    for probe in run.diagnosis.probes:
        if probe.went_on:
            yield "As it is, its training raises under this policy."
            errors = list(_first_error(run, look))
            yield from errors
            went_on = [probe.went_on] if not any(probe.went_on in sentence for sentence in errors) else []
            yield " ".join([*went_on, "What is measured here is that training."])
    yield from _on_speed(compared, run)
    yield from _on_tf32(run)
    yield from _on_layer_dtypes(run, look)
    yield from layer_times(compared, run, look)
    yield from _on_operations(compared, run, look)
    yield from slower_operations(compared, run)
    yield from _on_casts(run)
    yield from _on_time_between_steps(run)
    yield from _on_idle_device(run)
    yield from _on_tiles(run, look)


def _goes_on_mended(run: PolicyRun) -> bool:
    return any(probe.mended for probe in run.diagnosis.probes)


def _first_error(run: PolicyRun, look: Style) -> Iterator[str]:
    """The error that keeps the policy from training, in the words of the check."""
    error = next((finding for finding in run.diagnosis.findings if finding.severity is Severity.ERROR), None)
    if error is not None:
        yield f"{error.code}: {look.name(f'{error.message} {error.help}', MOST_OF_ERROR)}"


def _on_speed(compared: Compared, run: PolicyRun) -> Iterator[str]:
    ratio = compared.speed(run)
    if ratio is None or run is compared.base or ratio.is_clear:
        return
    if compared.rounds > 1:
        yield (
            f"No difference from {compared.base.policy} was measured: {ratio.low:.2f} to {ratio.high:.2f} times as "
            f"fast in {compared.rounds} rounds."
        )


def _on_tf32(run: PolicyRun) -> Iterator[str]:
    devices = {device for _, model in run.diagnosis.models for device in model.devices}
    if run.policy == "float32" and any(device.uses_tf32 for device in devices):
        yield f"Multiplies float32 {TF32}."


def _on_layer_dtypes(run: PolicyRun, look: Style) -> Iterator[str]:
    """Which layers do not compute in the dtype that most do."""
    layers = {
        (model.id, layer.path): layer
        for _, model in run.diagnosis.models
        for layer in model.layers
        if layer.follows_policy and not layer.is_model and layer.compute_dtype
    }
    dtypes = Counter(layer.compute_dtype for layer in layers.values())
    if len(dtypes) < 2:
        return
    sentences = []
    for dtype, number in dtypes.most_common():
        names = [layer.path for layer in layers.values() if layer.compute_dtype == dtype]
        named = f" ({look.listed(names, MOST_NAMED)})" if dtype != dtypes.most_common(1)[0][0] else ""
        sentences.append(f"{count(number, 'layer')} in {dtype}{named}")
    yield f"Computes {', '.join(sentences)}."


def _on_operations(compared: Compared, run: PolicyRun, look: Style) -> Iterator[str]:
    """What takes most of the time, and what it takes under the first policy."""
    if run.profile is None or not run.profile.operations:
        yield from _not_profiled(run, look)
        return
    longest = max(kinds := times_by_kind(run), key=lambda kind: kinds[kind])
    in_all = median(profile.in_operations / profile.steps for profile in profiles_of(run))
    before = times_by_kind(compared.base).get(longest)
    beside = ""
    if run is not compared.base and before is not None:
        beside = f", and {time_text(before)} under {compared.base.policy}"
    own = kinds[longest]
    yield f"`{longest}` takes {share_text(own / in_all)} of the operations' time: {time_text(own)} a step{beside}."


def _not_profiled(run: PolicyRun, look: Style) -> Iterator[str]:
    reason = next((timing.not_profiled for timing in run.known if timing.not_profiled), "")
    if reason:
        yield f"Its operations were not timed one by one: {look.name(reason, 300)}."


def _on_casts(run: PolicyRun) -> Iterator[str]:
    share = cast_share(run)
    if share is not None and share >= MUCH_CAST and run.casts:
        yield (
            f"Casts take {share_text(share)} of the operations' time, and {count(run.casts, 'cast')} between 32 and 16 "
            "bits stand in its graph: fewer changes of dtype between neighbouring layers would save of that."
        )


def _on_time_between_steps(run: PolicyRun) -> Iterator[str]:
    if run.between is not None and run.between >= MUCH_BETWEEN and run.seconds is not None:
        left = run.seconds * (1 - run.between)
        yield (
            f"{share_text(run.between)} of a step's time passes between two steps, for the next batch, callbacks and "
            f"Python: without that a step would take {time_text(left)}. 16 bits shorten none of it."
        )


def _on_idle_device(run: PolicyRun) -> Iterator[str]:
    """A model too small: its operations end sooner than they are started."""
    if run.profile is None or not run.profile.seconds:
        return
    idle = 1 - run.profile.busy / run.profile.seconds
    if idle >= MUCH_IDLE:
        yield (
            f"In {share_text(idle)} of a profiled step's time no operation was under way: that goes into starting the "
            "step and its operations, and 16 bits shorten none of it. Larger batches or layers would."
        )


def _on_tiles(run: PolicyRun, look: Style) -> Iterator[str]:
    """A sentence about widths that do not fit a GPU's tiles; on GPUs only. Whether they cost time was not tried."""
    if not any(timing.device == "GPU" for timing in run.known):
        return
    odd = {
        layer.path: layer.settings.width
        for _, model in run.diagnosis.models
        for layer in model.layers
        if layer.computes_in_half and layer.settings.width and layer.settings.width % 8 and not layer.is_output
    }
    if odd:
        named = look.listed([f"{path} ({width})" for path, width in odd.items()], MOST_NAMED)
        yield f"No multiple of 8 is the width of {named}; whether that costs time here was not tried."
