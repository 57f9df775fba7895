"""Diagnoses written by hand: one for each kind of report, and one that holds everything hostile."""

from __future__ import annotations

import dataclasses
import math

from mpdoctor.facts.failure import FailureFacts, Frame
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts, ModelFacts, OptimizerFacts
from mpdoctor.facts.processes import StartedProgram
from mpdoctor.facts.saved.graph import (
    CastFacts,
    OpFacts,
    SavedGraphFacts,
    SavedVariableFacts,
    SignatureFacts,
    TensorSpecFacts,
)
from mpdoctor.facts.training import (
    CulpritFacts,
    GradientCulpritFacts,
    OperationFacts,
    ScaleDependenceFacts,
    StepFacts,
    TensorFacts,
    TrainingFacts,
)
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import (
    AlsoSeen,
    Crashed,
    Diagnosis,
    Edit,
    Excerpt,
    Finding,
    Fix,
    Probe,
    RuleSummary,
    Severity,
    Skipped,
    Stage,
    TargetReport,
    Verdict,
)
from mpdoctor.loss_scale import LossScale

KERAS = Keras("keras", "3.15.1", "2.21.0", "installed")
DONE = {"source": Stage("done"), "model": Stage("done"), "training": Stage("done")}
TARGET = TargetReport("train.py", "train.py", "script", KERAS, "3.11.9", DONE)


def diagnosis(*findings: Finding, **changes: object) -> Diagnosis:
    empty = Diagnosis(
        targets=(TARGET,),
        findings=findings,
        models=(),
        probes=(),
        rules=tuple(
            RuleSummary(f.code, f.name, f"What {f.code} finds.", f"https://example.org/{f.name}/", f"# {f.code}")
            for f in {f.code: f for f in findings}.values()
        ),
        skipped=(),
        crashed=(),
        environment={"tensorflow": "2.21.0", "keras": "3.15.1"},
        suppressed=0,
        exit_code=1 if findings else 0,
        command="mpdoctor check train.py",
        version="0.1.0",
    )
    return dataclasses.replace(empty, **changes)  # type: ignore[arg-type]


def layer(path: str, class_name: str = "Dense", policy: str = "mixed_float16", **more: object) -> LayerFacts:
    compute = policy.replace("mixed_", "")
    variables = "float32" if policy.startswith("mixed_") else policy
    return LayerFacts(path, class_name, policy, compute, variables, (compute,), **more)  # type: ignore[arg-type]


def model(*layers: LayerFacts, kind: str = "fit") -> ModelFacts:
    call = CallFacts(kind, Location("train.py", 31) if kind != "none" else None)
    return ModelFacts(
        id="train.py#1",
        name="sequential",
        class_name="Sequential",
        policy="mixed_float16",
        keras=KERAS,
        layers=layers or (layer("dense"), layer("dense_1"), layer("probabilities", "Activation", "float32")),
        optimizer=(
            OptimizerFacts("LossScaleOptimizer", "keras", is_wrapper=True, dynamic=True, initial_scale="32768.0"),
            OptimizerFacts("Adam", "keras"),
        ),
        call=call,
        compiled=True,
        loss="sparse_categorical_crossentropy",
        global_policy="mixed_float16",
        policy_set=True,
    )


def training(steps: tuple[StepFacts, ...], **more: object) -> TrainingFacts:
    facts = TrainingFacts(
        model=model(),
        data="real",
        device="CPU",
        steps_wanted=50,
        steps=steps,
        policy="mixed_float16",
        dynamic=True,
        initial_scale=32768.0,
        growth_interval=2000,
        weights_changed=True,
        weights_finite=True,
        seconds=4.2,
    )
    return dataclasses.replace(facts, **more)  # type: ignore[arg-type]


def good_steps(number: int = 50) -> tuple[StepFacts, ...]:
    return tuple(StepFacts(32768.0, True, None, 2.302 * math.exp(-step / 20) + 0.05) for step in range(number))


def steps_from_finiteness(
    finite: list[bool], scale: LossScale, variable: str = "dense/kernel", loss: float = 2.3
) -> tuple[StepFacts, ...]:
    return tuple(
        StepFacts(value, ok, None if ok else variable, loss - 0.02 * number if ok else math.inf)
        for number, (ok, value) in enumerate(zip(finite, scale.trajectory(finite), strict=True))
    )


