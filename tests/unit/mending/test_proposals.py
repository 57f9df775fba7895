"""What a diagnosis proposes: the edits of rules, remedies that healed, and what may be tried where there is neither."""

from __future__ import annotations

import dataclasses

import pytest
from samples import training

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts, OptimizerFacts
from mpdoctor.facts.reference import ComparedStep, ReferenceFacts, ScaleRoom
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import GradientCulpritFacts, OperationFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Edit, Finding, Fix, Probe, Severity, Verdict
from mpdoctor.fixes.texts import edited
from mpdoctor.mending.proposals import proposals_from_diagnosis
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.policies import under_float32

pytestmark = pytest.mark.fast

TEXT = """class Outer(Layer):
    def __init__(self):
        super().__init__()
        self.inner = Dense(3)

    def call(self, x):
        return self.inner(x) * 2

outer = Outer()
head = Dense(1)
optimizer = Wrapper(Adam(), dynamic=False)
size = BatchNormalization(axis=1)
import tensorflow as tf
"""
SOURCES = {"a.py": SourceFacts("a.py", TEXT)}


def layer(path: str, line: int, kind: str = "Dense", **given: object) -> LayerFacts:
    policy = "mixed_float16", "float16", "float32"
    return LayerFacts(path, kind, *policy, made_at=Location("a.py", line), **given)  # type: ignore[arg-type]


LAYERS = (
    layer("outer", 9, "Outer", own_class=True, class_location=Location("a.py", 1)),
    layer("outer/inner", 4),
    layer("head", 10, is_output=True, variables=(("float32", 4, True),)),
    layer("size", 12, "BatchNormalization", variables=(("float32", 4, True),)),
)
OPTIMIZER = OptimizerFacts("Wrapper", "keras", is_wrapper=True, made_at=Location("a.py", 11))
MODEL = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"), LAYERS, (OPTIMIZER,))
FIX = Fix("Write x", True, (Edit(Location("a.py", 10, 1, 10, 5), "x"),))


def finding(code: str, **given: object) -> Finding:
    told = {"stage": "training", "severity": Severity.ERROR, **given}
    return Finding("", "", code=code, **told)  # type: ignore[arg-type]


def remedy(tried: str, *paths: str, kind: str = "float32-layers") -> RemedyFacts:
    lines = {known.path: known.made_at for known in LAYERS}
    return RemedyFacts(kind, tried, paths, tuple(map(lines.get, paths)))  # type: ignore[arg-type]


def answers(*findings: Finding, live: bool = True) -> list[list[list[tuple[str, str]]]]:
    """Of each finding, of each answer to it, the (title, texts) of its proposals."""
    models = (("a.py", MODEL),) if live else ()
    diagnosis = Diagnosis((), findings, models, (), (), (), (), {}, 0, 1, "", "")
    return [
        [
            [(proposal.title, "".join(edit.text for edit in proposal.edits)) for proposal in answer.proposals]
            for answer in of_one
        ]
        for of_one in proposals_from_diagnosis(diagnosis, SOURCES).answers
    ]


