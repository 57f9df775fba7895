"""Remedies are tried where a number of the step's own broke it, nowhere else; and what comes of them is told."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from checking import needs_keras
from samples import training

from mpdoctor.examination.event_reader import event_from_line
from mpdoctor.examination.seen import Seen
from mpdoctor.examiner.protocol.event_kinds import NO_MODEL, Model, Remedies, Training
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import CulpritFacts, GradientCulpritFacts, OperationFacts, TensorFacts
from mpdoctor.progress import SilentProgress

OVERFLOW = OperationFacts("Square", "layer", "float16", "inf", 300.0, in_float32=9e4)
OUTPUT = TensorFacts("square", "Square", "float16", (2,), 0.0, 0.0, 0.0, 0.0, 1.0)
HEALED = RemedyFacts("float32-layers", "healed", ("square",), (None,), batches=1)


def in_layer(**more: Any) -> dict[str, Any]:
    return {"culprit": CulpritFacts(0, OUTPUT, operation=dataclasses.replace(OVERFLOW, **more))}


def on_the_way_back(without_scale: bool | None) -> dict[str, Any]:
    return {"gradient_culprit": GradientCulpritFacts(0, "kernel", operation=OVERFLOW, without_scale=without_scale)}


@needs_keras("3")
@pytest.mark.parametrize(
    ("found", "tried"),
    [
        ({}, False),
        (in_layer(), True),
        ({"loss_culprit": OVERFLOW}, True),
        (on_the_way_back(True), True),
        (on_the_way_back(False), False),
        (on_the_way_back(None), False),
        (in_layer(given="data"), False),
        (in_layer(given="labels"), False),
        (in_layer(given="constant"), True),
        (in_layer(name="ReadVariableOp"), False),
        (in_layer(in_float32=300.0), False),  # a kernel of this device lost it
    ],
)
def test_which_failures_are_a_matter_of_precision(found: dict[str, Any], tried: bool) -> None:
    """Of an eager loop here, whose step nobody can repeat; a healthy training has found nothing, and costs nothing."""
    trying = importlib.import_module("mpdoctor.examiner.probe.tried_remedies")
    culprits = {"culprit": None, "loss_culprit": None, "gradient_culprit": None, **found}
    remedies = trying.tried_remedies(None, None, SimpleNamespace(failing=None, fixed_scale=None, **culprits)).remedies
    assert [remedy.tried for remedy in remedies] == ["not-tried"] * tried


def test_a_fixed_scale_that_overflows_alone_is_lowered_instead() -> None:
    trying = importlib.import_module("mpdoctor.examiner.probe.tried_remedies")
    found = {"culprit": None, "loss_culprit": None, **on_the_way_back(False)}
    sick = SimpleNamespace(failing=None, fixed_scale=2.0**30, **found)
    (remedy,) = trying.tried_remedies(None, None, sick).remedies
    assert (remedy.kind, remedy.tried) == ("smaller-scale", "not-tried")


def seen(*events: Any) -> Seen:
    found = Seen()
    for event in (Model(1, NO_MODEL), *events):
        found.take(event, SilentProgress())
    return found


def test_they_belong_to_the_training_that_was_told_before() -> None:
    facts = dataclasses.replace(training(()), model=NO_MODEL)
    found = seen(Training(1, facts), Training(1, facts), Remedies(-2, (HEALED,)))
    assert [told.remedies for told in found.trainings] == [(HEALED,), ()]


@pytest.mark.parametrize("which", [0, -1, 5])
def test_those_of_no_training_are_passed_over(which: int) -> None:
    found = seen(Remedies(which, (HEALED,)))
    assert (found.trainings, found.passed_over) == ([], 1)


@pytest.mark.parametrize(("tried", "read"), [("healed", True), ("cured", False)])
def test_an_event_says_one_of_three_things(tried: str, read: bool) -> None:
    line = f'{{"event": "Remedies", "training": -1, "tried": [{{"kind": "float32-layers", "tried": "{tried}"}}]}}'
    assert (event_from_line(line.encode()) is not None) is read