def healthy() -> Diagnosis:
    probe = Probe(training(good_steps()), Verdict.HEALTHY, "50 steps, none skipped")
    return diagnosis(models=(("train.py", model()),), probes=(probe,))


SHADOWED = Finding(
    code="MP302",
    name="attribute-shadowed-by-wrapper",
    severity=Severity.ERROR,
    stage="source",
    target="train.py",
    model="train.py#1",
    message="`opt.epsilon = 1e-4` sets an attribute of the LossScaleOptimizer. The Adam inside it keeps "
    "epsilon 1e-07 and trains with that.",
    help="Set it on the optimizer inside: `opt.inner_optimizer.epsilon = 1e-4`.",
    location=Location("train.py", 12, 1, 12, 12),
    excerpt=Excerpt(11, ("opt = LossScaleOptimizer(Adam())", "opt.epsilon = 1e-4", "model.compile(opt, 'mse')")),
    also_seen=(
        AlsoSeen(
            "MP302",
            "model",
            "the wrapper's epsilon is 0.0001, the inner optimizer's is 1e-07",
            "train.py",
            12,
        ),
    ),
)


def one_error() -> Diagnosis:
    probe = Probe(training(good_steps()), Verdict.HEALTHY, "50 steps, none skipped")
    return diagnosis(SHADOWED, models=(("train.py", model()),), probes=(probe,))


def collapsing() -> Diagnosis:
    steps = steps_from_finiteness([False] * 50, LossScale())
    culprit = CulpritFacts(
        0,
        TensorFacts("square", "Square", "float16", (32, 64), 60000.0, 0.1, 0.2, 0.0, 0.4),
        (TensorFacts("dense", "Dense", "float16", (32, 64), 812.5, 0.01, 0.0, 0.0, 0.0),),
    )
    why = "50 steps skipped; the loss scale went to 5.82e-11"
    probe = Probe(
        training(steps, culprit=culprit, weights_changed=False),
        Verdict.COLLAPSING,
        why,
        "With a floor the scale would have stayed at 1.",
    )
    collapse = Finding(
        code="MP903",
        name="loss-scale-collapses",
        severity=Severity.ERROR,
        stage="training",
        target="train.py",
        model="train.py#1",
        message="All 50 steps were skipped and the loss scale fell from 32768 to 5.82e-11. "
        "At 0 it writes NaN into the weights.",
        help="Mend the overflow that MP904 names; the loss scale can't.",
        location=Location("train.py", 31),
        excerpt=Excerpt(30, ("", "model.fit(x, y, epochs=3)", "")),
    )
    overflow = Finding(
        code="MP904",
        name="activation-overflows",
        severity=Severity.ERROR,
        stage="training",
        target="train.py",
        model="train.py#1",
        layer="square",
        message="The output of layer `square` (Square) is inf: its input reaches 812.5, and 812.5² is beyond "
        "65504, the largest float16.",
        help='Compute this layer in float32: `Square(dtype="float32")`, or scale its input down.',
        location=Location("train.py", 9, 16, 9, 28),
        excerpt=Excerpt(8, ("    def call(self, x):", "        return tf.square(x)", "")),
    )
    output = Finding(
        code="MP201",
        name="half-precision-output",
        severity=Severity.WARNING,
        stage="model",
        target="train.py",
        model="train.py#1",
        layer="dense_1",
        message="The model's output comes from `dense_1` (Dense) in float16: a softmax there keeps 3 digits.",
        help='Give the last layer float32: `Dense(10, dtype="float32")`.',
        location=Location("train.py", 20, 5, 20, 14),
        excerpt=Excerpt(19, ("    Square(),", "    Dense(10),", "])")),
    )
    return diagnosis(overflow, output, collapse, models=(("train.py", model()),), probes=(probe,))


def broken_operation() -> Diagnosis:
    """The culprit is known down to its operation, in the line that the finding shows."""
    told = collapsing()
    (probe,) = told.probes
    square = OperationFacts(
        "Square", "layer", "float16", "inf", 812.5, 0.01, in_float32=660156.25, location=Location("train.py", 9, 16)
    )
    culprit = dataclasses.replace(probe.training.culprit, operation=square)  # type: ignore[type-var]
    training_of_it = dataclasses.replace(probe.training, culprit=culprit)
    return dataclasses.replace(told, probes=(dataclasses.replace(probe, training=training_of_it),))