INNER = ("`outer/inner` computes in float32", ', dtype="float32"')
OUTER = ("`outer` computes in float32", 'dtype="float32"')
HEAD = ("`head` computes in float32", ', dtype="float32"')


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (finding("MP101", fix=FIX), [[[("Write x", "x")]]]),
        (finding("MP101", fix=FIX, severity=Severity.INFO), []),
        (finding("MP101", fix=FIX, what_if=True), []),
        (finding("MP904", remedies=(remedy("healed", "outer/inner", "head"),)), [[[INNER, HEAD]]]),
        (finding("MP904", layer="head", remedies=(remedy("failed", "head"),)), []),
        (finding("MP904", fix=FIX, remedies=(remedy("healed", "head"),)), [[[HEAD], [("Write x", "x")]]]),
        (finding("MP907", remedies=(remedy("healed", kind="float32-loss"),)), [[[HEAD]]]),
        (finding("MP408"), [[[HEAD]]]),
        (finding("MP911"), [[[("Leave `dynamic` to Keras", "")]]]),
        (finding("MP911", remedies=(remedy("healed", kind="smaller-scale"),)), [[[("Leave `dynamic` to Keras", "")]]]),
        (finding("MP909", evidence={"scale_too_small": True}), [[[("Leave `dynamic` to Keras", "")]]]),
        (finding("MP909"), []),
        (finding("MP216", layer="outer/inner"), [[[INNER], [OUTER, INNER]]]),
        (finding("MP216", layer="outer/inner", stage="source"), []),
        (finding("MP216", stage="source", location=Location("a.py", 10, 8, 10, 16)), [[[HEAD]]]),
        (finding("MP201", layer="head", stage="source"), [[[HEAD]]]),
        (finding("MP201", stage="source"), []),
        (finding("MP216", stage="source", location=Location("a.py", 11, 13, 11, 43)), []),
        (finding("MP908", evidence={"healing_layers": ["outer/inner", "head"]}), [[[INNER, HEAD]]]),
        (finding("MP908"), []),  # no layer alone heals it
        (finding("MP601", layer="outer/inner"), [[[INNER], [OUTER, INNER]]]),
        (finding("MP601", layer="head"), []),  # which would learn from numbers that are as large in float32
        (finding("MP601", layer="size"), [[[("`size` computes in float32", ', dtype="float32"')]]]),
        (finding("MP218", layer="outer"), [[[("Cast what `Outer.call` returns", "tf.cast(, self.compute_dtype)")]]]),
        (finding("MP218", layer="outer/inner"), []),  # in float32 it would return what it returns now
        (finding("MP605", layer="head"), []),  # nothing that float32 may mend
    ],
)
def test_what_is_proposed(found: Finding, wanted: list[object]) -> None:
    assert answers(found) == wanted


CLIPPED = """optimizer = Wrapper(Adam(0.1))

def step(gradients):
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    gradients = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(gradients)
"""
TWICE = """def step(tape):
    grads = optimizer.get_unscaled_gradients(tape.gradient())
    keep(grads)
    kept = optimizer.get_unscaled_gradients([total.read_value() for total in sums])
    optimizer.apply_gradients(kept)
"""
ROOT = "def call(x):\n    return tf.sqrt({})\n"


@pytest.mark.parametrize(
    ("code", "text", "line", "operation", "after"),
    [
        (
            *("MP405", CLIPPED, 6, ""),
            CLIPPED.replace("0.1)", "0.1, global_clipnorm=1.0)").replace(
                "    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)\n", ""
            ),
        ),
        ("MP405", CLIPPED.replace("0.1)", "0.1, clipnorm=1.0)"), 6, "", None),
        ("MP405", CLIPPED.replace("    gradients, _", "    gradients, norm"), 6, "", None),
        ("MP405", CLIPPED.replace("1.0)\n", "LIMIT)\n"), 6, "", None),
        ("MP405", CLIPPED.replace("def step", "def other(g):\n    apply(g)\n\n\ndef step"), 4, "", None),
        (
            *("MP403", TWICE, 5, ""),
            TWICE.replace("optimizer.get_unscaled_gradients([total", "[total").replace("sums])", "sums]"),
        ),
        ("MP403", TWICE.replace("kept = optimizer", "kept = another"), 5, "", None),
        ("MP403", TWICE.replace("grads = optimizer.get_unscaled_gradients", "grads = list"), 5, "", None),
        ("MP905", ROOT.format("x"), 2, "SqrtGrad", ROOT.format("x + 1e-4")),
        ("MP905", ROOT.format("a if b else c"), 2, "SqrtGrad", ROOT.format("(a if b else c) + 1e-4")),
        ("MP905", ROOT.format("tf.sqrt(x)"), 2, "SqrtGrad", None),
        ("MP905", ROOT.format("x"), 2, "MatMul", None),
        ("MP907", "loss = tf.math.log(p)", 1, "Log", "loss = tf.math.log(p + 1e-7)"),
        ("MP907", "loss = tf.math.log(p)", 2, "Log", None),
    ],
)
def test_what_the_running_program_showed(code: str, text: str, line: int, operation: str, after: str | None) -> None:
    broke = OperationFacts(operation, "gradient", "float16", "inf", location=Location("a.py", line))
    seen = training((), gradient_culprit=GradientCulpritFacts(0, "kernel", operation=broke))
    found = finding(code, model=seen.model.id, location=Location("a.py", line), evidence={"operation": operation})
    links = (OPTIMIZER, OptimizerFacts("Adam", "keras", made_at=Location("a.py", 1)))
    model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"), (), links)
    probes = (Probe(seen, Verdict.OVERFLOWING, ""),)
    diagnosis = Diagnosis((), (found,), (("a.py", model),), probes, (), (), (), {}, 0, 1, "", "")
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
    edits = [
        edit for answers in answers_to for answer in answers for proposal in answer.proposals for edit in proposal.edits
    ]
    assert (edited(text, edits) if edits else None) == after


