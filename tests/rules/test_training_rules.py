"""Rules over a short training, each held to a table of hand-written facts: what it says, and where it is silent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from samples import good_steps, layer, model, training
from training_facts import (
    APPLIED_AT,
    HALF_LABELS,
    KERAS2,
    KERAS3,
    LABELS,
    MOVES,
    PURE,
    SILENT,
    broken,
    culprit,
    dependence,
    depends,
    diverging,
    from_scale,
    in_loss,
    infinite_loss,
    of_adam,
    on_the_way_back,
    operation,
    said,
    skipped,
    stands_still,
)
from training_rows import gradients, layers, loops, losses, scales, weights

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts
from mpdoctor.facts.reference import (
    ReferenceFacts,
)
from mpdoctor.facts.training import (
    GrowthFacts,
    StepFacts,
)
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.semantics.live.broken_operations import beside_float32
from mpdoctor.semantics.live.not_measured import not_looked_in

pytestmark = pytest.mark.fast

# (code, id, facts, what the message or the help holds; SILENT: the rule says nothing)
TABLE = [*gradients.ROWS, *layers.ROWS, *loops.ROWS, *losses.ROWS, *scales.ROWS, *weights.ROWS]


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [(code, facts, words) for code, _, facts, words in TABLE],
    ids=[f"{code}-{name}" for code, name, _, _ in TABLE],
)
def test_a_rule_speaks_or_is_silent(code: str, facts: dict[str, Any], words: tuple[str, ...] | str) -> None:
    found = said(code, **facts)
    if words == SILENT:
        assert found == []
        return
    (finding,) = found
    text = f"{finding.message} {finding.help}"
    assert [word for word in words if word not in text] == [], text
    assert (finding.code, finding.stage, finding.model) == (code, "training", "train.py#1")
    assert finding.location is not None
    assert "None" not in text
    assert "nan" not in text.replace("_no_nan", "")


@pytest.mark.parametrize("code", sorted({row[0] for row in TABLE}))
def test_every_rule_speaks_somewhere_and_is_silent_elsewhere(code: str) -> None:
    words = [row[3] for row in TABLE if row[0] == code]
    assert SILENT in words
    assert any(word != SILENT for word in words)


@pytest.mark.parametrize("code", ["MP401", "MP912"])
def test_a_loop_is_shown_where_its_gradients_arrive(code: str) -> None:
    assert said(code, **depends(-1))[0].location == APPLIED_AT


def test_a_fit_without_a_line_of_its_own_is_shown_at_its_call() -> None:
    given = training(good_steps(), scale_dependence=dependence(-1.0))
    (finding,) = findings_from_facts("in_training", given, KERAS3, lambda rule: rule.code == "MP912")
    assert isinstance(finding, Finding)
    assert finding.location == given.model.call.location


@pytest.mark.parametrize("code", ["MP902", "MP903"])
def test_the_first_variable_and_layer_are_the_evidence(code: str) -> None:
    keras = KERAS2 if code == "MP902" else KERAS3
    (finding,) = said(code, **{**skipped(50, keras), **culprit()})
    assert finding.evidence == {
        "first_nonfinite_gradient": "dense/kernel",
        "first_nonfinite_layer": "square",
        "told_by": "MP904",
    }


def test_what_led_up_to_an_overflow_is_the_evidence() -> None:
    (finding,) = said("MP904", **culprit())
    assert finding.evidence["frames"] == ["dense (Dense) float16, up to 812"]
    assert (finding.evidence["step"], finding.evidence["device"]) == (4, "CPU")
    assert (finding.layer, finding.location) == ("square", Location("train.py", 9))


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("Log", {"holds_zero": True}, "an epsilon such as 1e-7"),
        ("RealDiv", {"holds_zero": True}, "an epsilon such as 1e-7"),
        ("SqrtGrad", {"holds_zero": True}, "an epsilon such as 1e-7"),
        ("Log", {"result": "nan"}, "tf.maximum(x, 1e-7)"),
        ("Sqrt", {"result": "nan"}, "tf.maximum(x, 1e-7)"),
        ("Exp", {}, "input smaller"),
        ("Square", {}, "input smaller"),
    ],
)
def test_float32_is_no_remedy_for_what_breaks_in_float32(name: str, more: dict[str, Any], words: str) -> None:
    (finding,) = said("MP907", **in_loss(name, dtype="float32", **more))
    assert words in finding.help
    assert "tf.float32" not in finding.help
    assert "float16" not in finding.help


@pytest.mark.parametrize(
    ("code", "facts", "line"),
    [
        ("MP904", broken("Square"), 6),  # of the operation
        ("MP904", broken("Square", location=None), 9),  # of the layer: what broke is no line of the user's
        ("MP905", on_the_way_back(), 6),
        ("MP905", on_the_way_back(location=None), 12),  # of the training call
        ("MP907", in_loss("Log"), 6),
        ("MP907", in_loss("Log", location=None), 12),
    ],
)
def test_which_line_is_shown(code: str, facts: dict[str, Any], line: int) -> None:
    call = CallFacts("fit", Location("train.py", 12))
    (finding,) = said(code, **{**facts, "model": dataclasses.replace(model(), call=call)})
    assert finding.location is not None and finding.location.line == line
    assert [(seen.line, seen.text) for seen in finding.also_seen] == (
        [(9, "Layer `square` is made here.")] if (code, line) == ("MP904", 6) else []
    )


@pytest.mark.parametrize(
    ("own", "severity"), [(24, Severity.WARNING), (26, Severity.WARNING), (40, Severity.INFO), (None, Severity.INFO)]
)
def test_a_script_that_trains_next_to_nothing_is_warned(own: int | None, severity: Severity) -> None:
    (found,) = said("MP910", **from_scale(2.0**40, 25), script_steps=own)
    assert found.severity is severity


@pytest.mark.parametrize(
    ("applied", "weight", "loss", "diverges"),
    [
        (False, 24.5, 232_118.0, True),
        (True, 24.5, 232_118.0, False),  # perhaps that batch alone is far beyond the others, and has moved them
        (False, 2.4, 232_118.0, False),
        (False, 24.5, 60.0, False),
    ],
)
def test_a_single_leap_to_a_skipped_step_is_the_rates(
    applied: bool, weight: float, loss: float, diverges: bool
) -> None:
    steps = tuple(StepFacts(32768.0, applied or n != 2, None, 10.9 if n < 2 else loss) for n in range(20))
    seen = training(steps, growth=GrowthFacts(0.54, ((2, loss, weight),), 5.0))
    assert seen.diverges == diverges


@pytest.mark.parametrize(
    ("scale", "dtype", "compared", "told"),
    [
        (1.0, "float16", False, ["MP906"]),
        (128.0, "float16", False, ["MP906"]),
        (256.0, "float16", False, []),
        (1.0, "bfloat16", False, []),
        (1.0, "float16", True, []),
        (None, "float16", False, []),
        (0.0, "float16", False, []),  # nothing is below it: MP310, MP903
    ],
)
def test_a_low_loss_scale_is_not_called_looked_at(
    scale: float | None, dtype: str, compared: bool, told: list[str]
) -> None:
    steps = tuple(StepFacts(scale, True, None, 1.0) for _ in range(9))
    trained = {
        "model": model(layer("dense", policy=f"mixed_{dtype}")),
        "reference": ReferenceFacts(dtype) if compared else None,
    }
    assert [code for code, _ in not_looked_in(training(steps, **trained))] == told


@pytest.mark.parametrize(
    ("facts", "ran_away"),
    [
        (diverging(culprit()), True),
        (diverging(culprit(), scaled_gradients=True), True),
        (diverging(culprit(), rises=((3, 515.0, 3.0),)), False),
        (culprit(), False),
    ],
    ids=["diverging", "gradients-left-scaled", "one-leap", "no-growth"],
)
def test_weights_that_ran_away_are_marked_as_such(facts: dict[str, Any], ran_away: bool) -> None:
    for code in ("MP904", "MP907"):
        (found,) = said(code, **{**facts, "steps": infinite_loss()["steps"]})
        assert found.evidence.get("weights_ran_away", False) is ran_away


NO_SCALE = {"steps": tuple(StepFacts(None, True) for _ in range(50))}
ROUNDED = {"update": 6.3e-6, "variable": "dense/kernel"}


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({**stands_still(0.01, 0.0, factor=256.0), **NO_SCALE}, "MP106"),
        (stands_still(0.01, 0.0, factor=65536.0), None),
        ({**stands_still(0.01, 0.0, most=4.3e9), **NO_SCALE}, None),
        ({**stands_still(0.0, 0.0, factor=256.0), **NO_SCALE}, None),
        ({**PURE, **stands_still(0.01, 0.5, dtype="float16", **ROUNDED)}, "MP107"),
        ({"model": model(layer("dense")), **stands_still(0.01, 0.5, dtype="float16", **ROUNDED)}, "MP204"),
        (stands_still(0.01, 0.5, dtype="float32", **ROUNDED), None),
        ({**of_adam(0.999), **stands_still(0.01, 0.5, dtype="bfloat16", **MOVES)}, "MP107"),
        ({**of_adam(0.99), **stands_still(0.01, 0.5, dtype="bfloat16", **MOVES)}, None),
    ],
    ids=[
        "not-scaled",
        "scaled",
        "no-underflow",
        "no-rate",
        "pure-policy",
        "half-weight",
        "float32-weight",
        "rounded-beta-2",
        "beta-2-below-1",
    ],
)
def test_weights_that_stand_still_are_told_by_their_cause(facts: dict[str, Any], rule: str | None) -> None:
    (found,) = said("MP909", **facts)
    assert found.evidence.get("told_by") == rule


@pytest.mark.parametrize("more", [{"masked": True}, {"given": "data"}, {"result": "inf"}])
def test_only_finite_logits_show_that_a_label_is_wrong(more: dict[str, Any]) -> None:
    (finding,) = said("MP907", **in_loss(LABELS, **{"dtype": "float32", "result": "nan", "in_float32": None, **more}))
    assert "label names no class" not in finding.message


@pytest.mark.parametrize(("where", "ends"), [("loss", "where fit() is given them)"), ("layer", "before they are cast")])
def test_in_a_loss_the_numbers_that_are_cast_are_labels_or_weights(where: Any, ends: str) -> None:
    beside = beside_float32(operation("Cast", where=where))
    assert beside is not None
    assert beside.endswith(ends)


def test_labels_that_a_cast_to_float16_made_infinite_are_told_by_the_cast() -> None:
    facts = {**in_loss("Sub", given="labels"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))}
    (found,) = said("MP907", **facts)
    assert found.evidence["told_by"] == "MP603"
    (found,) = said("MP907", **in_loss("Sub", given="labels"))
    assert "told_by" not in found.evidence