def many_findings() -> Diagnosis:
    """23 in three files and nowhere, of three rules and severities."""
    overflow, output, collapse = collapsing().findings
    mild = dataclasses.replace(output, code="MP209", name="float32-island", severity=Severity.INFO)
    places = [("models/encoder.py", 9), ("models/decoder.py", 8), ("train.py", 4)]
    told = [
        dataclasses.replace(
            (SHADOWED, output, mild)[number % 3],
            location=Location(path, 10 * number + 12, 5, 10 * number + 12, 14),
            excerpt=Excerpt(
                10 * number + 11, ("def build(units=64):", '    Dense(10, name="logits"),  # the last', "])")
            ),
        )
        for path, most in places
        for number in range(most)
    ]
    told += [dataclasses.replace(overflow, location=None, excerpt=None), dataclasses.replace(collapse, location=None)]
    return diagnosis(*told, models=(("train.py", model()),))


def many_layers() -> Diagnosis:
    layers = [layer(f"encoder/block_{n}/dense") for n in range(1, 20)]
    layers.insert(7, layer("encoder/block_7/attention", "MultiHeadAttention", "float32"))
    layers.insert(12, layer("teacher", "Functional", "float32", is_model=True))
    layers.append(layer("probabilities", "Activation", "float32", is_output=True))
    finite = [False, False, False] + [True] * 30 + [False] + [True] * 86
    steps = steps_from_finiteness(finite, LossScale(growth_interval=25), "encoder/block_3/dense/kernel")
    island = Finding(
        code="MP209",
        name="float32-island",
        severity=Severity.WARNING,
        stage="model",
        target="train.py",
        model="train.py#1",
        layer="encoder/block_7/attention",
        message="`encoder/block_7/attention` (MultiHeadAttention) computes in float32 inside a mixed_float16 model.",
        help="Leave out its `dtype`, or set the policy before the layer is made.",
        evidence={"layers": ["encoder/block_7/attention", "teacher"]},
    )
    probe = Probe(
        training(steps, steps_wanted=120),
        Verdict.HEALTHY,
        "4 steps skipped until the loss scale had settled after step 34",
    )
    return diagnosis(island, models=(("train.py", model(*layers)),), probes=(probe,))


def failing_script() -> Diagnosis:
    failed = TargetReport(
        "train.py",
        "train.py",
        "script",
        KERAS,
        "3.11.9",
        {
            "source": Stage("done"),
            "model": Stage("failed", "the script raised FileNotFoundError at train.py:7"),
            "training": Stage("skipped", "no model was seen"),
        },
        files_written=("logs/run.txt",),
    )
    finding = Finding(
        code="MP002",
        name="target-not-loaded",
        severity=Severity.ERROR,
        stage="model",
        target="train.py",
        message="The script stopped before a model was seen: the file data/train.npz does not exist.",
        help="Run mpdoctor where the script finds its files, or point it at a model factory: "
        "`mpdoctor check train.py:build_model`.",
        location=Location("train.py", 7),
        excerpt=Excerpt(6, ("", "data = np.load('data/train.npz')", "x, y = data['x'], data['y']")),
    )
    return diagnosis(finding, targets=(failed,), exit_code=2)


def what_if() -> Diagnosis:
    finding = dataclasses.replace(
        SHADOWED,
        code="MP201",
        name="half-precision-output",
        severity=Severity.WARNING,
        what_if=True,
        message="The model's output would come from `dense_1` (Dense) in float16.",
        help='Give the last layer float32: `Dense(10, dtype="float32")`.',
        also_seen=(),
        location=Location("train.py", 20, 5, 20, 14),
        excerpt=Excerpt(19, ("    Dense(64),", "    Dense(10),", "])")),
    )
    probe = Probe(training(good_steps()), Verdict.HEALTHY, "50 steps, none skipped")
    return diagnosis(finding, models=(("train.py", model()),), probes=(probe,), exit_code=0)


def static() -> Diagnosis:
    reason = "--static"
    target = dataclasses.replace(
        TARGET,
        stages={
            "source": Stage("done"),
            "model": Stage("skipped", reason),
            "training": Stage("skipped", reason),
        },
    )
    return diagnosis(targets=(target,), command="mpdoctor check --static train.py")


