"""Reporters: the hostile sample through every one, the contract of the JSON, and what a report looks like."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import samples
from rich.cells import cell_len

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import StepFacts, TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.facts.written_numbers import magnitude_text, number_text
from mpdoctor.finding import (
    AlsoSeen,
    Crashed,
    Diagnosis,
    Excerpt,
    Finding,
    Fix,
    Probe,
    Severity,
    Skipped,
    Stage,
    Verdict,
)
from mpdoctor.reporters import concise, github, html, markdown, sarif, terminal
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.printable import shortened
from mpdoctor.reporters.text.plot import columns_from_steps, rows_from_scales, sparkline
from mpdoctor.reporters.text.targets import judged_by

SNAPSHOTS = Path(__file__).parent / "snapshots"
SCHEMA = json.loads((Path(json_reporter.__file__).parent / "schema" / "diagnosis-1.json").read_text())
# As it was published, from the package sarif-om (MIT licence, Microsoft).
SARIF = json.loads(
    (Path(__file__).parents[2] / "support" / "schemas" / "sarif-2.1.0-rtm.4.json").read_text(encoding="utf-8")
)
EVERY = [*samples.SAMPLES.values(), samples.hostile]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_the_report_looks_as_it_did(name: str) -> None:
    """Look at the difference; if it is what you want, run once with MPDOCTOR_UPDATE_SNAPSHOTS=1."""
    shown = terminal.render(samples.SAMPLES[name]())
    kept = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("MPDOCTOR_UPDATE_SNAPSHOTS") == "1":
        kept.write_text(shown, encoding="utf-8")
    assert shown == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("sample", EVERY)
@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("blocks", [True, False])
def test_no_line_is_wider_than_asked_for(sample: Any, width: int, blocks: bool) -> None:
    lines = terminal.render(sample(), width=width, blocks=blocks).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert not [line for line in lines if line != line.rstrip(" ")]


@pytest.mark.parametrize("render", [terminal.render, markdown.render, html.render])
def test_what_ends_the_training_stands_before_a_mere_warning(render: Callable[[Diagnosis], str]) -> None:
    told = [
        Finding(f"Says {code}.", "", Location("train.py", line), code=code, severity=severity, target="train.py")
        for line, (code, severity) in enumerate(
            [("MP201", Severity.WARNING), ("MP302", Severity.ERROR), ("MP905", Severity.WARNING),
             ("MP903", Severity.ERROR), ("MP213", Severity.INFO)], 1)
    ]  # fmt: skip
    examined = dataclasses.replace(samples.one_error(), findings=tuple(told))
    source_alone = dataclasses.replace(samples.static(), findings=tuple(told))
    codes = [finding.code for finding in told]
    assert _codes(render(examined)) == ["MP903", "MP302", "MP905", "MP201", "MP213"]
    assert _codes(render(source_alone)) == codes
    assert [finding["code"] for finding in json.loads(json_reporter.render(examined))["findings"]] == codes
    assert re.findall(r" (MP\d+) ", concise.render(examined)) == codes


def test_why_nothing_was_run_stands_before_what_the_source_shows() -> None:
    source = dataclasses.replace(samples.SHADOWED, target="train.py")
    no_tensorflow = dataclasses.replace(source, code="MP002", name="target-not-loaded", location=None)
    shown = terminal.render(dataclasses.replace(samples.static(), findings=(source, no_tensorflow)))
    assert shown.partition("\n")[0].endswith("target not loaded")
    assert shown.index("error MP002") < shown.index("error MP302")


def test_the_report_offers_to_explain_the_rule_that_its_first_line_names() -> None:
    worst = dataclasses.replace(samples.SHADOWED, target="train.py")
    before = dataclasses.replace(worst, code="MP314", name="a-mere-warning", severity=Severity.WARNING)
    static = dataclasses.replace(samples.static(), findings=(before, worst))
    shown = terminal.render(static)
    assert shown.partition("\n")[0].endswith("attribute shadowed by wrapper") and "explain MP302" in shown
    frequent = dataclasses.replace(worst, code="MP501", name="mask-constant-overflows")
    directory = dataclasses.replace(static.targets[0], kind="directory")
    shown = terminal.render(
        dataclasses.replace(static, targets=(directory,), findings=(before, worst, frequent, frequent)), width=120
    )
    assert ": mask constant overflows (2), " in shown.partition("\n")[0] and "explain MP501" in shown


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [("a b.keras", "keras-file", "mpdoctor mend 'a b.keras' --output new.keras"), ("exported", "saved-model", "")],
)
def test_a_saved_model_with_a_finding_is_told_the_way_to_a_mended_copy(name: str, kind: str, told: str) -> None:
    bad, good = (
        terminal.render(
            dataclasses.replace(of, targets=(dataclasses.replace(of.targets[0], id=name, kind=kind),)), width=200
        )
        for of in (samples.diagnosis(samples.SHADOWED), samples.healthy())
    )
    assert told in bad and ("mpdoctor mend" in bad) is bool(told)
    assert "mpdoctor mend" not in good


def _codes(report: str) -> list[str]:
    """As they are first spoken of: a page holds each finding twice, the second time to be copied."""
    return list(dict.fromkeys(re.findall(r"Says (MP\d+)", report)))


@pytest.mark.parametrize("sample", EVERY)
def test_colour_changes_no_word(sample: Any) -> None:
    plain = terminal.render(sample())
    assert "\x1b" not in plain
    colored = re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;.*?\x1b\\", "", terminal.render(sample(), color=True))
    assert [line.rstrip() for line in colored.split("\n")] == plain.split("\n")


@pytest.mark.parametrize("name", sorted(set(samples.SAMPLES) - {"collapsing"}))  # its message holds a ²
def test_without_blocks_everything_of_ours_is_ascii(name: str) -> None:
    assert terminal.render(samples.SAMPLES[name](), blocks=False).isascii()


@pytest.mark.parametrize("render", [terminal.render, concise.render, github.render])
def test_nothing_hostile_reaches_the_terminal(render: Any) -> None:
    shown = render(samples.hostile())
    forbidden = [c for c in shown if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u202c")]
    assert not forbidden
    assert not re.search("[\ud800-\udfff]", shown)
    assert "[/b][red]<script>" in shown  # shown as it is, not read as markup


def test_the_terminal_keeps_long_names_short() -> None:
    assert "x" * 800 not in terminal.render(samples.hostile()).replace("\n", "").replace(" ", "")


def test_one_line_a_finding_and_nothing_else() -> None:
    lines = concise.render(samples.hostile()).splitlines()
    assert len(lines) == len(samples.hostile().findings)
    assert concise.render(samples.healthy()) == ""
    assert concise.render(samples.one_error()).startswith("train.py:12:1: MP302 error: `opt.epsilon = 1e-4` sets an")
    assert concise.render(samples.failing_script()).startswith("train.py:7:1: MP002 ")


@pytest.mark.parametrize("sample", EVERY)
def test_json_keeps_to_its_schema(sample: Any) -> None:
    text = json_reporter.render(sample())
    assert text.isascii()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(text), SCHEMA, cls=jsonschema.Draft202012Validator)
    assert text == json_reporter.render(sample())


def test_the_schema_names_every_field() -> None:
    """A field that is added to the report is added to the published schema too."""
    told = json.loads(json_reporter.render(samples.hostile()))
    assert set(told) == set(SCHEMA["properties"])
    for kind in ("target", "finding", "model", "probe"):
        assert set(told[f"{kind}s"][0]) == set(SCHEMA["$defs"][kind]["properties"])


def test_the_schema_can_fail() -> None:
    told = json.loads(json_reporter.render(samples.one_error()))
    del told["findings"][0]["what_if"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_json_holds_what_the_contract_says() -> None:
    told = json.loads(json_reporter.render(samples.collapsing()))
    probe = told["probes"][0]
    assert probe["call"] == {"path": "train.py", "line": 31, "kind": "fit"}
    assert probe["skip_causes"]["0"] == "dense/kernel"
    assert probe["skipped_steps"] == list(range(50))
    assert probe["loss"][0] == "inf"
    assert (probe["steps"], probe["verdict"], probe["float32_loss"]) == (50, "collapsing", None)
    assert [link["class"] for link in told["models"][0]["optimizer"]["chain"]] == [
        "LossScaleOptimizer",
        "Adam",
    ]
    assert told["summary"] == {"errors": 2, "warnings": 1, "infos": 0, "suppressed": 0, "exit_code": 1}
    first = told["findings"][0]
    assert (first["line"], first["column"], first["end_column"], first["stage"]) == (9, 16, 28, "training")
    assert told["findings"][2]["column"] is None  # a whole line
    evidence = json.loads(json_reporter.render(samples.hostile()))["findings"][0]["evidence"]
    assert (evidence["nan"], evidence["inf"], evidence["nested"]["minus"]) == ("nan", "inf", "-inf")


def test_what_if_findings_stand_apart_and_are_not_counted() -> None:
    shown = terminal.render(samples.what_if())
    assert shown.startswith("✓ train.py: nothing wrong as it is; 1 finding if you turned on mixed_float16")
    assert shown.index("If you turned on mixed_float16\n") < shown.index("MP201")


def test_a_healthy_model_gets_a_few_lines() -> None:
    assert len(terminal.render(samples.healthy()).splitlines()) <= 6


def test_the_layer_table_appears_only_where_layers_are_spoken_of() -> None:
    assert "Layers of" not in terminal.render(samples.healthy())
    assert "Layers of" not in terminal.render(samples.one_error())
    table = terminal.render(samples.many_layers())
    assert "… 18 more layers in mixed_float16" in table
    assert "MultiHeadAttention  float32" in table


def test_a_function_between_layers_is_no_layer_of_a_policy() -> None:
    (named,) = samples.many_layers().models
    target, model = named
    between = LayerFacts("add", "Add", "", "float32", "float32", is_operation=True)
    with_function = dataclasses.replace(model, layers=(*model.layers, between))
    changed = dataclasses.replace(samples.many_layers(), models=((target, with_function),))
    assert terminal.render(changed) == terminal.render(samples.many_layers())


def _caret_line(line: str, column: int, end_column: int, width: int = 80) -> tuple[str, str]:
    finding = Finding(
        "Message.", "", Location("a.py", 1, column, 1, end_column), code="MP101", severity=Severity.ERROR,
        excerpt=Excerpt(1, (line,)),
    )  # fmt: skip
    shown = terminal.render(samples.diagnosis(finding), width=width).split("\n")
    at = next(number for number, text in enumerate(shown) if "^" in text)
    return shown[at - 1], shown[at]


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ("x = tf.foo(1)", "tf.foo"),
        ("\t\tx = tf.foo(1)", "tf.foo"),
        ("'数値' + tf.foo(1)", "tf.foo"),
        ("y" * 300 + " = tf.foo(1)", "tf.foo"),
        ("数" * 300 + " = tf.foo(1)", "tf.foo"),
    ],
)
def test_carets_stand_under_the_span(line: str, span: str) -> None:
    column = line.index(span) + 1
    source, carets = _caret_line(line, column, column + len(span))
    before = source[: source.index(span)]
    assert cell_len(carets[: carets.index("^")]) == cell_len(before)
    assert carets.count("^") == len(span)


def test_a_second_sight_that_says_the_same_is_not_spelt_out() -> None:
    again = AlsoSeen("MP302", "model", samples.SHADOWED.message)
    more = AlsoSeen("MP912", "training", f"{samples.SHADOWED.message} The update is 8 times too large.")
    last = AlsoSeen("MP904", "training", "The update is 8 times too large. It began in `a`.")
    finding = dataclasses.replace(samples.SHADOWED, also_seen=(again, more, again, last))
    shown = [line for line in terminal.render(samples.diagnosis(finding)).splitlines() if "also seen" in line]
    assert shown == [
        "  also seen while training (MP912): The update is 8 times too large.",
        "  also seen while training (MP904): It began in `a`.",
    ]


@pytest.mark.parametrize(
    ("sight", "is_shown"),
    [
        ("The program stopped here in layer `a` (A), before any training step: ValueError: Shapes do not fit", False),
        ("The program stopped here in layer `a` (A), before any training step: ValueError: No such file", True),
    ],
)
def test_an_error_is_quoted_once(sight: str, is_shown: bool) -> None:
    told = "Layer `a` (A), which is not your code, raises on float16 input: ValueError: Shapes do not fit."
    finding = dataclasses.replace(samples.SHADOWED, message=told, also_seen=(AlsoSeen("MP002", "model", sight),))
    assert ("stopped here" in terminal.render(samples.diagnosis(finding))) == is_shown


def test_a_long_sight_ends_with_a_whole_sentence() -> None:
    """Cut in its middle it read "float16 ends at… a constant"."""
    first, last = (
        f"The output of `a` is not finite: {'all of it, ' * 12}from finite inputs.",
        "float16 ends at 65504; x.",
    )
    finding = dataclasses.replace(samples.SHADOWED, also_seen=(AlsoSeen("MP904", "training", f"{first} {last * 4}"),))
    shown = " ".join(terminal.render(samples.diagnosis(finding)).split())
    assert f"(MP904): {first}" in shown and "…" not in shown.partition("also seen")[2].partition("Training")[0]


def test_a_sentence_that_fits_is_told_whole() -> None:
    """A later sentence of more characters than a name may have, too."""
    story = (
        "The update of step 1 made weights inf or NaN, although they and every gradient of that step until then were "
        "finite: Adam computes that."
    )
    finding = dataclasses.replace(
        samples.SHADOWED, also_seen=(AlsoSeen("MP907", "training", f"The loss is nan at step 2. {story}"),)
    )
    assert story in " ".join(terminal.render(samples.diagnosis(finding)).split())


def test_the_first_line_keeps_to_one_line() -> None:
    finding = samples.what_if().findings[0]
    target = dataclasses.replace(samples.TARGET, id="a_rather_long_name_of_a_script.py")
    first = terminal.render(samples.diagnosis(finding, targets=(target,))).split("\n")[0]
    assert first.endswith("nothing wrong as it is; 1 finding if mixed")


def test_the_first_line_of_a_float32_program_is_not_about_its_training_under_mixed_float16() -> None:
    steps = samples.steps_from_finiteness([False] * 20, samples.LossScale())
    probe = Probe(samples.training(steps, steps_wanted=20), Verdict.COLLAPSING, "20 steps skipped")
    what_if = samples.what_if().findings[0]
    both = dataclasses.replace(
        samples.diagnosis(samples.SHADOWED, probes=(probe,)), findings=(samples.SHADOWED, what_if)
    )
    assert terminal.render(both).split("\n")[0].endswith("in train.py: attribute shadowed by wrapper")
    alone = samples.diagnosis(samples.SHADOWED, probes=(probe,))
    assert "the loss scale collapses" in terminal.render(alone).split("\n")[0]


def test_a_location_without_columns_marks_the_whole_line() -> None:
    source, carets = _caret_line("    model.fit(x)", 0, 0)
    assert carets.count("^") == len("model.fit(x)")
    assert carets.index("^") == source.index("model")


def test_every_verdict_has_a_headline() -> None:
    steps = samples.steps_from_finiteness([False] * 20, samples.LossScale())
    for verdict in Verdict:
        probe = Probe(samples.training(steps, steps_wanted=20), verdict, "why it is so")
        shown = terminal.render(samples.diagnosis(samples.SHADOWED, probes=(probe,)))
        assert shown.startswith("✗ 1 error in train.py: ")
        assert f"Training  {verdict.value}: why it is so" in shown


def test_steps_of_an_eager_loop_that_were_run_at_two_scales_are_told_beside_those_of_the_training() -> None:
    steps = samples.steps_from_finiteness([True] * 36, samples.LossScale())
    facts = dataclasses.replace(samples.training(steps, steps_wanted=50), ended="script", script_steps=40)

    def told(training: TrainingFacts) -> str:
        probe = Probe(training, Verdict.HEALTHY, "36 steps, none skipped")
        return " ".join(terminal.render(samples.diagnosis(samples.SHADOWED, probes=(probe,))).split())

    of_a_trial = (
        "the script's own loop ended there, 4 steps later: these were run at two loss scales and changed nothing"
    )
    assert of_a_trial in told(facts)
    assert "two loss scales" not in told(dataclasses.replace(facts, script_steps=36))
    assert "two loss scales" not in told(dataclasses.replace(facts, ended="budget"))


SEVERAL = [
    dataclasses.replace(samples.SHADOWED, code=f"MP10{number}", name=name, severity=severity)
    for number, (name, severity, times) in enumerate(
        [
            ("seldom-warned", Severity.WARNING, 1),
            ("often-warned", Severity.WARNING, 5),
            ("one-error", Severity.ERROR, 1),
            ("two-errors", Severity.ERROR, 2),
        ]
    )
    for _ in range(times)
]


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (132, "3 errors, 6 warnings in src: two errors (2), one error, often warned (5), and 1 other rule"),
        (80, "3 errors, 6 warnings in src: two errors (2), one error, and 2 other rules"),
        (60, "3 errors, 6 warnings in src"),
    ],
)
def test_of_a_directory_the_headline_counts_by_rule(width: int, told: str) -> None:
    src = dataclasses.replace(samples.TARGET, id="src", kind="directory")
    shown = terminal.render(samples.diagnosis(*SEVERAL, targets=(src,)), width=width)
    assert shown.split("\n")[0].removeprefix("✗ ") == told


@pytest.mark.parametrize(
    ("number", "severity", "in_full", "listed"),
    [
        (5, Severity.INFO, 5, 0),
        (6, Severity.INFO, 3, 3),
        (40, Severity.INFO, 3, 37),
        (40, Severity.WARNING, 40, 0),
    ],
)
def test_of_many_infos_of_one_rule_most_take_a_line(number: int, severity: Severity, in_full: int, listed: int) -> None:
    findings = [
        Finding(
            f"Layer{n} loses its dtype.",
            "Keep it.",
            Location(f"{'long/' * 4}{n}.py", 7, 1),
            code="MP213",
            name="config-drops-dtype",
            severity=severity,
        )
        for n in range(number)
    ]
    shown = terminal.render(samples.diagnosis(*findings), width=80)
    assert [shown.count("fix: Keep it."), shown.count(f"config-drops-dtype, {listed} more\n")] == [in_full, listed > 0]
    assert all(f"{n}.py:7:1" in shown for n in range(number))
    assert all(f"Layer{n} loses its dtype." in shown for n in range(number))
    # a place that leaves no room for the message stands alone, and is never cut
    narrow = terminal.render(samples.diagnosis(*findings), width=30).replace("\n  ", "")
    assert all(f"{n}.py:7:1" in narrow for n in range(number))


def test_each_keras_that_judged_is_told_once() -> None:
    skipped = {"model": Stage("skipped", "--static")}
    keras3 = [Keras("keras", "3.15.1", because=f"{name}/requirements.txt says so") for name in "abcd"]
    legacy = [Keras("tf_keras", because=f"{name}.py says so") for name in "ef"]
    targets = [
        dataclasses.replace(
            samples.TARGET, keras=keras, stages=skipped, other_keras=tuple((old, ("x.py",)) for old in legacy)
        )
        for keras in keras3
    ]
    assert judged_by(targets[:1]) == [
        "judged by Keras 3.15.1 (a/requirements.txt says so), tf_keras for 2 files",
    ]
    assert judged_by(targets) == [
        "judged by Keras 3.15.1 (a/requirements.txt says so; b/requirements.txt says so; 2 more), tf_keras for 8 files",
    ]


@pytest.mark.parametrize(
    ("text", "longest", "shown"),
    [
        ("short", 20, "short"),
        ("every gradient below six is flushed to zero", 30, "every gradient below …to zero"),
        ("encoder/block_000000000000000000000000001/dense", 24, "encoder/block_000…/dense"),
        ("a b c d e f g h i j k l m n o p", 12, "a b c d …o p"),
    ],
)
def test_what_is_too_long_is_cut_between_words(text: str, longest: int, shown: str) -> None:
    cut = shortened(text, longest)
    assert len(cut) <= longest
    assert cut == shown


def test_a_constant_scale_needs_one_line() -> None:
    assert terminal.render(samples.healthy()).count("loss scale") == 1
    steps = tuple(StepFacts(1.0, False, "w", 1.0) for _ in range(12))
    probe = Probe(samples.training(steps, floor=1.0), Verdict.STUCK, "12 steps skipped")
    shown = terminal.render(samples.diagnosis(samples.SHADOWED, probes=(probe,)))
    assert "loss scale  1 throughout" in shown
    assert "all 12 steps; inf or NaN first in the gradient of w" in shown


def test_who_scales_no_loss_is_named() -> None:
    """Whether the program scales its loss by hand is nothing that the steps of its optimizer show."""
    steps = tuple(StepFacts(None, True, None, 6300.0) for _ in range(12))
    bare = dataclasses.replace(samples.model(), optimizer=samples.model().optimizer[1:])
    probe = Probe(samples.training(steps, model=bare, dynamic=None), Verdict.HEALTHY, "")
    assert "loss scale  none: Adam is no LossScaleOptimizer" in terminal.render(samples.diagnosis(probes=(probe,)))


@pytest.mark.parametrize(
    ("policies", "steps"),
    [
        (("mixed_float16", "float32"), "12 float16 steps"),
        (("mixed_bfloat16", "mixed_bfloat16"), "12 bfloat16 steps"),
        (("float32", "float32"), "12 float32 steps"),
        ((), "12 float16 steps"),  # no layer is seen: the policy's dtype
    ],
)
def test_steps_are_of_the_dtype_that_layers_compute_in(policies: tuple[str, ...], steps: str) -> None:
    layers = tuple(samples.layer(f"dense_{number}", policy=policy) for number, policy in enumerate(policies))
    model = dataclasses.replace(samples.model(), layers=layers)
    probe = Probe(samples.training(samples.good_steps(12), model=model), Verdict.HEALTHY, "")
    assert f"{steps} on the CPU, verdict healthy" in terminal.render(samples.diagnosis(probes=(probe,)))


def test_the_curve_of_the_scale() -> None:
    rows, labels = rows_from_scales([2.0**power for power in (15, 14, 13, 12, 11)], blocks=True)
    assert (labels[0], labels[-1]) == ("2^15", "2^11")
    heights = [sum(" ▁▂▃▄▅▆▇█".index(row[column]) for row in rows) for column in range(5)]
    assert heights == sorted(heights, reverse=True) and len(set(heights)) == 5
    assert heights[0] == 40 and heights[-1] > 0


def test_the_curve_shows_zero_and_infinity() -> None:
    rows, _ = rows_from_scales([1024.0, 512.0, 0.0, float("inf"), None, float("nan")], blocks=True)
    assert rows[-1][2] == "0"
    assert rows[0][3] == "∞"
    assert all(row[4:] == "  " for row in rows)


def test_columns_cover_every_step_once() -> None:
    for total in (0, 1, 59, 60, 61, 119, 1000):
        columns = columns_from_steps(total)
        assert len(columns) == min(total, 60)
        assert [step for steps in columns for step in steps] == list(range(total))


def test_sparkline() -> None:
    assert sparkline([3.0, 2.0, 1.0], 10, blocks=True) == "█▅▁"
    assert sparkline([1.0, None, float("inf"), 1.0], 10, blocks=False) == ".??."
    assert sparkline([float("nan")], 10, blocks=True) == ""
    assert len(sparkline([float(n) for n in range(1000)], 30, blocks=True)) == 30


# --- for machines: GitHub's annotations and SARIF -----------------------------------------------------------------
NOTEBOOK = dataclasses.replace(
    samples.SHADOWED, location=Location("a b.ipynb", 2, 5, 2, 9, cell=3), severity=Severity.WARNING, also_seen=()
)


@pytest.mark.parametrize("sample", EVERY)
def test_github_gets_one_command_a_finding(sample: Any) -> None:
    diagnosis = sample()
    lines = github.render(diagnosis).splitlines()
    assert len(lines) == len(diagnosis.findings) + len(diagnosis.crashed)
    assert all(re.match(r"::(error|warning|notice) ([a-zA-Z]+=[^,:]*)(,[a-zA-Z]+=[^,:]*)*::", line) for line in lines)


@pytest.mark.parametrize(
    ("finding", "command"),
    [
        (
            samples.SHADOWED,
            "::error file=train.py,line=12,col=1,endColumn=11,title=MP302 attribute-shadowed-by-wrapper::",
        ),
        (NOTEBOOK, "::warning file=a b.ipynb,title=MP302 attribute-shadowed-by-wrapper::cell 3, line 2: `opt"),
        (
            dataclasses.replace(samples.SHADOWED, location=Location("a,b:c%.py", 1, 2, 4, 3), what_if=True),
            "::notice file=a%2Cb%3Ac%25.py,line=1,endLine=4,title=MP302 attribute-shadowed-by-wrapper::under mixed",
        ),
        (dataclasses.replace(samples.SHADOWED, location=None, message="5%\n::error::"), "5%25%0A::error::%0Afix: Set"),
    ],
)
def test_a_command_for_github(finding: Finding, command: str) -> None:
    assert command in github.render(samples.diagnosis(finding))


@pytest.mark.parametrize("sample", EVERY)
def test_sarif_keeps_to_the_published_schema(sample: Any) -> None:
    text = sarif.render(sample())
    assert text.isascii()
    log = json.loads(text)
    jsonschema.validate(log, SARIF, cls=jsonschema.Draft4Validator, format_checker=jsonschema.FormatChecker())
    (run,) = log["runs"]
    assert len(run["results"]) == len(sample().findings)
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert result["partialFingerprints"]


def test_sarif_says_where_and_what() -> None:
    (run,) = json.loads(sarif.render(samples.diagnosis(samples.SHADOWED, NOTEBOOK)))["runs"]
    line, cell = (result["locations"][0] for result in run["results"])
    assert line["physicalLocation"]["region"] == {
        "startLine": 12,
        "startColumn": 1,
        "endLine": 12,
        "endColumn": 12,
        "snippet": {"text": "opt.epsilon = 1e-4"},
    }
    assert cell["physicalLocation"] == {"artifactLocation": {"uri": "a%20b.ipynb", "uriBaseId": "SRCROOT"}}
    assert cell["message"] == {"text": "cell 3, line 2"}
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    assert run["tool"]["driver"]["rules"][0]["help"]["markdown"] == "# MP302"


def test_sarif_tells_what_was_not_looked_at() -> None:
    unreadable = Finding(
        "It is no text.",
        "Mend it.",
        Location("old.py", 3),
        severity=Severity.ERROR,
        code="MP001",
        name="source-not-readable",
    )
    diagnosis = samples.diagnosis(
        unreadable,
        skipped=(Skipped("source", "r.ipynb is a notebook in R."),),
        crashed=(Crashed("MP302", "in_source", "KeyError"),),
        exit_code=3,
    )
    (invocation,) = json.loads(sarif.render(diagnosis))["runs"][0]["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    told = [(n["level"], n["descriptor"]["id"]) for n in invocation["toolExecutionNotifications"]]
    assert told == [("error", "MP001"), ("error", "MP302"), ("note", "source")]
    assert invocation["toolExecutionNotifications"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_the_terminal_names_cell_and_line() -> None:
    shown = terminal.render(samples.diagnosis(NOTEBOOK))
    assert "  a b.ipynb:cell 3:2:5\n" in shown
    assert concise.render(samples.diagnosis(NOTEBOOK)).startswith("a b.ipynb:cell 3:2:5: MP302 ")
    finding = json.loads(json_reporter.render(samples.diagnosis(NOTEBOOK)))["findings"][0]
    assert (finding["cell"], finding["line"]) == (3, 2)


def test_sights_that_say_the_same_are_told_in_one_line() -> None:
    sights = tuple(AlsoSeen("MP507", stage, "It saturates.") for stage in ("source", "model", "model"))
    finding = dataclasses.replace(samples.SHADOWED, also_seen=sights)
    shown = terminal.render(samples.diagnosis(finding))
    assert shown.count("MP507") == 1
    assert "  also seen in the source and in the model (MP507): It saturates.\n" in shown


def _also_seen(*sights: AlsoSeen, help: str = "") -> list[str]:
    """The finding lies in train.py:12."""
    finding = dataclasses.replace(samples.SHADOWED, also_seen=sights, help=help)
    assert finding.location is not None and (finding.location.path, finding.location.line) == ("train.py", 12)
    shown = terminal.render(samples.diagnosis(finding), width=200)
    return [line.strip() for line in shown.splitlines() if "also seen" in line]


def test_each_stage_names_its_places_once() -> None:
    sights = [AlsoSeen("MP407", "source", "It is gone.", "b.py", line) for line in (13, 14)]
    assert _also_seen(*sights) == ["also seen in the source, b.py:13 and b.py:14 (MP407): It is gone."]


def test_a_sight_that_says_here_says_where() -> None:
    sight = AlsoSeen("MP904", "training", "Layer `a` is made here.", "train.py", 9)
    assert _also_seen(sight) == ["also seen while training, line 9 (MP904): Layer `a` is made here."]
    own = dataclasses.replace(sight, code="MP302")
    assert _also_seen(own) == ["also seen while training, line 9: Layer `a` is made here."]
    assert _also_seen(own, help="Give `a` (line 9) float32.") == []


def test_what_a_message_says_in_another_order_is_not_shown_again() -> None:
    broken = (
        "The loss is inf at step 1: summing numbers up to 58.8 gives 183,767. The largest number of float16 is 65504."
    )
    finding = dataclasses.replace(samples.SHADOWED, message=broken)
    sights = [
        "Here, summing numbers up to 58.8 gives 183,767: the largest float16 number is 65504.",
        "Here, summing numbers up to 71.3 gives 240,112: the largest float16 number is 65504.",
    ]
    told = [AlsoSeen("MP503", "training", text, "train.py", 17) for text in sights]
    shown = terminal.render(samples.diagnosis(dataclasses.replace(finding, also_seen=(told[0],))), width=200)
    assert "also seen" not in shown
    shown = terminal.render(samples.diagnosis(dataclasses.replace(finding, also_seen=(told[1],))), width=200)
    assert "also seen while training (MP503): Here, summing numbers up to 71.3" in shown


def test_what_an_edit_does_is_told_where_the_help_does_not_say_it() -> None:
    safe = Fix("Set it inside", True, ())
    for help, told in [("Set it inside: `a`.", "fixable with --fix"), ("Do it.", "fixable with --fix: Set it inside")]:
        shown = terminal.render(samples.diagnosis(dataclasses.replace(samples.SHADOWED, fix=safe, help=help)))
        assert f"  {told}\n" in shown


@pytest.mark.parametrize(("name", "told"), [(".", "this directory"), ("-", "standard input"), ("a.py", "a.py")])
def test_what_has_no_name_is_called_what_it_is(name: str, told: str) -> None:
    diagnosis = samples.diagnosis()
    only_read = {stage: Stage("skipped", "standard input: source only") for stage in ("model", "training")}
    target = dataclasses.replace(diagnosis.targets[0], id=name, stages=only_read)
    shown = terminal.render(dataclasses.replace(diagnosis, targets=(target,), probes=(), models=()))
    assert shown.startswith(f"✓ {told}: nothing found in the source; no code was run\n")


def test_what_is_suppressed_was_found() -> None:
    headline = terminal.render(dataclasses.replace(samples.healthy(), suppressed=1)).partition("\n")[0]
    assert headline.startswith("✓ train.py: nothing else wrong; ")


def test_of_a_graph_that_was_read_it_is_said_that_it_was_not_run() -> None:
    target = dataclasses.replace(
        samples.healthy().targets[0],
        kind="saved-model",
        stages={
            "model": Stage("done"),
            "training": Stage("skipped", "inspected, not run: it holds a graph and no Keras model"),
        },
    )
    graphs = samples.hostile().graphs
    told = dataclasses.replace(samples.healthy(), targets=(target,), models=(), probes=(), graphs=graphs)
    first = terminal.render(told).splitlines()[0]
    assert "nothing wrong in the graph" in first and "trained" not in first
    assert terminal.render(told).count("not run") == 2  # there, and why


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"),
        (2.91e-11, "2.91e-11"),
        (0.04267, "0.0427"),
        (812.0, "812"),
        (999.7, "1000"),
        (1234.5, "1234"),
        (32768.0, "32768"),
        (110556.3, "110556"),
        (-5123.4, "-5123"),
        (12345678.0, "1.23e+07"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_a_magnitude_has_the_same_digits_in_tables_and_in_the_prose_of_findings(value: float, told: str) -> None:
    assert number_text(value) == told
    assert magnitude_text(value).replace(",", "") == told
