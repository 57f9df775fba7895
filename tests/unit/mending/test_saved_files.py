"""A saved model mended: what is tried, kept and written, with an examiner that reads the policies of the file alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from written_models import configuration_of, dtype, layer, model, write_archive

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Finding, Severity, TargetReport
from mpdoctor.mended_file import MendedFile
from mpdoctor.mending.saved.refused_targets import Refused
from mpdoctor.mending.saved.saved_files import Examinations, new_file
from mpdoctor.mending.saved.saved_policies import layers_in
from mpdoctor.project.targets import Target, target_from_text
from mpdoctor.reporters.rendering import report_from_mended_file

pytestmark = pytest.mark.fast
MIXED, HALF = "mixed_float16", ("mixed_float16", "mixed_bfloat16", "float16")
Policies = dict[str, str]
Sick = Callable[[Policies], Iterator[Finding]]


def finding(code: str, path: str | None = None, *remedies: RemedyFacts, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("It is sick.", "Heal it.", layer=path, code=code, severity=severity, remedies=remedies)


def healed(*layers: str) -> RemedyFacts:
    return RemedyFacts("float32-layers", "healed", layers)


@dataclass
class Examiner:
    """`sick` says what is found where the layers have these policies."""

    sick: Sick
    loads: bool = True
    seen: list[Policies] = field(default_factory=list)
    outputs_of: Callable[[Policies], tuple[float, ...]] = lambda policies: (1.0, -2.0)

    def check(self, target: Target) -> Diagnosis:
        assert target.path is not None
        policies = self.policies(target.path)
        self.seen.append(policies)
        found = tuple(self.sick(policies))
        layers = tuple(
            LayerFacts(path, "Dense", policy, policy.replace("mixed_", ""), "float32", (), (("float32", 4, True),))
            for path, policy in policies.items()
        )
        models = (ModelFacts("m", "m", "Functional", MIXED, Keras("keras"), layers),) if self.loads else ()
        failing = any(shown.fails_a_run(Severity.WARNING) for shown in found)
        return Diagnosis(
            targets=(TargetReport(target.id, str(target.path), target.kind, Keras("keras")),),
            findings=found, models=tuple((target.id, facts) for facts in models), probes=(), rules=(), skipped=(),
            crashed=(), environment={}, suppressed=0, exit_code=2 if not self.loads else int(failing), command="",
            version="1",
        )  # fmt: skip

    def outputs(self, target: Target) -> tuple[tuple[OutputFacts, ...], str]:
        assert target.path is not None
        values = self.outputs_of(self.policies(target.path))
        return (OutputFacts("out", "float32", len(values), values),), ""

    def policies(self, path: Path) -> Policies:
        return {saved.path: saved.policy for saved in layers_in(configuration_of(path)) if saved.path and saved.policy}


def healthy(policies: Policies) -> Iterator[Finding]:
    yield from ()


def chain(*names: str) -> Sick:
    """The first of these layers in 16 bits overflows, and then the next one."""

    def sick(policies: Policies) -> Iterator[Finding]:
        bad = next((name for name in names if policies[name] in HALF), None)
        if bad is not None:
            yield finding("MP904", bad)

    return sick


def told_of_all(needed: str, told: tuple[str, ...]) -> Sick:
    """A remedy that names more layers than are needed."""

    def sick(policies: Policies) -> Iterator[Finding]:
        if policies[needed] in HALF:
            yield finding("MP904", needed, healed(*told))

    return sick


def layers(policy: str = MIXED, names: str = "a b c d", **others: str) -> dict[str, Any]:
    return model(*(layer(name, others.get(name, policy)) for name in names.split()))


def mended(tmp_path: Path, configuration: Any, sick: Sick, policy: str = "") -> tuple[MendedFile, Examiner]:
    examiner = Examiner(sick)
    source = write_archive(tmp_path / "a.keras", configuration)
    before = hashlib.sha256(source.read_bytes()).digest()
    result = new_file(
        target_from_text(str(source)), tmp_path / "b.keras", policy, Examinations(examiner.check, examiner.outputs)
    )
    assert hashlib.sha256(source.read_bytes()).digest() == before
    assert {path.name for path in tmp_path.iterdir()} == {"a.keras"} | ({"b.keras"} if result.after else set())
    return result, examiner


def in_float32(tmp_path: Path) -> set[str]:
    return {saved.path for saved in layers_in(configuration_of(tmp_path / "b.keras")) if saved.policy == "float32"}


HEALING = [  # what is sick, what is in float32 then
    (chain("b"), "b"),
    (chain("b", "c"), "b c"),
    (chain("a", "b", "c", "d"), "a b c d"),
    (told_of_all("b", ("a", "b", "c", "d")), "b"),
    (told_of_all("c", ("b", "c")), "c"),
]


@pytest.mark.parametrize(("sick", "in_float"), HEALING)
def test_what_is_needed_is_float32_and_no_more(tmp_path: Path, sick: Sick, in_float: str) -> None:
    result, _ = mended(tmp_path, layers(), sick)
    assert in_float32(tmp_path) == set(in_float.split()) == set(result.healing)
    assert (result.exit_code, result.is_healthy) == (0, True)
    assert {change.path for change in result.changed} == set(in_float.split())


def test_a_healthy_file_is_not_written_anew(tmp_path: Path) -> None:
    result, examiner = mended(tmp_path, layers(), healthy)
    assert (result.after, result.exit_code, len(examiner.seen)) == (None, 0, 1)
    assert "nothing to mend, so no file was written" in report_from_mended_file(result, "terminal")


def test_what_no_float32_heals_is_left_alone(tmp_path: Path) -> None:
    def always(policies: Policies) -> Iterator[Finding]:
        yield finding("MP904", "b")

    result, examiner = mended(tmp_path, layers(), always)
    assert (result.after, result.exit_code, len(examiner.seen)) == (None, 1, 2)
    assert "no layer in float32 helps, and no file was written. 1 error remains." in report_from_mended_file(
        result, "terminal"
    )


def test_what_can_be_healed_is_healed_though_something_else_remains(tmp_path: Path) -> None:
    def both(policies: Policies) -> Iterator[Finding]:
        yield from chain("b")(policies)
        yield finding("MP304", None, severity=Severity.WARNING)

    result, _ = mended(tmp_path, layers(), both)
    assert (in_float32(tmp_path), result.exit_code) == ({"b"}, 1)
    assert "not healthy. 1 warning remains." in report_from_mended_file(result, "terminal")


def test_a_failed_remedy_is_not_tried_again(tmp_path: Path) -> None:
    def sick(policies: Policies) -> Iterator[Finding]:
        yield finding("MP904", "b", RemedyFacts("float32-layers", "failed", ("b",)))

    assert len(mended(tmp_path, layers(), sick)[1].seen) == 1


def test_infos_are_no_reason(tmp_path: Path) -> None:
    def sick(policies: Policies) -> Iterator[Finding]:
        yield finding("MP706", "b", severity=Severity.INFO)

    assert len(mended(tmp_path, layers(), sick)[1].seen) == 1


# --- converting -------------------------------------------------------------------------------------------------------
CONVERTED = [  # the layers that have another policy than the others, the policy, which get it
    (layers(MIXED, d="float32"), "float32", {"a", "b", "c"}),
    (layers(MIXED, d="float32"), "mixed_bfloat16", {"a", "b", "c"}),
    (layers("float32"), MIXED, {"a", "b", "c", "d"}),
    (layers(MIXED, c="mixed_bfloat16", d="float32"), "float32", {"a", "b", "c"}),
    (layers("float16", d="float32"), MIXED, {"a", "b", "c"}),
]


@pytest.mark.parametrize(("configuration", "policy", "changed"), CONVERTED)
def test_those_that_carry_the_files_policy_get_the_new_one(
    tmp_path: Path, configuration: Any, policy: str, changed: set[str]
) -> None:
    result, _ = mended(tmp_path, configuration, healthy, policy)
    assert {change.path for change in result.changed} == changed
    assert {change.after for change in result.changed} == {policy}
    assert result.weights_in_half == any(change.before == "float16" for change in result.changed)


def test_converting_puts_float32_where_it_must_be(tmp_path: Path) -> None:
    result, _ = mended(tmp_path, layers("float32"), chain("b", "d"), MIXED)
    assert (in_float32(tmp_path), set(result.healing)) == ({"b", "d"}, {"b", "d"})
    assert {change.path for change in result.changed} == {"a", "c"}
    assert "float32 because of what was found: b, d" in report_from_mended_file(result, "terminal")


def test_there_is_nothing_to_convert(tmp_path: Path) -> None:
    result, _ = mended(tmp_path, layers(MIXED), healthy, MIXED)
    assert result.after is None
    assert "compute by mixed_float16 already" in report_from_mended_file(result, "terminal")


def test_what_cannot_be_converted_is_told(tmp_path: Path) -> None:
    quantized = layer("q", {"class_name": "QuantizedDTypePolicy", "config": {}})
    result, _ = mended(tmp_path, model(layer("a", MIXED), quantized), healthy, "float32")
    assert result.kept == (("q", "its policy is a QuantizedDTypePolicy"),)
    assert "q: its policy is a QuantizedDTypePolicy" in report_from_mended_file(result, "terminal")


def test_float64_would_lose_digits(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="would lose digits"):
        mended(tmp_path, layers("float64"), healthy, MIXED)
    assert [path.name for path in tmp_path.iterdir()] == ["a.keras"]


WRAPPER = {"class_name": "LossScaleOptimizer", "config": {"inner_optimizer": {"class_name": "Adam", "config": {}}}}


@pytest.mark.parametrize(
    ("policy", "optimizer", "new_state"),
    [("float32", "Adam", True), ("mixed_bfloat16", "Adam", True), ("", "LossScaleOptimizer", False)],
)
def test_a_wrapper_goes_where_no_layer_is_float16(tmp_path: Path, policy: str, optimizer: str, new_state: bool) -> None:
    configuration = {**layers(), "compile_config": {"optimizer": WRAPPER, "loss": "mse"}}
    result, _ = mended(tmp_path, configuration, healthy if policy else chain("a"), policy)
    compiled = configuration_of(tmp_path / "b.keras")["compile_config"]
    assert (compiled["optimizer"]["class_name"], compiled["loss"]) == (optimizer, "mse")
    assert (result.unwrapped, result.new_state) == (optimizer == "Adam", new_state)


@pytest.mark.parametrize(
    ("policy", "optimizer", "told"),
    [(MIXED, "adam", MIXED), (MIXED, WRAPPER, ""), (MIXED, None, ""), ("mixed_bfloat16", "adam", "")],
)
def test_a_bare_optimizer_is_wrapped_under_the_policy_alone(
    tmp_path: Path, policy: str, optimizer: Any, told: str
) -> None:
    configuration = {**layers("float32"), "compile_config": {"optimizer": optimizer}}
    result, _ = mended(tmp_path, configuration, healthy, policy)
    assert result.policy_to_set == told
    assert ("before load_model()" in report_from_mended_file(result, "terminal")) == bool(told)


# --- what is told of it -----------------------------------------------------------------------------------------------
def test_how_far_the_outputs_moved(tmp_path: Path) -> None:
    examiner = Examiner(healthy, outputs_of=lambda policies: (1.0, -4.0, 1.0 if policies["a"] in HALF else 1.5))
    source = target_from_text(str(write_archive(tmp_path / "a.keras", layers())))
    examinations = Examinations(examiner.check, examiner.outputs)
    result = new_file(source, tmp_path / "b.keras", "float32", examinations)
    (moved,) = result.moved
    assert (moved.absolute, moved.relative, moved.compared, moved.numbers) == (0.5, 0.125, 3, 3)
    text = report_from_mended_file(result, "terminal")
    assert "out: they differ by 0.5 at most, 0.12 of the largest magnitude." in text
    assert "mixed_float16 → float32, 4 layers: a, b, c, d" in text
    assert "4 layers in float32; its variables: float32 (4)" in text


# --- what is refused --------------------------------------------------------------------------------------------------
def refused(tmp_path: Path, target: str, output: str, examiner: Examiner | None = None) -> str:
    examiner = examiner or Examiner(healthy)
    with pytest.raises(Refused) as error:
        new_file(
            target_from_text(target),
            tmp_path / output,
            "float32",
            Examinations(examiner.check, examiner.outputs),
        )
    return str(error.value)


def test_outputs_that_cannot_be_written_are_refused_before_anything_runs(tmp_path: Path) -> None:
    source = str(write_archive(tmp_path / "a.keras", layers()))
    (tmp_path / "link.keras").symlink_to("nowhere")
    (tmp_path / "script.py").write_text("")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    examiner = Examiner(healthy)
    for target, output, told in (
        (source, "a.keras", "exists, and nothing is overwritten: name another file"),
        (source, "link.keras", "exists, and nothing is overwritten"),
        (source, "none/b.keras", "there is no directory"),
        (source, "b.h5", "its name must end in .keras"),
        (str(tmp_path / "script.py"), "b.py", "is no saved model"),
        (str(tmp_path / "saved"), "b.keras", "were fixed when they were traced"),
    ):
        assert told in refused(tmp_path, target, output, examiner), output
    assert not examiner.seen


def test_a_file_that_is_not_loaded_is_not_written_anew(tmp_path: Path) -> None:
    examiner = Examiner(healthy, loads=False)
    source = target_from_text(str(write_archive(tmp_path / "a.keras", layers())))
    result = new_file(source, tmp_path / "b.keras", "", Examinations(examiner.check, examiner.outputs))
    assert (result.after, result.exit_code) == (None, 2)
    assert "could not be loaded, so no file was written" in report_from_mended_file(result, "terminal")


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    source = write_archive(tmp_path / "a.keras", layers())

    class Meddler(Examiner):
        def outputs(self, target: Target) -> tuple[tuple[OutputFacts, ...], str]:
            write_archive(source, layers("float32"))
            return super().outputs(target)

    assert "was changed while it was examined" in refused(tmp_path, str(source), "b.keras", Meddler(healthy))
    assert {path.name for path in tmp_path.iterdir()} == {"a.keras"}


def test_an_output_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    source = write_archive(tmp_path / "a.keras", layers())

    class Rival(Examiner):
        def outputs(self, target: Target) -> tuple[tuple[OutputFacts, ...], str]:
            (tmp_path / "b.keras").write_text("theirs")
            return super().outputs(target)

    assert "nothing is overwritten" in refused(tmp_path, str(source), "b.keras", Rival(healthy))
    assert (tmp_path / "b.keras").read_text() == "theirs"


def test_models_in_layers_keep_the_form_of_their_policies(tmp_path: Path) -> None:
    configuration = model(layer("a", MIXED), model(layer("s", MIXED), name="sub", dtype=dtype(MIXED, "3")))
    mended(tmp_path, configuration, healthy, "float32")
    after = configuration_of(tmp_path / "b.keras")
    assert after["config"]["layers"][2]["config"]["dtype"] == dtype("float32", "3")
