"""What a comparison looks like in each format, and what is said only where it was measured."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pytest
from own_schemas import assert_fits

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.facts.examination import LayerTime, OperationTime, ProfileFacts, TimingFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import StepFacts, TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Finding, Probe, Severity, Stage, TargetReport, Verdict
from mpdoctor.reporters.compared.reasons import headline, reasons_from_compared
from mpdoctor.reporters.compared.rows import rows_from_compared, time_text
from mpdoctor.reporters.compared.slower_operations import plain_kind
from mpdoctor.reporters.rendering import report_from_compared
from mpdoctor.reporters.text.style import Style

LOOK = Style()
MB = 2**20


def profile(cast: float = 0.01, busy: float = 0.09) -> ProfileFacts:
    return ProfileFacts(3, 0.1, busy, 0.1, (OperationTime("MatMul", 9, 0.06), OperationTime("Cast", 12, cast)))


def timing(seconds: float, between: float = 0.001, **changes: Any) -> TimingFacts:
    blocks = tuple((seconds * factor, between) for factor in (1.0, 9.0, 1.0, 0.9, 1.0))
    return TimingFacts("fit", blocks, 2, 5, "CPU", 500 * MB, 600 * MB, None, 3, **{"profile": profile(), **changes})


def layer(path: str, dtype: str) -> LayerFacts:
    return LayerFacts(path, "Dense", "mixed_float16", compute_dtype=dtype, variable_dtype="float32")


def diagnosis(losses: tuple[float, ...], name: str = "a.py") -> Diagnosis:
    model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"),
                       layers=(layer("d", "float16"), layer("e", "float16"), layer("head", "float32")))  # fmt: skip
    steps = tuple(StepFacts(None, place != 1, loss=loss) for place, loss in enumerate(losses))
    probes = (Probe(TrainingFacts(model, "real", "CPU", 3, steps), Verdict.HEALTHY, ""),) if losses else ()
    target = TargetReport(name, name, "script", Keras("keras"), stages={"source": Stage("done")})
    return Diagnosis((target,), (), (("a.py", model),), probes, (), (), (), {}, 0, 0, "mpdoctor compare a.py", "0.1.0")


def run(policy: str, *timings: TimingFacts | None, losses: tuple[float, ...] = (2.0, 1.5, 1.0)) -> PolicyRun:
    return PolicyRun(policy, diagnosis(losses), timings, "" if all(timings) else "its training raises")


def with_probe(plain: PolicyRun, **changes: Any) -> PolicyRun:
    probes = tuple(dataclasses.replace(probe, **changes) for probe in plain.diagnosis.probes)
    return dataclasses.replace(plain, diagnosis=dataclasses.replace(plain.diagnosis, probes=probes, findings=(RAISED,)))


FLOAT32 = run("float32", timing(0.02), timing(0.03))
FASTER = run("mixed_bfloat16", timing(0.01), timing(0.01))
SAME = run("mixed_float16", timing(0.019), timing(0.031))
UNTIMED = run("mixed_float16", None, None, losses=(2.0, float("inf"), float("nan")))
RAISED = Finding("`+` is given two dtypes.", "Cast it.", code="MP202", severity=Severity.ERROR)
MENDED = with_probe(
    FASTER,
    mended=(MendedFacts("layer", "add", "Add", FailureFacts("InvalidArgumentError", "step")),),
    went_on="It went on.",
)
COLLAPSING = with_probe(FASTER, verdict=Verdict.COLLAPSING)
ALL = Compared((FLOAT32, FASTER, UNTIMED), 2)


def texts(compared: Compared, policy: str) -> str:
    return "\n".join(sentence for named, sentence in reasons_from_compared(compared, LOOK) if named == policy)


def test_times_are_medians_and_ratios_are_of_the_same_round() -> None:
    assert FLOAT32.seconds == 0.025 and FASTER.seconds == 0.01
    speed = ALL.speed(FASTER)
    assert speed is not None and (speed.middle, speed.low, speed.high) == pytest.approx((2.5, 2.0, 3.0))
    assert speed.is_clear and ALL.speed(UNTIMED) is None and ALL.exit_code == 0


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ((FLOAT32, FASTER), "a.py trains 2.50 times as fast under mixed_bfloat16 as under float32."),
        ((FASTER, FLOAT32), "a.py trains fastest under mixed_bfloat16."),
        ((FLOAT32, SAME), "a.py: no policy was faster than float32, or slower, in each round."),
        ((FASTER, FLOAT32, run("mixed_float16", timing(0.0101), timing(0.0099))),
         "a.py: none was faster than mixed_bfloat16 in each round."),
        ((FLOAT32, MENDED), "a.py trains 2.50 times as fast under mixed_bfloat16 as under float32. "
         "As it is, it raises under mixed_bfloat16."),
        ((FLOAT32, COLLAPSING), "a.py trains 2.50 times as fast under mixed_bfloat16 as under float32. "
         "Its short training under mixed_bfloat16 was collapsing."),
        ((FLOAT32, UNTIMED), "a.py: a step was timed under float32 only, so there is nothing to compare it with."),
        ((UNTIMED, UNTIMED), "a.py: its step was timed under no policy."),
    ],
)  # fmt: skip
def test_the_first_line(runs: tuple[PolicyRun, ...], words: str) -> None:
    assert headline(Compared(runs, 2), LOOK) == words


@pytest.mark.parametrize(
    ("other", "words"), [(0.005, "2.00 times as fast under b as under a"), (0.02, "fastest under a")]
)
def test_one_round_may_be_chance(other: float, words: str) -> None:
    told = headline(Compared((run("a", timing(0.01)), run("b", timing(other))), 1), LOOK)
    assert told == f"a.py trains {words} in one round: --rounds 3 tells whether that repeats."


def test_the_table() -> None:
    rows = dict(rows_from_compared(ALL, LOOK))
    assert rows["time a step"] == ["25 ms", "10 ms", ""]
    assert rows["times as fast"] == ["", "2.50 (2.00–3.00)", ""]
    assert rows["peak memory, process"] == ["600 MiB", "600 MiB", ""]
    assert rows["of it in training"] == ["100 MiB", "100 MiB", ""]
    assert rows["steps lost"] == ["1 of 3"] * 3
    assert rows["loss"][0] == "2 → 1" and rows["layers in 16 bits"] == ["2 of 3"] * 3
    assert "peak memory, device" not in rows
    assert [time_text(seconds) for seconds in (2.5, 0.0123, 0.000045)] == ["2.5 s", "12.3 ms", "45 µs"]


def test_fidelity_is_shown_where_it_was_measured() -> None:
    assert "gradient fidelity" not in dict(rows_from_compared(ALL, LOOK))
    trained = FASTER.diagnosis.probes[0].training
    fields = {field.name: getattr(trained, field.name) for field in dataclasses.fields(trained)}
    measured = SimpleNamespace(**{**fields, "reference": SimpleNamespace(fidelity=0.98765)})
    probe: Any = SimpleNamespace(training=measured, verdict=Verdict.HEALTHY, mended=())
    with_it = dataclasses.replace(FASTER, diagnosis=dataclasses.replace(FASTER.diagnosis, probes=(probe,)))
    assert dict(rows_from_compared(Compared((FLOAT32, with_it), 2), LOOK))["gradient fidelity"] == ["", "0.9877"]


@pytest.mark.parametrize(
    ("changes", "between", "words"),
    [
        ({}, 0.001, ""),
        ({"profile": profile(cast=0.03)}, 0.001, "Casts take 30% of the operations' time, and 3 casts between"),
        ({"profile": profile(cast=0.03), "casts": 0}, 0.001, ""),
        ({}, 0.006, "60% of a step's time passes between two steps"),
        ({"profile": profile(busy=0.02)}, 0.001, "In 80% of a profiled step's time no operation was under way"),
        ({"profile": None}, 0.001, ""),
        (
            {"profile": None, "not_profiled": "XLA compiles it"},
            0.001,
            "Its operations were not timed one by one: XLA c",
        ),
    ],
)
def test_advice_is_given_where_it_was_measured_to_pay(changes: dict[str, Any], between: float, words: str) -> None:
    plain = {"casts": 3, **changes}
    made = dataclasses.replace(timing(0.01, between), **plain)
    told = texts(Compared((FLOAT32, run("mixed_float16", made, made)), 2), "mixed_float16")
    advice = [line for line in told.splitlines() if not line.startswith(("Computes", "`MatMul`"))]
    assert len(advice) == bool(words) and (not words or advice[0].startswith(words)), told


@pytest.mark.parametrize("uses_tf32", [True, False])
def test_float32_on_a_gpu_is_called_what_it_is(uses_tf32: bool) -> None:
    device = DeviceFacts("GPU", "NVIDIA A100", (8, 0), uses_tf32=uses_tf32)
    runs = []
    for of_policy in (FLOAT32, FASTER):
        models = [(path, dataclasses.replace(model, devices=(device,))) for path, model in of_policy.diagnosis.models]
        runs.append(
            dataclasses.replace(of_policy, diagnosis=dataclasses.replace(of_policy.diagnosis, models=tuple(models)))
        )
    compared = Compared(tuple(runs), 2)
    told = [policy for policy in ("float32", "mixed_bfloat16") if "float32 in TF32" in texts(compared, policy)]
    assert told == (["float32"] if uses_tf32 else [])


def test_what_takes_the_time_and_which_layers_stay_behind() -> None:
    told = texts(ALL, "mixed_bfloat16")
    assert "Computes 2 layers in float16, 1 layer in float32 (head)." in told
    assert "`MatMul` takes 60% of the operations' time: 20 ms a step, and 20 ms under float32." in told
    assert "Its step was not timed: its training raises." in texts(ALL, "mixed_float16")
    assert "No difference from float32 was measured: 0.97 to 1.05 times as fast" in texts(
        Compared((FLOAT32, SAME), 2), "mixed_float16"
    )


def test_a_training_that_only_goes_on_mended_is_said_to_raise() -> None:
    compared = Compared((FLOAT32, MENDED), 2)
    assert dict(rows_from_compared(compared, LOOK))["verdict"] == ["healthy", "raises; mended: healthy"]
    assert texts(compared, "mixed_bfloat16").startswith(
        "As it is, its training raises under this policy.\nMP202: `+` is given two dtypes. Cast it.\nIt went on."
    )


def test_an_operation_takes_the_same_time_wherever_it_is_told() -> None:
    own = run("mixed_float16", SLOW, profiled(0.04, Conv2D=0.05, Mul=0.001), SLOW)
    told = texts(Compared((run("float32", FAST, FAST, FAST), own), 3), "mixed_float16")
    assert "`Conv2D` takes 76% of the operations' time: 30 ms a step, and 4 ms under float32." in told
    assert "`Conv2D` 30 ms instead of 4 ms" in told


def profiled(seconds: float, **operations: float) -> TimingFacts:
    """Three steps; seconds a step, of all and of each type."""
    types = tuple(OperationTime(kind, 3, 3 * took) for kind, took in operations.items())
    in_all = sum(known.seconds for known in types)
    return timing(seconds, profile=ProfileFacts(3, 3 * seconds, 3 * seconds, in_all, types))


FAST = profiled(0.01, _MklNativeFusedConv2D=0.004, Mul=0.004, MatMul=0.002)
SLOW = profiled(0.04, Conv2D=0.03, Mul=0.0045, Cast=0.004, MatMul=0.001)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (
            (SLOW, SLOW),
            "Added up, its operations take 29.5 ms a step longer than under float32: `Conv2D` 30 ms instead of 4 ms, "
            "`Cast` 4 ms instead of none.\n"
            "oneDNN computes `Conv2D` under float32, and not under mixed_float16.",
        ),
        ((SLOW, profiled(0.04, _MklConv2D=0.003, Mul=0.001, Cast=0.03)), "Cast` 17 ms instead of none."),
        ((FAST, SLOW), ""),
        ((profiled(0.04, Mul=0.004), profiled(0.04, Mul=0.004)), ""),
        ((timing(0.04, profile=None), timing(0.04, profile=None)), ""),
        ((timing(0.04), timing(0.04)), ""),  # some of its types are not known
    ],
)
def test_a_slower_step_names_the_operations_that_take_longer(own: tuple[TimingFacts, ...], words: str) -> None:
    base = run("float32", FAST, FAST)
    told = [
        sentence
        for _, sentence in reasons_from_compared(Compared((base, run("mixed_float16", *own)), 2), LOOK)
        if sentence.startswith(("Added up", "oneDNN"))
    ]
    assert "\n".join(told).endswith(words) and bool(told) is bool(words)


def of_layers(*layers: tuple[str, str, float]) -> TimingFacts:
    """Two steps, whose operations take 20 seconds in all; seconds a step."""
    found = tuple(LayerTime(path, dtype, 2 * seconds) for path, dtype, seconds in layers)
    return timing(0.01, profile=ProfileFacts(2, 30.0, 15.0, 20.0, (), found))


def test_what_layers_take_by_their_dtype() -> None:
    base = run("float32", of_layers(("a", "float32", 8.0), ("b", "float32", 1.0)), timing(0.01, profile=None))
    own = [of_layers(("a", "float16", took), ("b", "float32", 2.0), ("c", "float16", 0.4)) for took in (3.0, 5.0)]
    compared = Compared((base, run("mixed_float16", *own)), 2)
    assert (
        "Layers that compute in float32 take 90% of the operations' time; longest: a 8 s a step, b 1 s a step."
    ) in texts(compared, "float32")
    assert (
        "Layers that compute in float16 take 44% of the operations' time, those in float32 20%; longest: a 4 s a step "
        "(8 s under float32), b 2 s a step (1 s under float32)."
    ) in texts(compared, "mixed_float16")


def test_an_operation_has_one_name_however_its_graph_was_rewritten() -> None:
    names = {
        "_MklNativeConv2DBackpropFilterWithBias": "Conv2DBackpropFilter",
        "_FusedMatMul": "MatMul",
        "_MklMatMul": "MatMul",
        "_MklFusedBatchNormV3": "FusedBatchNormV3",
        "FusedBatchNormV3": "FusedBatchNormV3",
        "_Arg": "_Arg",
    }
    assert {kind: plain_kind(kind) for kind in names} == names


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_text_fits(width: int) -> None:
    told = report_from_compared(ALL, "terminal", width=width, blocks=False)
    assert max(map(len, told.splitlines())) <= max(width, 60) and "Measured on a CPU." in told


def test_the_page_has_all_losses_on_one_plot() -> None:
    page = report_from_compared(ALL, "html")
    assert page.count("<polyline") == 3 and page.count('<svg class="course"') == 1
    assert all(f'class="line {mark}"' in page for mark in ("first", "second", "third"))


def test_where_nothing_trains_the_first_error_is_told_and_no_table_is_shown() -> None:
    error = Finding("The script ended without a training call.", "Point at `train.py`.", code="MP002",
                    severity=Severity.ERROR)  # fmt: skip
    idle = dataclasses.replace(diagnosis(()), models=(), findings=(error,))
    names = ("float32", "mixed_float16")
    compared = Compared(tuple(PolicyRun(name, idle, (None,), "no training was seen") for name in names), 1)
    text = report_from_compared(compared, "terminal")
    assert text.count("MP002: The script ended without a training call. Point at `train.py`.") == 1
    assert "\nfloat32, mixed_float16:\n  Its step was not timed: no training was seen.\n  MP002" in text
    assert not any(line.split() == [*names] for line in text.splitlines())
    assert "<table" not in report_from_compared(compared, "html")
    assert text.count("MP002") * 2 == report_from_compared(compared, "markdown").count("MP002")


def test_names_stay_data() -> None:
    hostile = diagnosis((1.0, 0.5), "<script>x</script>\x1b[2J|`a.py")
    compared = Compared((PolicyRun("float32", hostile), PolicyRun("mixed_float16", hostile)), 1)
    assert "<script>" not in report_from_compared(compared, "html")
    assert "\x1b[2J" not in report_from_compared(compared, "terminal") + report_from_compared(compared, "markdown")


@pytest.mark.parametrize("compared", [ALL, Compared((FLOAT32, SAME), 2), Compared((UNTIMED, UNTIMED), 2)])
def test_the_json_is_what_its_schema_says(compared: Compared) -> None:
    told = json.loads(report_from_compared(compared, "json"))
    assert_fits(told, "compared-1.json")
    assert [policy_run["policy"] for policy_run in told["policies"]] == [
        policy_run.policy for policy_run in compared.runs
    ]


def test_two_policies_must_have_something_to_compare() -> None:
    nothing = run("mixed_float16", None, losses=())
    assert Compared((FLOAT32, nothing), 1).exit_code == 2
    assert Compared((run("float32", None), UNTIMED), 1).exit_code == 0