BELOW = "import tensorflow as tf\n\n\ndef loss(y, p):\n    d = p - y\n    return tf.sqrt({})\n"
NAMED = (
    "import tensorflow as tf\n\n\ndef loss(y, p):\n    y, p = tf.cast(y, {}), tf.cast(p, dtype={})\n"
    "    return tf.math.log(p - y, 0)\n\n\nother = tf.cast(3, tf.float16)\n"
)
HALVES, SINGLES = ("tf.float16", '"float16"'), ("tf.float32", '"float32"')


@pytest.mark.parametrize(
    ("text", "operation", "result", "after"),
    [
        (BELOW.format("d + 1e-6"), "Sqrt", "nan", BELOW.format("tf.maximum(d + 1e-6, 1e-7)")),
        (BELOW.format("d"), "Sqrt", "inf", None),  # not of a negative number
        (BELOW.format("d").replace("import tensorflow as tf", "tf = 0"), "Sqrt", "nan", None),
        (NAMED.format(*HALVES), "Log", "-inf", NAMED.format(*SINGLES)),
        (NAMED.format("p.dtype", "tf.int32"), "Log", "-inf", None),
    ],
)
def test_what_broke_in_a_loss_is_kept_above_0_or_cast_to_float32(
    text: str, operation: str, result: str, after: str | None
) -> None:
    place = Location("a.py", 6)
    seen = training((), loss_culprit=OperationFacts(operation, "loss", "float16", result, location=place))
    found = finding("MP907", model=seen.model.id, location=place, evidence={"operation": operation})
    probes = (Probe(seen, Verdict.NOT_FINITE, ""),)
    diagnosis = Diagnosis((), (found,), (), probes, (), (), (), {}, 0, 1, "", "")
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
    edits = [edit for answers in answers_to for one in answers for proposal in one.proposals for edit in proposal.edits]
    assert (edited(text, edits) if edits else None) == after


KEEPS = "`head` computes in float32"


@pytest.mark.parametrize(
    ("made", "in_force", "room", "factor", "wanted"),
    [
        ("Wrapper(Adam(), initial_scale=1.0)", 1.0, (2.0**9, 2.0**19), False, "Leave `initial_scale` to Keras"),
        ("Wrapper(Adam())", 2.0**15, (2.0**18, 2.0**24), False, "Give the optimizer initial_scale=2.0**20"),
        (
            "Wrapper(Adam(loss_scale_factor=8))",
            8.0,
            (2.0**18, 2.0**24),
            True,
            "Give the optimizer loss_scale_factor=2.0**20",
        ),
        ("Wrapper(Adam())", 2.0**15, (2.0**18, 2.0**19), False, KEEPS),  # no scale fits
        ("Wrapper(Adam())", None, (2.0**18, 2.0**24), False, None),  # nothing is scaled
    ],
)
def test_what_keeps_the_gradients(
    made: str, in_force: float | None, room: tuple[float, float], factor: bool, wanted: str | None
) -> None:
    reference = ReferenceFacts("float16", (ComparedStep("late", 0, in_force, 0.4, (), (), ""),), ScaleRoom(*room, 12))
    seen = training((), reference=reference, uses_loss_scale_factor=factor, dynamic=not factor)
    links = (OPTIMIZER, OptimizerFacts("Adam", "keras", made_at=OPTIMIZER.made_at))
    seen = dataclasses.replace(seen, model=dataclasses.replace(seen.model, optimizer=links))
    found = finding("MP906", model=seen.model.id, layer="head")
    probes = (Probe(seen, Verdict.HEALTHY, ""),)
    diagnosis = Diagnosis((), (found,), (("a.py", MODEL),), probes, (), (), (), {}, 0, 1, "", "")
    text = TEXT.replace("Wrapper(Adam(), dynamic=False)", made)
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
    assert [proposal.title for answers in answers_to for answer in answers for proposal in answer.proposals] == (
        [wanted] if wanted else []
    )


SPECTRUM = """import tensorflow as tf

@register()
class Mix(Layer):
    def call(self, x{given}):
        \"\"\"Mixes.\"\"\"
        y = tf.signal.rfft({made})
        return tf.abs(y)

mix = Mix()
"""
WIDE = SPECTRUM.replace("        y", "        x = tf.cast(x, tf.float32)\n        y").replace(
    "tf.abs(y)", "tf.cast(tf.abs(y), self.compute_dtype)"
)


