"""Which finding is the primary one: what rules declare, both ways; nearness, merging, order; and nothing is lost."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.facts.location import Location
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.finding import AlsoSeen, Finding, Fix, Severity
from mpdoctor.judging.precedence import Candidates, explains, merged_findings
from mpdoctor.rules.registry import all_rules, codes_and_names

EXPLAINED = [(rule.code, right, nearness) for rule in all_rules() for right, nearness in rule.explains.items()]
CONFIRMED_LIVE = [rule.code for rule in all_rules() if rule.is_confirmed_live]
RAISED = [rule.code for rule in all_rules() if rule.says_that_it_raised]
OF_THE_ERROR = [rule.code for rule in all_rules() if rule.speaks_of_the_error]

pytestmark = pytest.mark.fast


def seen(code: str, line: int | None = 5, stage: str = "source", **more: Any) -> Finding:
    """A finding, by default one that stands in the source on line 5 of train.py."""
    column = more.pop("column", 0)
    path = more.pop("path", "train.py")
    place = None if line is None else Location(path, line, column)
    presented = {"message": f"{code} at {line}", "help": "mend it", "target": "train.py"}
    return Finding(code=code, stage=stage, location=place, **{**presented, **more})


PAIRS = [
    pytest.param(left, right, nearness, id=f"{left}-{right}")
    for left, right, nearness in EXPLAINED
    if nearness not in ("training", "zero")
]


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_an_overflow_does_not_explain_an_error_on_its_line() -> None:
    both = [seen("MP904", 5, "training"), seen("MP901", 5, "training", message="KeyError: 'val_loss'")]
    assert codes(merged_findings(both)) == ["MP901", "MP904"]


@pytest.mark.parametrize("error", ["No gradients provided for any variable: ['kernel:0'].", "Shapes do not fit."])
def test_an_error_that_a_defect_ends_in_is_explained_by_it_on_any_line(error: str) -> None:
    raised = seen("MP901", 9, "training", evidence={"exception": "ValueError", "error": error})
    told = merged_findings([seen("MP404", 5), raised])
    assert codes(told) == (["MP404"] if "gradients" in error else ["MP404", "MP901"])


# --- the table --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("left", "right", "nearness"), PAIRS)
def test_left_explains_right_in_any_order(left: str, right: str, nearness: str) -> None:
    both = [seen(left), seen(right, message="the evidence")]
    for given_order in (both, both[::-1]):
        (spoken,) = merged_findings(given_order)
        assert spoken.code == left
        assert [(also.code, also.text, also.line) for also in spoken.also_seen] == [(right, "the evidence", 5)]


@pytest.mark.parametrize(("left", "right"), [pair for *pair, nearness in EXPLAINED if nearness == "training"])
def test_what_the_training_alone_shows_is_explained_and_what_the_source_shows_is_not(left: str, right: str) -> None:
    speaker = seen(left, 5, stage="training")
    assert codes(merged_findings([speaker, seen(right, 9, stage="training")])) == [left]
    assert codes(merged_findings([speaker, seen(right, 9)])) == [left, right]
    both = merged_findings([speaker, seen(right, 9), seen(right, 11, stage="training")])
    assert codes(both) == [left, right]  # what was seen live is a second sight of what stands in the source


@pytest.mark.parametrize(("left", "right"), [pair for *pair, nearness in EXPLAINED if nearness == "zero"])
def test_what_a_zero_broke_is_explained_on_its_line_and_what_was_too_large_is_not(left: str, right: str) -> None:
    tried = (RemedyFacts("float32-layers", tried="healed", layers=("dense",)),)
    broken = seen(right, stage="training", evidence={"at_zero": True}, remedies=tried)
    for given_order in ([seen(left), broken], [broken, seen(left)]):
        (spoken,) = merged_findings(given_order)
        assert (spoken.code, spoken.remedies) == (left, tried)
    assert codes(merged_findings([seen(left, 9), broken])) == [right, left]
    used_at = (AlsoSeen(left, "source", "It is divided by here.", "train.py", 5),)
    (spoken,) = merged_findings([seen(left, 4, also_seen=used_at), broken])
    assert (spoken.code, spoken.remedies) == (left, tried)
    assert sorted(codes(merged_findings([seen(left), seen(right, stage="training")]))) == sorted([left, right])
    assert not explains(broken, seen(left))


@pytest.mark.parametrize(("left", "right", "nearness"), PAIRS)
def test_right_never_explains_left(left: str, right: str, nearness: str) -> None:
    assert not explains(seen(right), seen(left))


@pytest.mark.parametrize(("left", "right", "nearness"), PAIRS)
def test_how_near_they_must_be(left: str, right: str, nearness: str) -> None:
    elsewhere = [seen(left, 5), seen(right, 9)]
    in_no_line = [seen(left, 5), seen(right, None)]
    in_other_models = [seen(left, 5, model="a"), seen(right, 5, model="b")]
    in_other_targets = [seen(left), seen(right, target="other.py")]
    assert len(merged_findings(elsewhere)) == (1 if nearness == "model" else 2)
    assert len(merged_findings(in_no_line)) == (1 if nearness == "model" else 2)
    assert len(merged_findings(in_other_models)) == (1 if nearness == "line" else 2)
    assert len(merged_findings(in_other_targets)) == 2


@pytest.mark.parametrize(("left", "right", "nearness"), PAIRS)
def test_files_that_no_import_ties_are_about_models_of_their_own(left: str, right: str, nearness: str) -> None:
    elsewhere = [seen(left, path="a.py"), seen(right, path="b.py")]
    assert len(merged_findings(elsewhere, lambda path, other: False)) == 2
    assert len(merged_findings(elsewhere, lambda path, other: True)) == (1 if nearness == "model" else 2)
    in_one_file = [seen(left, path="a.py"), seen(right, path="a.py")]
    assert len(merged_findings(in_one_file, lambda path, other: False)) == 1


def test_no_circle_of_explanations() -> None:
    """Else nobody of it would be told."""
    waiting = {code for *pair, _ in EXPLAINED for code in pair}
    while waiting:
        why = {code: {left for left, right, _ in EXPLAINED if right == code} for code in waiting}
        first = {code for code in waiting if not waiting & why[code]}
        assert first, waiting
        waiting -= first


def test_every_rule_explains_rules_that_there_are() -> None:
    assert {right for _, right, _ in EXPLAINED} <= {code for code, _ in codes_and_names()}
    assert {nearness for *_, nearness in EXPLAINED} == {"line", "model", "training", "zero"}


# --- what ran away ----------------------------------------------------------------------------------------------
def ran_away(code: str, line: int | None = 20, **more: Any) -> Finding:
    return seen(code, line, "training", evidence={"weights_ran_away": True}, **more)


@pytest.mark.parametrize(
    ("findings", "presented"),
    [
        (["MP904", "MP907", "MP903"], ["MP904"]),
        (["MP907", "MP902"], ["MP902"]),
        (["MP905", "MP907"], ["MP907"]),
        (["MP905"], ["MP905"]),
    ],
)
def test_weights_that_ran_away_are_told_once(findings: list[str], presented: list[str]) -> None:
    for order in (findings, findings[::-1]):
        given_lines = [ran_away(code, 20 + len(code)) for code in order]
        (spoken,) = merged_findings(given_lines)
        assert [spoken.code] == presented
        assert {also.code for also in spoken.also_seen} == set(findings) - set(presented)
    two_models = [ran_away(findings[0], 20, model="a"), ran_away("MP903", 21, model="b")]
    assert len(merged_findings(two_models)) == 2


@pytest.mark.parametrize(
    ("evidence", "presented"),
    [
        ({"attribute": "global_clipnorm", "causes_divergence": True}, ["MP302"]),
        ({"attribute": "epsilon", "causes_divergence": False}, ["MP302", "MP902"]),
    ],
)
def test_a_limit_that_is_lost_explains_weights_that_ran_away(evidence: dict[str, Any], presented: list[str]) -> None:
    assert codes(merged_findings([seen("MP302", 12, evidence=evidence), ran_away("MP902", 20)])) == presented


def test_what_was_also_seen_does_not_tell_the_story_again() -> None:
    story = "The training diverges: the largest weight went from 0.5 to 21."
    first = ran_away("MP904", 20, message=f"The output is not finite. {story}")
    (spoken,) = merged_findings([first, ran_away("MP907", 30, message=f"The loss is nan. {story}")])
    assert [also.text for also in spoken.also_seen] == ["The loss is nan."]
    assert merged_findings([ran_away("MP907", 30, message=f"The loss is nan. {story}")])[0].message.endswith(story)


@pytest.mark.parametrize("cause", ["MP904", "MP601", "MP511"])
@pytest.mark.parametrize("code", ["MP902", "MP903", "MP905"])
def test_an_overflow_and_what_came_of_it_are_told_once(cause: str, code: str) -> None:
    consequence = seen(code, 30, "training", evidence={"told_by": cause})
    for order in ((0, 1), (1, 0)):
        both = [seen(cause, 20, "training"), consequence]
        (spoken,) = merged_findings([both[number] for number in order])
        assert (spoken.code, [also.code for also in spoken.also_seen]) == (cause, [code])
    assert codes(merged_findings([consequence])) == [code]
    assert (
        len(merged_findings([seen(cause, 20, "training", model="a"), dataclasses.replace(consequence, model="b")])) == 2
    )


@pytest.mark.parametrize("code", ["MP904", "MP907"])
@pytest.mark.parametrize(("seen_on", "presented"), [(20, 1), (24, 2)])
def test_a_sum_that_breaks_is_told_once_where_the_source_shows_it_too(code: str, seen_on: int, presented: int) -> None:
    fix = Fix("Cast it first", False, ())
    sums = [seen("MP503", 20, fix=fix), seen("MP503", seen_on, "training", message="Here, a sum is inf.")]
    findings = merged_findings([*sums, seen(code, 20, "training")])
    assert len(findings) == presented
    (broken,) = (finding for finding in findings if finding.code == code)
    assert broken.fix is (fix if presented == 1 else None)
    assert [also.code for also in broken.also_seen] == ["MP503"] * (2 if presented == 1 else 0)


@pytest.mark.parametrize("cause", ["MP106", "MP107", "MP204"])
def test_weights_that_stand_still_are_told_once(cause: str) -> None:
    still = seen("MP909", 30, "training", severity=Severity.ERROR, evidence={"told_by": cause})
    (spoken,) = merged_findings([seen(cause, 20, severity=Severity.WARNING), still])
    assert (spoken.code, spoken.severity) == (cause, Severity.ERROR)
    assert [also.code for also in spoken.also_seen] == ["MP909"]
    assert codes(merged_findings([still])) == ["MP909"]


@pytest.mark.parametrize("code", ["MP902", "MP903", "MP905"])
def test_a_loss_that_breaks_by_itself_and_what_came_of_it_are_told_once(code: str) -> None:
    loss = seen("MP907", 24, "training", message="The loss is nan at step 1: exp() of numbers up to 20 gives 5e+08.")
    told = "50 of 50 steps were skipped. In the loss, exp() of numbers up to 20 gives 5e+08 (line 24)."
    skipped = seen(code, 44, "training", message=told, evidence={"told_by": "MP907"})
    [finding] = merged_findings([skipped, loss])
    assert finding.code == "MP907"
    assert [also.text for also in finding.also_seen] == ["50 of 50 steps were skipped."]
    assert codes(merged_findings([skipped])) == [code]


def test_without_weights_that_ran_away_an_overflow_and_the_fall_of_the_scale_are_two_sights() -> None:
    assert codes(merged_findings([seen("MP904", 20, "training"), ran_away("MP903", 21)])) == ["MP904", "MP903"]


@pytest.mark.parametrize("code", ["MP904", "MP902", "MP903", "MP907", "MP905"])
def test_gradients_that_are_never_unscaled_make_weights_run_away(code: str) -> None:
    (spoken,) = merged_findings([ran_away(code), seen("MP402", 5)])
    assert spoken.code == "MP402" and [also.code for also in spoken.also_seen] == [code]
    in_other_lines = codes(merged_findings([seen(code, 20, "training"), seen("MP402", 5)]))
    assert in_other_lines == (["MP402"] if code == "MP902" else ["MP402", code])


@pytest.mark.parametrize(
    ("speaker", "text", "presented"),
    [
        (seen("MP904", 15, "training"), "It starts in layer `a`: squaring (line 15).", "layer `a`: squaring."),
        (seen("MP904", 16, "training"), "It starts in layer `a`: squaring (line 15).", "squaring (line 15)."),
        (seen("MP904", 15, "training"), "squaring (other.py, line 15).", "squaring (other.py, line 15)."),
        (seen("MP904", 15, "training", path="other.py"), "squaring (line 15).", "squaring (line 15)."),
    ],
    ids=["the-same", "another", "in-another-file", "seen-in-another-file"],
)
def test_what_was_also_seen_does_not_repeat_the_line_that_is_shown(speaker: Finding, text: str, presented: str) -> None:
    (spoken,) = merged_findings([speaker, seen("MP907", 30, "training", message=text)])
    assert spoken.also_seen[0].text.endswith(presented)


# --- the line that raised ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.parametrize(
    ("speaker", "presented"),
    [
        (seen("MP304"), 1),
        (seen("MP304", 6), 2),
        (seen("MP304", path="other.py"), 2),
        (seen("MP304", None), 2),
        (seen("MP304", target="other.py"), 2),
        (seen("MP304", 6, also_seen=merged_findings([seen("MP304", 6), seen("MP304", 5, "model")])[0].also_seen), 1),
    ],
    ids=["same-line", "next-line", "other-file", "no-line", "other-target", "a-sight-of-it-there"],
)
def test_what_stands_on_the_raising_line_explains_it(raised: str, speaker: Finding, presented: int) -> None:
    assert len(merged_findings([seen(raised, stage="training"), speaker])) == presented


@pytest.mark.parametrize("stage", ["source", "model"])
def test_a_cross_entropy_is_told_with_the_output_that_it_is_taken_of(stage: str) -> None:
    price, kind = seen("MP201", 3), seen("MP201", 4, evidence={"activation": "softmax"})
    entropy = seen("MP507", 9 if stage == "source" else None, stage, evidence={"activation": "softmax"})
    presented = merged_findings([entropy, price, kind])
    assert [[also.code for also in finding.also_seen] for finding in presented] == [[], ["MP507"]]


@pytest.mark.parametrize("raised", RAISED)
def test_an_error_is_told_with_what_speaks_of_it(raised: str) -> None:
    """Not with what costs digits on the same line, nor with the first of several in the order of their codes."""
    error = seen(raised, stage="training")
    assert codes(merged_findings([error, seen("MP201")])) == sorted(["MP201", raised])
    presented = {
        finding.code: [also.code for also in finding.also_seen]
        for finding in merged_findings([error, seen("MP101"), seen("MP505")])
    }
    assert presented == {"MP101": [], "MP505": [raised]}


def test_two_ends_do_not_explain_each_other() -> None:
    assert codes(merged_findings([seen("MP002"), seen("MP901")])) == ["MP002", "MP901"]


@pytest.mark.parametrize("raised", RAISED)
def test_without_a_line_only_what_speaks_of_the_error_explains_it(raised: str) -> None:
    error = seen(raised, None)
    assert len(merged_findings([error, seen("MP201", None)])) == 2
    assert [len(merged_findings([error, seen(code, None)])) for code in OF_THE_ERROR] == [1] * len(OF_THE_ERROR)
    assert len(merged_findings([error, seen(OF_THE_ERROR[0], 7)])) == 2


@pytest.mark.parametrize("raised", RAISED)
def test_what_reads_the_same_error_explains_it_from_another_line(raised: str) -> None:
    evidence = {"exception": "TypeError", "error": "float16"}
    error = seen(raised, 7, evidence=evidence)
    (spoken,) = merged_findings([error, seen("MP219", 3, evidence=evidence)])
    assert spoken.code == "MP219"
    for other in ({**evidence, "error": "float32"}, {**evidence, "exception": "ValueError"}, {}):
        assert len(merged_findings([error, seen("MP219", 3, evidence=other)])) == 2
    assert len(merged_findings([error, seen("MP201", 3, evidence=evidence)])) == 2  # it read no error


def test_what_is_explained_by_something_explained_is_attached_to_who_speaks() -> None:
    (spoken,) = merged_findings([seen("MP002", stage="model"), seen("MP301"), seen("MP407")])
    assert spoken.code == "MP407"
    assert sorted(also.code for also in spoken.also_seen) == ["MP002", "MP301"]


@pytest.mark.parametrize(("left", "right", "nearness"), PAIRS)
def test_what_would_be_never_hides_what_is(left: str, right: str, nearness: str) -> None:
    assert len(merged_findings([seen(left, what_if=True), seen(right)])) == 2
    assert len(merged_findings([seen(left, what_if=True), seen(right, what_if=True)])) == 1
    assert len(merged_findings([seen(left), seen(right, what_if=True)])) == 1


# --- sights of one defect ---------------------------------------------------------------------------------------
def test_source_model_and_training_are_one_finding() -> None:
    (spoken,) = merged_findings(
        [
            seen("MP201", column=8, message="from the source", evidence={"a": 1}),
            seen("MP201", stage="model", message="from the model", layer="dense", model="m", evidence={"a": 2, "b": 3}),
            seen("MP201", stage="training", message="from the training"),
        ]
    )
    assert (spoken.message, spoken.location) == ("from the source", Location("train.py", 5, 8))
    assert (spoken.layer, spoken.model, spoken.evidence) == ("dense", "m", {"a": 1, "b": 3})
    assert [also.stage for also in spoken.also_seen] == ["model", "training"]


@pytest.mark.parametrize(
    ("two", "presented"),
    [
        ([seen("MP201", column=3), seen("MP201", column=30, message="another layer")], 2),
        ([seen("MP201", column=3), seen("MP201", column=30, help="mend it otherwise")], 2),
        ([seen("MP201", column=3), seen("MP201", column=30)], 1),
        ([seen("MP201", column=3), seen("MP201", column=3)], 1),
        ([seen("MP201", column=3), seen("MP201", column=3, message="what follows")], 1),
        ([seen("MP201"), seen("MP201")], 1),
        ([seen("MP201"), seen("MP201", 6)], 2),
        ([seen("MP201"), seen("MP202")], 2),
        ([seen("MP201"), seen("MP201", target="other.py")], 2),
        ([seen("MP201", None, "model"), seen("MP201", None, "model")], 1),
        ([seen("MP201", None, "model"), seen("MP201", None, "model", message="another layer")], 2),
        ([seen("MP201", None, "model", model="a"), seen("MP201", None, "model", model="b")], 2),
        ([seen("MP201", 5), seen("MP201", None, "model")], 1),
        ([seen("MP201", 5, "model"), seen("MP201", None, "training")], 2),
    ],
    ids=["two-columns", "two-columns-two-remedies", "two-columns-in-the-same-words", "one-column",
         "one-column-two-messages",
         "whole-line", "two-lines", "two-codes", "two-targets", "no-line",
         "no-line-two-messages", "no-line-two-models", "line-in-the-source-and-none-live",
         "line-and-no-line-live"],
)  # fmt: skip
def test_what_is_one_finding(two: list[Finding], presented: int) -> None:
    assert len(merged_findings(two)) == presented


@pytest.mark.parametrize("code", CONFIRMED_LIVE)
@pytest.mark.parametrize("line", [None, 40], ids=["no-line", "other-line"])
def test_a_live_sight_confirms_what_the_source_shows(code: str, line: int | None) -> None:
    live = seen(code, line, "training", message="seen live")
    (spoken,) = merged_findings([seen(code), live])
    assert spoken.location == Location("train.py", 5)
    assert [(also.stage, also.text, also.line) for also in spoken.also_seen] == [("training", "seen live", line)]
    assert len(merged_findings([seen(code), dataclasses.replace(live, target="other.py")])) == 2
    assert codes(merged_findings([live])) == [code]


def test_what_a_run_showed_many_times_on_a_line_is_told_once() -> None:
    at_every_batch = [seen("MP302", 5, "model", message=f"set to {number % 2}") for number in range(6)]
    (finding,) = merged_findings([seen("MP302"), *at_every_batch])
    assert [also.text for also in finding.also_seen] == ["set to 0", "set to 1"]


def test_other_codes_are_not_confirmed_from_elsewhere() -> None:
    assert len(merged_findings([seen("MP302"), seen("MP302", 40, "model")])) == 2


def test_an_output_of_an_own_layer_is_told_once_where_its_class_computes_it() -> None:
    of_class = {"layer_class": "Head"}
    in_source = seen("MP201", evidence=of_class)
    (spoken,) = merged_findings([in_source, seen("MP201", 40, "model", evidence={**of_class, "policy": "half"})])
    assert spoken.location == Location("train.py", 5)
    assert [(also.stage, also.line) for also in spoken.also_seen] == [("model", 40)]
    assert len(merged_findings([in_source, seen("MP201", 40, "model", evidence={"layer_class": "Other"})])) == 2


def test_the_order_of_the_list() -> None:
    expected = [
        seen("MP501", 9, path="a.py"),
        seen("MP101", 2, path="b.py"),
        seen("MP102", 2, path="b.py", column=4),
        seen("MP107", 2, path="b.py", column=5),
        seen("MP103", 2, path="b.py", column=7),
        seen("MP101", 10, path="b.py"),
        seen("MP001", None),
        seen("MP903", None),
    ]
    assert merged_findings(reversed(expected)) == expected


def test_where_a_half_loss_breaks_is_told_where_it_is_scaled_with_what_was_tried() -> None:
    tried = (RemedyFacts("float32-layers", tried="healed", layers=("dense",)),)
    computed = AlsoSeen("MP408", "source", "The loss is computed here.", "train.py", 17)
    scaled = seen("MP408", 31, also_seen=(computed,))
    (spoken,) = merged_findings([seen("MP907", 17, stage="training", remedies=tried), scaled])
    assert (spoken.code, spoken.remedies) == ("MP408", tried)
    assert [also.code for also in spoken.also_seen] == ["MP408", "MP907"]
    another = [seen("MP504", 19), seen("MP907", 19, stage="training", remedies=tried)]
    assert codes(merged_findings([scaled, *another])) == ["MP504", "MP907", "MP408"]


def test_a_sight_that_points_to_the_line_that_speaks_is_left_out() -> None:
    made = AlsoSeen("MP202", "source", "It is made here.", "train.py", 5)
    elsewhere = dataclasses.replace(made, line=3)
    (spoken,) = merged_findings([seen("MP217", 5), seen("MP202", 5, also_seen=(made, elsewhere))])
    assert (spoken.code, [also.line for also in spoken.also_seen]) == ("MP217", [5, 3])


def test_a_warning_that_led_to_an_error_is_an_error() -> None:
    warning = seen("MP106", severity=Severity.WARNING)
    for severity in Severity:
        (spoken,) = merged_findings([warning, seen("MP906", stage="training", severity=severity)])
        assert spoken.severity is (severity if severity.rank > Severity.WARNING.rank else Severity.WARNING)
    (spoken,) = merged_findings([warning, seen("MP906", severity=Severity.ERROR, what_if=True)])
    assert spoken.severity is Severity.WARNING


def test_two_that_explain_each_other_are_told_by_the_one_where_it_begins() -> None:
    """A fixed scale makes the scaled loss inf where it is cast: MP911 explains MP907, and sends the reader there."""
    begins = seen("MP907", 46, "training")
    sends = seen("MP911", 48, "training", evidence={"told_by": "MP907"})
    for order in ([begins, sends], [sends, begins]):
        (spoken,) = merged_findings(order)
        assert spoken.code == "MP907" and [also.code for also in spoken.also_seen] == ["MP911"]


# --- nothing is lost --------------------------------------------------------------------------------------------
ALL_CODES = sorted({code for *pair, _ in EXPLAINED for code in pair} | {*CONFIRMED_LIVE, *RAISED, "MP605"})
FINDINGS = st.builds(
    seen,
    st.sampled_from(ALL_CODES),
    st.none() | st.integers(1, 3),
    st.sampled_from(["source", "model", "training"]),
    column=st.sampled_from([0, 4, 9]),
    path=st.just("train.py"),
    model=st.none() | st.sampled_from(["a", "b"]),
    target=st.sampled_from(["train.py", "other.py"]),
    message=st.sampled_from(["one layer", "another layer"]),
    what_if=st.booleans(),
    evidence=st.fixed_dictionaries(
        {}, optional={"told_by": st.sampled_from(["MP904", "MP907"]), "weights_ran_away": st.booleans()}
    ),
)


def place_of(finding: Any) -> tuple[Any, ...]:
    place = finding.location
    return (place.path, place.line) if place else (None, None)


@given(st.lists(FINDINGS, max_size=12))
def test_no_defect_is_lost(findings: list[Finding]) -> None:
    """Every code at its line is told, or stands in the evidence of what is told about the same target."""
    presented = merged_findings(findings)
    for finding in findings:
        place = place_of(finding)
        of_target = [other for other in presented if other.target == finding.target]
        assert any(
            (other.code, place_of(other)) == (finding.code, place)
            or any((also.code, also.path, also.line) == (finding.code, *place) for also in other.also_seen)
            for other in of_target
        ), (finding, presented)


@given(st.lists(FINDINGS, max_size=8))
def test_whoever_explains_a_finding_is_asked(findings: list[Finding]) -> None:
    candidates = Candidates(findings)
    for finding in findings:
        assert {i for i, other in enumerate(findings) if explains(other, finding)} <= set(candidates.of(finding))


def test_thousands_of_findings_are_settled_at_once() -> None:
    started = time.process_time()
    assert len(merged_findings(seen("MP207" if line % 2 else "MP202", line) for line in range(8000))) == 8000
    assert time.process_time() - started < 10  # 40 s where each was asked about each other


@given(st.lists(FINDINGS, max_size=8))
def test_no_real_defect_becomes_a_what_if(findings: list[Finding]) -> None:
    """What a program has as it stands fails the run, whatever a forced policy would show."""
    real = [finding for finding in findings if not finding.what_if]
    assert any(not finding.what_if for finding in merged_findings(real + [f for f in findings if f.what_if])) == bool(
        real
    )


@pytest.mark.parametrize(
    ("stage", "tried", "advice"),
    [("model", "healed", "tried it"), ("model", "failed", "mend it"), ("source", "healed", "mend it")],
)
def test_what_a_training_proved_is_advised_before_what_the_model_alone_shows(
    stage: str, tried: Any, advice: str
) -> None:
    remedies = (RemedyFacts("float32-layers", tried=tried, layers=("dense",)),)
    both = [seen("MP601", stage=stage), seen("MP601", stage="training", help="tried it", remedies=remedies)]
    (spoken,) = merged_findings(both)
    assert spoken.help == advice