NASTY = (
    "[/b][red]<script>alert(1)</script> \x1b[31m\x07 \u202eright-to-left\u202c \u0627\u0644\u0637 "
    "🧪\U0001f469\u200d\U0001f52c a\nb\r\n\ud800"
    " a|b %0A 100% ``` `` ` {{ 7 * 7 }} </script></style></td>--> ]]> &lt; &#x6a; *_~ $x^2$ @you #1"
    " <img src=x onerror=x> [x](javascript:alert(1)) http://evil.example/?a=1&b='\"\\"
)
ODD_PATH = 'ein Ordner/it\'s "the" né 数据|%0A.py'


def hostile() -> Diagnosis:
    """Everything that a name, a message or a number can do to a reporter."""
    long = "x" * 10_000
    targets = (
        dataclasses.replace(
            TARGET,
            id=NASTY,
            path=NASTY,
            stages={
                "source": Stage("done"),
                "model": Stage("failed", NASTY),
                "training": Stage("skipped", long),
            },
            stand_ins=(NASTY, long),
            files_written=(NASTY, long, *(f"file{n}" for n in range(100))),
            processes_started=(
                StartedProgram("shell", NASTY, 2, may_train=True, examine=NASTY),
                StartedProgram("multiprocessing", long, changed=(NASTY,)),
            ),
        ),
        dataclasses.replace(TARGET, id=long, path=long, kind="factory", keras=Keras(), stages={}),
    )
    everywhere = Finding(
        code="MP904",
        name="activation-overflows",
        severity=Severity.ERROR,
        stage="training",
        target=NASTY,
        model=NASTY,
        layer=NASTY,
        message=f"{NASTY} {long} `{NASTY}`",
        help=f"{NASTY}\n{long}",
        location=Location(NASTY, 12, 5, 14, 10_000),
        excerpt=Excerpt(11, (NASTY.replace("\n", " "), long, "\t\tتجربة 🧪" + long, "")),
        evidence={
            "nan": math.nan,
            "inf": math.inf,
            "nested": {"minus": -math.inf, "set": {3, 1, 2}, "layers": (layer("a"),)},
            "layers": [NASTY, long],
            "severity": Severity.INFO,
            "object": object,
        },
        also_seen=(AlsoSeen("MP907", "training", NASTY, NASTY, 3), AlsoSeen("MP201", "model", long)),
        fix=Fix(f"{NASTY} {long}", False, (Edit(Location(NASTY, 12, 1, 13, 2), f"{NASTY}\n{long}"),)),
        fingerprint="f",
    )
    nowhere = dataclasses.replace(
        everywhere,
        code="MP201",
        severity=Severity.INFO,
        location=None,
        excerpt=None,
        what_if=True,
        also_seen=(),
        fix=None,
    )
    in_a_cell = dataclasses.replace(
        everywhere,
        code="MP302",
        severity=Severity.WARNING,
        message="short",
        layer=None,
        location=Location(ODD_PATH, 2, 1, 2, 4, cell=3),
        excerpt=Excerpt(1, ("", "a | b", "```")),
        evidence={},
        fix=Fix(NASTY, True, (Edit(Location(ODD_PATH, 2, 1, 2, 2, cell=3), NASTY),)),
    )
    bare = Finding(message="", help="", code="MP602", name="non-numeric-input", severity=Severity.WARNING)
    beyond = dataclasses.replace(bare, location=Location("a b:c.py", 3, 900, 3, 901), excerpt=Excerpt(3, ("short",)))
    bad_steps = (
        StepFacts(math.inf, False, NASTY, math.nan),
        StepFacts(math.nan, False, long, math.inf),
        StepFacts(0.0, False, None, -math.inf),
        StepFacts(None, True, None, None),
        StepFacts(3.4e38, True, None, 1e-45),
    )
    failure = FailureFacts(
        "raised",
        "training",
        NASTY,
        long,
        Location(NASTY, 1),
        (Frame(NASTY, 1, NASTY, long, True),),
        layer=NASTY,
    )
    tensor = TensorFacts(NASTY, long, "float16", (0,), math.inf, math.nan, math.nan, 0.0, 1.0)
    broken = OperationFacts(NASTY, "layer", "float16", "nan", math.inf, math.nan, True, 3, math.inf, "data")
    odd = model(layer(NASTY, long, NASTY), layer(long), layer("", "", "float32"), layer("مرحبا 🧪", "L", "float64"))
    array = ArrayFacts("features", NASTY, long, "object", (None, 3), "str")
    odd = dataclasses.replace(odd, id=NASTY, name=long, class_name=NASTY, data=(array,), loss=long)
    probes = (
        Probe(
            training(
                bad_steps,
                data="synthetic",
                made_up_loss=NASTY,
                device=NASTY,
                policy=long,
                failure=failure,
                culprit=CulpritFacts(0, tensor, (tensor,), operation=broken),
                loss_culprit=broken,
                gradient_culprit=GradientCulpritFacts(
                    0, NASTY, long, NASTY, "layer", math.inf, (tensor,), True, broken, Location(NASTY, 1)
                ),
                scale_dependence=ScaleDependenceFacts(16.0, 1024.0, ((NASTY, math.nan), (long, -math.inf))),
                ended="failed",
                name=NASTY,
                replicas=3,
            ),
            Verdict.FAILED,
            NASTY,
            long,
        ),
        Probe(training(bad_steps, model=odd, dynamic=True), Verdict.COLLAPSING, NASTY, NASTY),
        Probe(training((), dynamic=None, initial_scale=None, seconds=math.nan), Verdict.INCONCLUSIVE, ""),
        *(
            Probe(training(bad_steps * 40, data="stand-in", model=model(kind=kind)), verdict, long)
            for kind, verdict in zip(("none", "loop", "train_on_batch", "fit") * 3, Verdict, strict=False)
        ),
    )
    return diagnosis(
        everywhere,
        nowhere,
        in_a_cell,
        bare,
        beyond,
        targets=targets,
        models=((NASTY, odd), (long, model()), ("", dataclasses.replace(odd, id="", layers=(), optimizer=()))),
        probes=probes,
        graphs=((NASTY, _hostile_graph()), (long, SavedGraphFacts("", ""))),
        skipped=(Skipped("MP315", NASTY), Skipped("training", long)),
        crashed=(Crashed("MP999", NASTY, long),),
        environment={NASTY: long, "a": ""},
        suppressed=3,
        exit_code=3,
        command=f"mpdoctor check {NASTY}",
        version=NASTY,
    )