@pytest.mark.parametrize(
    ("given", "made", "returned", "is_inside"),
    [
        ("", "x", "tf.abs(y)", True),
        (", training=None", "x", "tf.abs(y)", True),
        (", context", "x", "tf.abs(y)", False),  # which of them meets what it gives
        ("", "self.dense(x)", "tf.abs(y)", False),  # casts its input to 16 bits again
        ("", "x * tf.Variable(3.0)", "tf.abs(y)", False),
        ("", "x", "(y, x)", False),
    ],
)
def test_where_16_bits_raise_in_a_layers_call_it_computes_in_float32_alone(
    given: str, made: str, returned: str, is_inside: bool
) -> None:
    text, wide = (one.format(given=given, made=made).replace("tf.abs(y)", returned) for one in (SPECTRUM, WIDE))
    found = finding("MP211", location=Location("a.py", 7), stage="source")
    diagnosis = Diagnosis((), (found,), (), (), (), (), (), {}, 0, 1, "", "")
    ((first, *_),) = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
    edits = [edit for proposal in first.proposals for edit in proposal.edits]
    assert edited(text, edits) == (wide if is_inside else text.replace("Mix()", 'Mix(dtype="float32")'))


HALF, OTHER = {"painted": "float16", "self.real": "float32"}, {"painted": "float32", "self.real": "bfloat16"}
CAST = "tf.cast({}, tf.float32)"
MET = "import tensorflow as tf\nboth = tf.concat([painted, self.real], 0)\n"


@pytest.mark.parametrize(
    ("code", "line", "dtypes", "after"),
    [
        (
            "MP901",
            2,
            {"painted": "float16", "self.real": "float32"},
            MET.replace("painted", CAST.format("painted")),
        ),
        (
            "MP505",
            2,
            {"painted": "float32", "self.real": "bfloat16"},
            MET.replace("self.real", CAST.format("self.real")),
        ),
        ("MP901", 1, HALF, None),
        ("MP901", 2, {"painted": "float32", "self.real": "float64"}, None),
        ("MP901", 2, None, None),
        ("MP605", 2, HALF, None),
    ],
)
def test_what_met_another_dtype_is_cast(code: str, line: int, dtypes: object, after: str | None) -> None:
    found = finding(code, location=Location("a.py", line), evidence={"dtypes": dtypes})
    diagnosis = Diagnosis((), (found,), (), (), (), (), (), {}, 0, 1, "", "")
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", MET)}).answers
    edits = [
        edit for answers in answers_to for answer in answers for proposal in answer.proposals for edit in proposal.edits
    ]
    assert (edited(MET, edits) if edits else None) == after


REFUSED = {"error": "array type float16 is unsupported in linalg"}


@pytest.mark.parametrize(
    ("imported", "line", "evidence", "after"),
    [
        (
            "import numpy as np",
            "np.linalg.svd(z.numpy(), 0)",
            REFUSED,
            'np.linalg.svd(np.asarray(z.numpy(), "float32"), 0)',
        ),
        ("import numpy", "numpy.linalg.inv(a @ b)", REFUSED, 'numpy.linalg.inv(numpy.asarray(a @ b, "float32"))'),
        (
            "import numpy as np\nfrom numpy.linalg import eigh",
            "eigh(a)",
            REFUSED,
            'eigh(np.asarray(a, "float32"))',
        ),
        ("import numpy as np", "np.linalg.svd(*z)", REFUSED, None),
        ("import numpy as np", "own.linalg.svd(z)", REFUSED, None),
        ("import numpy as np", "spectrum(z)", REFUSED, None),
        ("import numpy as np", "np.linalg.svd(z)", {"error": "SVD did not converge"}, None),
    ],
)
def test_numpys_linear_algebra_is_given_float32(
    imported: str, line: str, evidence: dict[str, object], after: str | None
) -> None:
    text = f"{imported}\ns = {line}\n"
    found = finding("MP901", location=Location("a.py", text.count("\n")), evidence=evidence)
    diagnosis = Diagnosis((), (found,), (), (), (), (), (), {}, 0, 1, "", "")
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
    edits = [edit for (answer,) in answers_to for proposal in answer.proposals for edit in proposal.edits]
    assert (edited(text, edits) if edits else None) == (after and f"{imported}\ns = {after}\n")


