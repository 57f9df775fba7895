"""The table of a comparison: a row per measurement, a column per policy."""

from __future__ import annotations

from collections.abc import Callable

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.written_numbers import number_text
from mpdoctor.reporters.text.style import Style
from mpdoctor.reporters.text.training import course_of_loss

Row = tuple[str, list[str]]


def rows_from_compared(compared: Compared, look: Style) -> list[Row]:
    """(what, the text of each policy, "" for nothing), of what at least one of them tells."""
    rows = [(label, [tell(compared, run, look) for run in compared.runs]) for label, tell in _ROWS]
    return [(label, texts) for label, texts in rows if any(texts)]


def time_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def share_text(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "under 1%"


def speed_text(compared: Compared, run: PolicyRun, look: Style) -> str:
    """1.61 (1.55–1.66): how many times as fast as the first policy."""
    ratio = compared.speed(run)
    if ratio is None or run is compared.base:
        return ""
    spread = f" ({ratio.low:.2f}{look.dash}{ratio.high:.2f})" if compared.rounds > 1 else ""
    return f"{ratio.middle:.2f}{spread}"


def _seconds(compared: Compared, run: PolicyRun, look: Style) -> str:
    return time_text(run.seconds) if run.seconds is not None else ""


def _time_between_steps(compared: Compared, run: PolicyRun, look: Style) -> str:
    return share_text(run.between) if run.between is not None else ""


def _memory_of_process(compared: Compared, run: PolicyRun, look: Style) -> str:
    return _bytes(run.resident_peak) if run.resident_peak is not None else ""


def _memory_growth(compared: Compared, run: PolicyRun, look: Style) -> str:
    return _bytes(run.resident_growth) if run.resident_growth is not None else ""


def _device(compared: Compared, run: PolicyRun, look: Style) -> str:
    return _bytes(run.device_peak) if run.device_peak is not None else ""


def _bytes(number: int) -> str:
    return f"{number / 2**20:.0f} MiB" if number < 2**33 else f"{number / 2**30:.1f} GiB"


def _verdict(compared: Compared, run: PolicyRun, look: Style) -> str:
    """The verdicts; "raises; mended: " before that of a training which only went on with something in float32."""
    probes = run.diagnosis.probes
    return ", ".join(f"{'raises; mended: ' if probe.mended else ''}{probe.verdict.value}" for probe in probes)


def _steps_lost(compared: Compared, run: PolicyRun, look: Style) -> str:
    steps = [step for probe in run.diagnosis.probes for step in probe.training.steps]
    return f"{sum(not step.applied for step in steps)} of {len(steps)}" if steps else ""


def _loss(compared: Compared, run: PolicyRun, look: Style) -> str:
    return "; ".join(filter(None, (course_of_loss(probe.training, look) for probe in run.diagnosis.probes)))


def _fidelity(compared: Compared, run: PolicyRun, look: Style) -> str:
    """How close the gradients are to those in float32 for the same weights and batch; "" where the check did not
    measure it."""
    reference = run.probe.training.reference if run.probe is not None else None
    return f"{reference.fidelity:.4f}" if reference is not None and reference.fidelity is not None else ""


def _layers(compared: Compared, run: PolicyRun, look: Style) -> str:
    layers = [layer for _, model in run.diagnosis.models for layer in model.layers]
    computing = [layer for layer in layers if layer.follows_policy and not layer.is_model]
    half = sum(layer.compute_dtype in HALF for layer in computing)
    return f"{half} of {len(computing)}" if computing else ""


def _casts(compared: Compared, run: PolicyRun, look: Style) -> str:
    return number_text(run.casts) if run.casts is not None else ""


def _cast_time(compared: Compared, run: PolicyRun, look: Style) -> str:
    share = cast_share(run)
    return share_text(share) if share is not None else ""


def cast_share(run: PolicyRun) -> float | None:
    """The share of casts in the time of all operations; None where they were not profiled."""
    if run.profile is None or not run.profile.in_operations:
        return None
    casts = sum(known.seconds for known in run.profile.operations if known.kind == "Cast")
    return casts / run.profile.in_operations


_ROWS: tuple[tuple[str, Callable[[Compared, PolicyRun, Style], str]], ...] = (
    ("time a step", _seconds),
    ("of it between two steps", _time_between_steps),
    ("times as fast", speed_text),
    ("peak memory, device", _device),
    ("peak memory, process", _memory_of_process),
    ("of it in training", _memory_growth),
    ("verdict", _verdict),
    ("steps lost", _steps_lost),
    ("loss", _loss),
    ("gradient fidelity", _fidelity),
    ("layers in 16 bits", _layers),
    ("casts in the graph", _casts),
    ("casts' share of time", _cast_time),
)