def _hostile_graph() -> SavedGraphFacts:
    long = "x" * 10_000
    tensors = (TensorSpecFacts(NASTY, long, (None, 3)), TensorSpecFacts(long, NASTY, None))
    return SavedGraphFacts(
        ODD_PATH,
        NASTY,
        saved_by=long,
        tags=(NASTY,),
        signatures=(SignatureFacts(NASTY, tensors, tensors), SignatureFacts(long)),
        variables=(SavedVariableFacts(NASTY, "float16", 10**12), SavedVariableFacts(long, NASTY, 0)),
        ops=(OpFacts("Exp", "float16", 3, examples=(NASTY, long)), OpFacts(NASTY, long, 1)),
        casts=(CastFacts(NASTY, long, 2),),
        nodes=7,
    )


def several_trainings() -> Diagnosis:
    """A GAN on two replicas: one optimizer is fine, the other's steps are lost on the second replica."""
    good = training(good_steps(10), steps_wanted=10, name="generator", replicas=2)
    steps = tuple(
        dataclasses.replace(step, nonfinite_replicas=() if step.applied else (1,))
        for step in steps_from_finiteness([n % 4 != 3 for n in range(40)], LossScale(), "critic/dense/kernel")
    )
    bad = training(steps, steps_wanted=40, name="critic", replicas=2)
    return diagnosis(
        SHADOWED,
        models=(("train.py", model()),),
        probes=(
            Probe(good, Verdict.HEALTHY, "10 steps, none skipped"),
            Probe(bad, Verdict.OVERFLOWING, "10 steps skipped since the first applied one"),
        ),
        skipped=(Skipped("MP912", "the step cannot be repeated eagerly: ValueError: only in graphs"),),
    )


SAMPLES = {
    "several_trainings": several_trainings,
    "healthy": healthy,
    "one_error": one_error,
    "collapsing": collapsing,
    "many_layers": many_layers,
    "failing_script": failing_script,
    "what_if": what_if,
    "static": static,
}