def test_where_no_model_came_all_layers_of_the_class_are_meant() -> None:
    found = finding("MP202", layer="outer", location=Location("a.py", 7))
    assert answers(found, live=False) == [[[("`Outer` computes in float32", 'dtype="float32"')]]]


def test_a_librarys_layer_that_refuses_16_bits_is_edited_where_it_is_made() -> None:
    place = Location("a.py", 10)
    refusing = finding("MP219", stage="model", layer="head", location=place, evidence={"made_class": "Dense"})
    assert answers(refusing, live=False) == [[[HEAD]]]
    assert answers(dataclasses.replace(refusing, evidence={}), live=False) == []


SETTER = "tf.keras.mixed_precision.set_global_policy"


def test_a_librarys_layer_that_takes_no_dtype_is_made_under_float32() -> None:
    evidence: dict[str, object] = {"made_under": "mixed_float16"}
    refusing = finding("MP219", stage="model", layer="head", location=Location("a.py", 10), evidence=evidence)
    around = f'{SETTER}("float32")\n\n{SETTER}("mixed_float16")'
    for live in (False, True):
        ((first, *_),) = answers(refusing, live=live)
        assert first == [("Make the layer under the policy float32", around)]


@pytest.mark.parametrize(
    "made", ["return Taking()", "layers = [Taking(), Dense(1)]", "Model(x, Taking()(x))", "a = 1; b = Taking()"]
)
def test_what_else_would_be_made_under_float32_too_is_left_alone(made: str) -> None:
    facts = SourceFacts("a.py", f"import tensorflow as tf\n\n\ndef made(x):\n    {made}\n")
    assert under_float32(facts, Location("a.py", 5), "mixed_float16") == ()


def test_a_remedy_that_is_no_edit_says_why() -> None:
    found = finding("MP904", remedies=(RemedyFacts("float32-layers", "healed", ("made/elsewhere",), (None,)),))
    diagnosis = Diagnosis((), (found,), (), (), (), (), (), {}, 0, 1, "", "")
    assert proposals_from_diagnosis(diagnosis, SOURCES).without == ("no line of the program's makes `made/elsewhere`",)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (("encoder/dense", "encoder/dense_1"), 'e = Sequential([Dense(64), Dense(32, dtype="float32")])\n'),
        (("a/dense_1", "b/dense_1"), None),  # nobody knows which
    ],
)
def test_a_layer_of_a_held_model_that_the_training_step_calls_itself(held: tuple[str, ...], wanted: str | None) -> None:
    text = "e = Sequential([Dense(64), Dense(32)])\n"
    layers = (layer("encoder", 1, "Sequential", is_model=True), *(layer(path, 1) for path in held))
    model = ModelFacts("m", "m", "SimCLR", "mixed_float16", Keras("keras"), layers, ())
    healed = RemedyFacts("float32-layers", "healed", ("dense_1",), (Location("a.py", 1),))
    found = finding("MP907", remedies=(healed,))
    diagnosis = Diagnosis((), (found,), (("a.py", model),), (), (), (), (), {}, 0, 1, "", "")
    ((answer,),) = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
    (proposal,) = answer.proposals
    after = edited(text, proposal.edits)
    assert after == wanted if wanted else after.count("float32") > 1


def test_of_two_layers_on_a_line_the_one_whose_turn_it_was_is_meant() -> None:
    text = "head = Sequential([Dense(64), Dropout(0.1), Dense(32)])\n"
    for names, wanted in (
        (("dense_9", "dense_10"), "Dense(32, dtype"),
        (("dense", "dense_1"), "Dense(32, dtype"),
        (("dense_2", "dense_1"), "Dense(64, dtype"),  # a model holds them in another order
        (("wide", "dense_1"), "Dense(64, dtype"),  # nobody knows: both
    ):
        layers = tuple(layer(name, 1) for name in names)
        model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"), layers, ())
        healed = RemedyFacts("float32-layers", "healed", (names[1],), (Location("a.py", 1),))
        found = finding("MP907", remedies=(healed,))
        diagnosis = Diagnosis((), (found,), (("a.py", model),), (), (), (), (), {}, 0, 1, "", "")
        ((answer,),) = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", text)}).answers
        (proposal,) = answer.proposals
        after = edited(text, proposal.edits)
        assert wanted in after, names
        assert len(proposal.edits) == 1 + ("wide" in names), names


