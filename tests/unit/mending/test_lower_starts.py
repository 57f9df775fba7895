"""A mended training that still loses its first steps: it starts at the scale on which it settled, if that helps."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import good_steps, training

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts, OptimizerFacts
from mpdoctor.facts.training import StepFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Edit, Finding, Fix, Probe, Severity, Verdict
from mpdoctor.mending.draft import Draft
from mpdoctor.mending.proposals import proposals_from_diagnosis
from mpdoctor.mending.rounds import Contents, MendLoop, Seen
from mpdoctor.mending.starting_scales import lower_starts
from mpdoctor.program.source_facts import SourceFacts

pytestmark = pytest.mark.fast

PROGRAM = """import keras

model = keras.Sequential([keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(1e-3)
model.compile(optimizer, "mse")
"""
MENDED = PROGRAM.replace("Dense(1)", 'Dense(1, dtype="float32")')
WRAPPED = MENDED.replace(
    "keras.optimizers.Adam(1e-3)",
    "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-3), initial_scale=4.0)",
)
OWN = PROGRAM.replace("Adam(1e-3)", "Adam(1e-3)\noptimizer = keras.mixed_precision.LossScaleOptimizer(optimizer)")
OWN_MENDED = OWN.replace("Dense(1)", 'Dense(1, dtype="float32")')
ADAM = OptimizerFacts("Adam", "keras", made_at=Location("a.py", 4))
BY_COMPILE = OptimizerFacts("LossScaleOptimizer", "keras", is_wrapper=True, wrapped_by_compile=True)
BY_PROGRAM = OptimizerFacts("LossScaleOptimizer", "keras", is_wrapper=True, made_at=Location("a.py", 5))


def mended(program: str, wrapper: OptimizerFacts, needs: str) -> tuple[str, tuple[int, ...]]:
    """The program in the end, and how many steps were skipped in each run. It skips 13 steps unless `needs` stands in
    it, and has a defect as long as its layer has no dtype."""
    Path("a.py").write_text(program)
    skipped: list[int] = []
    model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"), (), (wrapper, ADAM))

    def seen(contents: Contents) -> Seen:
        text = contents.get(Path("a.py").absolute(), program.encode()).decode()
        column = 1 + text.split("\n")[2].find("1)]") + 1
        place = Location("a.py", 3, column, 3, column)
        fix = Fix("Give it a dtype", False, (Edit(place, ', dtype="float32"'),))
        sick = Finding("", "", place, code="MP201", severity=Severity.WARNING, stage="source", fix=fix)
        lost = 0 if needs in text else 13
        far_off = Finding("", "", code="MP910", severity=Severity.INFO, model="m", evidence={"settled_at": 4.0})
        found = (*(() if "float32" in text else (sick,)), *((far_off,) if lost else ()))
        steps = tuple(StepFacts(4.0, number >= lost, None, 1.0) for number in range(50)) if lost else good_steps()
        skipped.append(lost)
        probes = (Probe(training(steps), Verdict.HEALTHY, ""),)
        code = int("float32" not in text)
        return Diagnosis((), found, (("a.py", model),), probes, (), (), (), {}, 0, code, "", ""), {
            "a.py": SourceFacts("a.py", text)
        }

    def read(contents: Contents) -> Seen:
        diagnosis, sources = seen(contents)
        skipped.pop()
        return diagnosis, sources

    draft = Draft()
    course = MendLoop(draft, seen, read, proposals_from_diagnosis).run(at_last=lower_starts)
    assert course.after.is_healthy
    (after,) = [file.after.decode() for file in draft.files(course.after.kept)]
    return after, tuple(skipped)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("program", "wrapper", "needs", "after", "skipped"),
    [
        (PROGRAM, BY_COMPILE, "initial_scale=4.0", WRAPPED, (13, 13, 0)),
        (PROGRAM, BY_COMPILE, "another thing", MENDED, (13, 13, 13)),
        (PROGRAM, BY_COMPILE, "float32", MENDED, (13, 0)),
        (
            OWN, BY_PROGRAM, "initial_scale=4.0",
            OWN_MENDED.replace("Optimizer(optimizer)", "Optimizer(optimizer, initial_scale=4.0)"), (13, 13, 0),
        ),
    ],
)  # fmt: skip
def test_a_lower_start_is_kept_where_fewer_steps_are_skipped(
    program: str, wrapper: OptimizerFacts, needs: str, after: str, skipped: tuple[int, ...]
) -> None:
    assert mended(program, wrapper, needs) == (after, skipped)
