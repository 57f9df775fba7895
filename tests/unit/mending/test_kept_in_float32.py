"""What a program's own average or optimizer keeps over many steps in 16 bits: float32 is proposed and tried."""

from __future__ import annotations

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Diagnosis, Finding, Severity
from mpdoctor.fixes.texts import edited
from mpdoctor.mending.proposals import proposals_from_diagnosis
from mpdoctor.program.source_facts import SourceFacts

pytestmark = pytest.mark.fast

PROGRAM = """import keras
import tensorflow as tf


class Slow(keras.optimizers.Optimizer):
    def build(self, variables):
        super().build(variables)
        self.m = [tf.Variable(tf.zeros(v.shape, tf.float16)) for v in variables]
        self.v = [tf.Variable(tf.zeros(v.shape, dtype="float16")) for v in variables]

    def update_step(self, gradient, variable, learning_rate):
        m, v = self.m[0], self.v[0]
        g = tf.cast(gradient, tf.float16)
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.999 * v + 0.001 * tf.square(g))
        self.assign_sub(variable, tf.cast(m / (tf.sqrt(v) + 1e-8), "float32"))


shadow = tf.Variable(tf.cast(model.weights[0], model.compute_dtype))
shadow.assign(0.999 * shadow + 0.001 * tf.cast(model.weights[0], shadow.dtype))
"""
ALL = PROGRAM.replace("float16", "float32")
ONE = (
    PROGRAM.replace('dtype="float16"', 'dtype="float32"')
    .replace("tf.cast(gradient, tf.float16)", "tf.cast(gradient, tf.float32)")
)  # fmt: skip
SHADOW = PROGRAM.replace("model.compute_dtype", '"float32"')


@pytest.mark.parametrize(
    ("code", "place", "made", "evidence", "wanted"),
    [
        ("MP220", (15, 9), 9, {}, [ONE, ALL]),
        ("MP220", (20, 1), 19, {}, [SHADOW]),
        ("MP502", (16, 52), 8, {"own_optimizer": "Slow"}, [ALL]),
        ("MP502", (16, 52), 8, {}, []),
    ],
)
def test_what_is_kept_is_kept_in_float32(
    code: str, place: tuple[int, int], made: int, evidence: dict[str, object], wanted: list[str]
) -> None:
    found = Finding(
        "",
        "",
        Location("a.py", *place),
        code=code,
        severity=Severity.ERROR,
        stage="source",
        evidence=evidence,
        also_seen=(AlsoSeen(code, "source", "Made here.", "a.py", made),),
    )
    diagnosis = Diagnosis((), (found,), (), (), (), (), (), {}, 0, 1, "", "")
    answers = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", PROGRAM)}).answers
    after = [
        edited(PROGRAM, proposal.edits) for of_one in answers for answer in of_one for proposal in answer.proposals
    ]
    assert after == wanted