NORM = """class Norm(Layer):
    def call(self, x):
        return x / tf.sqrt(self.variance(x) + self.epsilon)

class Trainer:
    def loss(self, x):
        return x / tf.sqrt(x + self.epsilon)

first = Norm()
norms = [Norm(name="a"), Norm(name="b")]
"""


@pytest.mark.parametrize(
    ("code", "line", "live", "after"),
    [
        ("MP502", 3, ("first", "a", "b"), ('first = Norm(dtype="float32")', '"a", dtype="float32"', '"b", dtype=')),
        ("MP502", 3, ("first", "b"), ('first = Norm(dtype="float32")', 'Norm(name="a")', '"b", dtype="float32"')),
        ("MP502", 3, (), None),
        ("MP211", 3, (), ('first = Norm(dtype="float32")', '"a", dtype="float32"', '"b", dtype="float32"')),
        ("MP211", 7, (), None),
        ("MP502", 7, ("first", "a", "b"), None),  # no layer's code
        ("MP213", 3, ("first", "a", "b"), None),  # nothing that float32 holds
    ],
)
def test_a_number_that_a_layers_own_code_loses(
    code: str, line: int, live: tuple[str, ...], after: tuple[str, ...] | None
) -> None:
    home, lines = Location("a.py", 1), {"first": 9, "a": 10, "b": 10}
    layers = tuple(layer(name, lines[name], "Norm", own_class=True, class_location=home) for name in live)
    model = ModelFacts("m", "m", "Net", "mixed_float16", Keras("keras"), layers, ())
    found = finding(code, location=Location("a.py", line), stage="source")
    diagnosis = Diagnosis((), (found,), (("a.py", model),), (), (), (), (), {}, 0, 1, "", "")
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", NORM)}).answers
    edits = [
        edit for answers in answers_to for answer in answers for proposal in answer.proposals for edit in proposal.edits
    ]
    assert bool(edits) is bool(after)
    assert all(cast in edited(NORM, dict.fromkeys(edits)) for cast in after or ())


OWN = """import keras
import numpy as np

model.compile(keras.optimizers.Adam(1e-3), "mse")
optimizer = LossScaleOptimizer(inner, initial_scale=8.0)
"""
ADAM = OptimizerFacts("Adam", "keras", made_at=Location("a.py", 4))
WRAPS = OptimizerFacts("LossScaleOptimizer", "keras", is_wrapper=True, made_at=Location("a.py", 5))
BY_COMPILE = OptimizerFacts("LossScaleOptimizer", "keras", is_wrapper=True, wrapped_by_compile=True)
IMPORTED = OWN.replace("as np\n", "as np\nimport mpdoctor.training\n")
AROUND = IMPORTED.replace(
    "keras.optimizers.Adam(1e-3)", "mpdoctor.training.LossScaleOptimizer(keras.optimizers.Adam(1e-3))"
)
INSTEAD = IMPORTED.replace("= LossScaleOptimizer", "= mpdoctor.training.LossScaleOptimizer")


@pytest.mark.parametrize(
    ("code", "chain", "has_it", "after"),
    [
        ("MP315", (BY_COMPILE, ADAM), True, AROUND),
        ("MP303", (WRAPS, ADAM), True, INSTEAD),
        ("MP315", (BY_COMPILE, ADAM), False, None),
        ("MP903", (BY_COMPILE, ADAM), True, None),
        ("MP315", (ADAM,), True, None),
    ],
)
def test_our_own_wrapper_takes_the_place_of_keras(
    code: str, chain: tuple[OptimizerFacts, ...], has_it: bool, after: str | None
) -> None:
    model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"), (), chain)
    diagnosis = Diagnosis((), (finding(code),), (("a.py", model),), (), (), (), (), {}, 0, 1, "", "")
    answers_to = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", OWN)}, has_it).answers
    edits = [
        edit for answers in answers_to for answer in answers for proposal in answer.proposals for edit in proposal.edits
    ]
    assert (edited(OWN, edits) if edits else None) == after


def test_a_rules_own_edit_comes_before_our_wrapper() -> None:
    model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras"), (), (WRAPS, ADAM))
    diagnosis = Diagnosis((), (finding("MP302", fix=FIX),), (("a.py", model),), (), (), (), (), {}, 0, 1, "", "")
    ((answer,),) = proposals_from_diagnosis(diagnosis, {"a.py": SourceFacts("a.py", OWN)}, True).answers
    assert [proposal.title for proposal in answer.proposals] == ["Write x"]
