"""Source facts: the context of an event, the policy in force there, and what the program declares about itself."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from described import described, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.program.events import Call, Event
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.source import facts_from_file, facts_from_text, facts_with_imports
from mpdoctor.source.interpreter.imports import MOST_MODULES
from mpdoctor.source.modules import Files
from mpdoctor.source.prefilter import MOST_BEYOND, outlines_from_files
from mpdoctor.source.project import Project
from mpdoctor.source.reading import Source

pytestmark = pytest.mark.fast

ADAM = "keras.optimizers.Adam"


def mark(facts: SourceFacts) -> Call:
    """The call that a snippet marks with `here()`."""
    return marks(facts)[0]


def marks(facts: SourceFacts) -> list[Call]:
    """The same, for each round of a loop that goes through its elements one by one."""
    lines = facts.text.splitlines()
    marked = [
        call for call in facts.calls if lines[call.location.line - 1][call.location.column - 1 :].startswith("here()")
    ]
    assert marked
    return marked


SET = "mp.set_global_policy"
POLICIES = [
    ("here()", [None]),
    (f"{SET}('mixed_float16')\nhere()", ["mixed_float16"]),
    (f"here()\n{SET}('mixed_float16')", [None]),
    (f"{SET}('mixed_float16')\n{SET}('float32')\nhere()", ["float32"]),
    (f"{SET}(mp.Policy('mixed_float16'))\nhere()", ["mixed_float16"]),
    ("mp.experimental.set_policy('mixed_float16')\nhere()", ["mixed_float16"]),
    ("import keras as k3\nk3.config.set_dtype_policy('mixed_float16')\nhere()", ["mixed_float16"]),
    ("keras.backend.set_floatx('float16')\nhere()", ["float16"]),
    (f"{SET}(args.policy)\nhere()", [UNSURE]),
    (f"if f(): {SET}('mixed_float16')\nhere()", ["mixed_float16", None]),
    (f"if f(): {SET}('mixed_float16')\nelse: {SET}('float32')\nhere()", ["float32", "mixed_float16", None]),
    (f"if f():\n  {SET}('mixed_float16')\n  here()", ["mixed_float16"]),
    (f"if f(): {SET}('mixed_float16')\nelse: here()", [None]),
    (f"{SET}('mixed_float16' if f() else 'float32')\nhere()", ["mixed_float16", "float32"]),
    (f"USE = False\nif USE: {SET}('mixed_float16')\nhere()", [None]),
    (f"if not f(): exit()\n{SET}('mixed_float16')\nhere()", ["mixed_float16"]),
    (f"def setup(): {SET}('mixed_float16')\nsetup()\nhere()", ["mixed_float16"]),
    (f"def setup(): {SET}('mixed_float16')\nhere()", [None]),
    (f"def setup(p): {SET}(p)\nsetup('mixed_float16')\nhere()", ["mixed_float16"]),
    (f"{SET}('mixed_float16')\ndef build(): here()\nbuild()\n{SET}('float32')", ["mixed_float16"]),
    (
        f"def main():\n  {SET}('mixed_float16')\n  here()\nif __name__ == '__main__': main()",
        ["mixed_float16"],
    ),
    (f"for p in ('float32', 'mixed_float16'):\n  {SET}(p)\n  here()", ["float32", "mixed_float16"]),
    ("def build(): here()", [UNSURE]),
    (f"def build():\n  {SET}('mixed_float16')\n  here()", ["mixed_float16"]),
    (f"def build(): here()\n{SET}('mixed_float16')", ["mixed_float16"]),
    (f"def other(): {SET}('mixed_float16')\ndef build(): here()", [UNSURE]),
    (
        f"def setup(on):\n  if not on: return\n  {SET}('mixed_float16')\nsetup(f())\nhere()",
        ["mixed_float16", None],
    ),
    (f"def setup():\n  if f(): raise E\n  {SET}('mixed_float16')\nsetup()\nhere()", ["mixed_float16"]),
    (f"import sys\nif f():\n  {SET}('float16')\n  sys.exit()\nhere()", [None]),
    (f"try: {SET}('mixed_float16')\nexcept ValueError: pass\nhere()", ["mixed_float16"]),
]


@pytest.mark.parametrize(("snippet", "policies"), POLICIES)
def test_policies_in_force(snippet: str, policies: list[object]) -> None:
    facts = facts_of(snippet)
    found = {policy for marked in marks(facts) for policy in facts.policies_at(marked)}
    assert found == set(policies)


GUARDED = [
    ("here()", False),
    ("try: here()\nexcept AttributeError: pass", True),
    ("try: pass\nexcept AttributeError: here()", True),
    ("try: here()\nexcept AttributeError: raise", False),
    ("try: here()\nexcept KeyboardInterrupt: pass", False),
    ("try: here()\nfinally: pass", False),
    ("if hasattr(o, 'lr'): here()", True),
    ("if hasattr(o, 'lr'): pass\nelse: here()", True),
    ("if not hasattr(o, 'lr'): raise E\nhere()", True),
    ("if hasattr(o, 'lr'): pass\nhere()", False),
    ("hasattr(o, 'lr') and here()", True),
    ("here() if isinstance(o, C) else 1", True),
    ("if tf.__version__ < '2.4': here()", True),
    ("keras3 = tf.__version__.startswith('2.16')\nif keras3: here()", True),
    ("if f('lr'): here()", False),
    ("if conversion(): here()", False),
    ("with pytest.raises(AttributeError): here()", True),
    ("with self.assertRaisesRegex(E, 'x'): here()", True),
    ("with open(f): here()", False),
    ("def g(): here()\ntry: g()\nexcept Exception: pass", True),
    ("x = [here() for o in p if hasattr(o, 'lr')]", True),
]


@pytest.mark.parametrize(("snippet", "guarded"), GUARDED)
def test_where_a_program_asks_itself(snippet: str, guarded: bool) -> None:
    assert mark(facts_of(snippet)).context.guarded is guarded


def test_context_of_an_event() -> None:
    facts = facts_of(
        """
        class Trainer:
            def step(self):
                with tf.GradientTape() as tape:
                    for x in data:
                        if x:
                            here()
        Trainer().step()
        """
    )
    context = mark(facts).context
    assert context.function is not None and context.function.qualified == "Trainer.step"
    assert context.owner is facts.classes[0]
    assert [described(value) for value in context.withs] == ["GradientTape()"]
    assert (context.loops, context.reached, context.run) == (1, True, 0)
    assert [(branch.taken, described(branch.test)) for branch in context.branches] == [(True, "?[]")]
    assert [place.line for place in context.callers] == [13]
    (tape,) = facts.withs
    assert tape.order < mark(facts).order < tape.end


def test_reads_writes_and_dropped_calls() -> None:
    facts = facts_of("o.lr = o.decay\no.lr += 1\no.step()\nd['k'] = o.step()\n")
    assert [(read.name, read.is_called) for read in facts.reads] == [
        ("decay", False),
        ("step", True),
        ("step", True),
    ]
    assert [(w.name, described(w.index), w.augmented) for w in facts.writes] == [
        ("lr", "…", False),
        ("lr", "…", True),
        ("", "'k'", False),
    ]
    assert [call.dropped for call in facts.calls] == [True, False]
    assert (facts.reads[0].name_location.column, facts.reads[0].name_location.end_column) == (10, 15)


def test_functions_that_nobody_calls_are_walked_once() -> None:
    facts = facts_of("def used(a): f(a)\ndef unused(a): f(a)\nused(1)\n")
    given = [(described(call.args[0]), call.context.reached) for call in facts.calls if call.args]
    assert given == [("1", True), ("1", True), ("$a", False)]


ESCAPING = [
    "model.compile(loss=loss)",
    "data.map(loss)",
    "f(callbacks=[loss])",
    "strategy.run(loss, args=(1, 2))",
    "tf.map_fn(lambda a: loss(a, 1), x)",
]


@pytest.mark.parametrize("use", ESCAPING)
def test_functions_that_a_library_calls_are_reached(use: str) -> None:
    facts = facts_of(f"def loss(a, b): here()\n{use}")
    assert mark(facts).context.reached


@pytest.mark.parametrize(
    ("snippet", "reached"),
    [
        ("class A(layers.Layer):\n  def call(self, x): here()\n", False),
        ("class A(layers.Layer):\n  def call(self, x): here()\nA()", True),
        ("class A:\n  def call(self, x): here()\nA()", False),
    ],
)
def test_methods_that_keras_calls_are_reached(snippet: str, reached: bool) -> None:
    assert mark(facts_of(snippet)).context.reached is reached


SIGNS = [
    ("mp.set_global_policy('mixed_float16')", True),
    ("mp.set_global_policy('mixed_bfloat16')", True),
    ("mp.set_global_policy('float32')", False),
    ("mp.set_global_policy(args.policy)", True),
    ("keras.backend.set_floatx('float16')", True),
    ("keras.backend.set_floatx('float64')", False),
    ("keras.backend.set_floatx(args.dtype)", False),
    ("mp.LossScaleOptimizer(o)", True),
    ("mp.experimental.LossScaleOptimizer(o, 'dynamic')", True),
    ("tf.mixed_precision.experimental.DynamicLossScale()", True),
    ("tf.config.optimizer.set_experimental_options({'auto_mixed_precision': True})", False),
    ("tf.train.experimental.enable_mixed_precision_graph_rewrite(o)", False),
    ("tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(o)", False),
    ("tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(o, 'dynamic')", True),
    ("import os\nos.environ['TF_ENABLE_AUTO_MIXED_PRECISION'] = '1'", False),
    ("layers.Dense(1, dtype='float16')", True),
    ("layers.Dense(1, dtype=tf.float16)", True),
    ("layers.Dense(1, dtype='float32')", False),
    ("class A(layers.Layer): pass\nA(dtype='mixed_float16')", True),
    ("mp.Policy('mixed_float16')", True),
    ("tf.cast(x, tf.float16)", False),
    ("np.zeros(3, dtype='float16')", False),
    ("keras.optimizers.Adam()", False),
    ("keras.mixed_precision.global_policy()", False),
]


@pytest.mark.parametrize(("snippet", "shows"), SIGNS)
def test_signs_of_mixed_precision(snippet: str, shows: bool) -> None:
    assert facts_of(snippet).shows_mixed_precision is shows


DECLARED = [
    ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport tensorflow", "tf_keras"),
    ("import os\nos.environ.setdefault('TF_USE_LEGACY_KERAS', 'true')\nimport tensorflow", "tf_keras"),
    ("from os import environ\nenviron.update(TF_USE_LEGACY_KERAS='1')\nimport tensorflow", "tf_keras"),
    ("import os\nos.putenv('TF_USE_LEGACY_KERAS', '1')\nimport tensorflow", "tf_keras"),
    ("import os\nimport tensorflow\nos.environ['TF_USE_LEGACY_KERAS'] = '1'", None),
    ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '0'\nimport tensorflow", None),
    ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = 'True'\nimport tensorflow", "tf_keras"),
    ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = 'TRUE'\nimport tensorflow", None),  # measured: no yes to it
    ("import os\nif f(): os.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport tensorflow", None),
    (
        "import os\nif 'TF_USE_LEGACY_KERAS' not in os.environ:\n    os.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
        "import tensorflow",
        "tf_keras",
    ),
    (
        "import os\nif os.getenv('TF_USE_LEGACY_KERAS') != '1':\n    os.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
        "import tensorflow",
        "tf_keras",
    ),
    (
        "import os\nif os.getenv('WITH_KERAS_2') != '1':\n    os.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
        "import tensorflow",
        None,
    ),
    ("import tf_keras as keras\nkeras.Model", "tf_keras"),
    ("import tf_keras, keras\ntf_keras.Model, keras.Model", None),
    ("try:\n  import tf_keras as keras\nexcept ImportError:\n  import keras\nkeras.Model", None),
    ("from tensorflow.python import ipu\nimport tensorflow as tf\ntf.keras.layers.Dense(1)", "tf.keras"),
    ("import tensorflow.python.ipu as ipu\nfrom tensorflow import keras", "tf.keras"),
    ("try:\n  from tensorflow.python import ipu\nexcept ImportError:\n  ipu = None", None),
    ("from tensorflow.python import framework", None),
    ("import keras\nkeras.ops.cast(1)", "keras"),
    ("from keras import ops", "keras"),
    ("import keras\nkeras.config.set_dtype_policy('float32')", "keras"),
    ("import keras\nkeras.layers.Dense(1)", None),
    ("import tensorflow as tf\ntf.keras.layers.Dense(1)", None),
    ("x = 1", None),
]


@pytest.mark.parametrize(("text", "keras"), DECLARED)
def test_which_keras_a_text_declares(text: str, keras: str | None) -> None:
    assert facts_from_text(text, "a.py").declared_keras == keras


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_what_another_file_imports_declares_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "train.py": "import tf_keras\nimport flags\nflags.parse()\ntf_keras.Model",
        "flags.py": "import keras\ndef parse():\n  if f():\n    import tensorflow\n  keras.ops.cast(1)",
    }
    monkeypatch.chdir(written(tmp_path, texts))
    declared = {file.path: file.declared_keras for file in facts_with_imports(Path("train.py")).values()}
    assert declared == {"train.py": "tf_keras", "flags.py": None}


KERAS = "import tensorflow as tf\nfrom tensorflow import keras\n"
PROJECT = {
    "train.py": KERAS
    + "import settings\nfrom nets.blocks import Gate, make\nfrom nets import *\nfrom missing import nothing\n"
    + "opt = make(1e-3)\nGate(4)\nhelp_me()\nsettings.DEPTH\nprint(opt, settings.DEPTH, Gate)\n",
    "settings.py": KERAS + "DEPTH = 3\nkeras.mixed_precision.set_global_policy('mixed_float16')\n",
    "nets/__init__.py": "from .blocks import make as help_me\nfrom . import parts\n",
    "nets/blocks.py": KERAS
    + "from .parts import Base\nfrom ..beyond import nothing\n"
    + "class Gate(Base):\n    def call(self, x): return x * tf.ones(4)\n"
    + "def make(rate=1): return keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(rate))\n"
    + "def unused(x): return tf.zeros(x)\n"
    + "if __name__ == '__main__':\n    tf.eye(3)\n",
    "nets/parts.py": KERAS + "import nets.blocks\nclass Base(keras.layers.Layer):\n    pass\n",
    "unrelated.py": "raise SystemExit\n",
    "broken.py": "def (",
}


def test_a_script_is_understood_with_the_files_that_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(tmp_path, PROJECT))
    script, *others = facts_with_imports(Path("train.py")).values()
    assert (script.path, script.shows_mixed_precision) == ("train.py", True)
    assert sorted(file.path for file in others) == [
        "nets/__init__.py",
        "nets/blocks.py",
        "nets/parts.py",
        "settings.py",
    ]
    assert sorted(script.imports) == sorted(file.path for file in others)
    (shown,) = [call for call in script.calls if call.method == "print"]
    assert [described(argument) for argument in shown.args] == ["LossScaleOptimizer(Adam(0.001))", "3", "Gate"]
    assert script.policies_at(shown) == ("mixed_float16",)
    followed = [call for call in script.calls if call.method == "Adam"]
    assert [(call.location.path, described(call.args[0])) for call in followed] == [
        ("nets/blocks.py", "0.001"),
        ("nets/blocks.py", "1"),
    ]
    blocks = next(file for file in others if file.path == "nets/blocks.py")
    assert blocks.classes[0].kind == "layer"
    assert sorted(call.method for call in blocks.calls if call.context.run) == ["eye", "ones", "zeros"]


def walked_in_turn(root: Path, names: Sequence[str], order: Sequence[str]) -> dict[str, SourceFacts]:
    """The facts of some of the files of a project, walked in this order."""
    files = Files()
    shown = {root / name: name for name in names}
    project = Project(files, shown, outlines_from_files(shown, Path.read_bytes))
    found = {}
    for path in (root / name for name in order):
        source = files.source(path, shown[path])
        assert isinstance(source, Source)
        found[shown[path]] = project.walk(source, path)
    return found


def test_the_files_of_a_directory(tmp_path: Path) -> None:
    """Each is walked as a script, on top of what it imports."""
    names = sorted(PROJECT.keys() - {"broken.py"})
    found = walked_in_turn(written(tmp_path, PROJECT), names, names)
    assert {name: sorted(facts.imports) for name, facts in found.items() if facts.imports} == {
        "nets/blocks.py": ["nets/__init__.py", "nets/parts.py"],
        "nets/__init__.py": ["nets/blocks.py", "nets/parts.py"],
        "nets/parts.py": ["nets/__init__.py", "nets/blocks.py"],
        "train.py": ["nets/__init__.py", "nets/blocks.py", "nets/parts.py", "settings.py"],
    }
    makings = {name: [call.location.path for call in facts.calls_of(ADAM)] for name, facts in found.items()}
    assert {name: places for name, places in makings.items() if places} == {
        "nets/blocks.py": ["nets/blocks.py"],
        "train.py": ["nets/blocks.py", "nets/blocks.py"],
    }
    (shown,) = [call for call in found["train.py"].calls if call.method == "print"]
    assert found["train.py"].policies_at(shown) == ("mixed_float16",)
    first = found["train.py"].uses[0]
    assert found["train.py"].policies_at(first) == (None,)


TANGLE = {
    "base.py": KERAS
    + "COUNT = 0\nclass Base(keras.layers.Layer):\n"
    + "    def __init__(self, size, **more):\n        super().__init__(**more)\n        self.size = size\n"
    + "    def width(self):\n        class Inner(Base):\n            pass\n        return Inner(self.size)\n"
    + "def count():\n    global COUNT\n    COUNT = COUNT + 1\n    return COUNT\n"
    + "def loss(y, p):\n    return tf.reduce_sum(y - p)\n",
    # A ring: which of the two runs first decides what the other one sees.
    "one.py": "import base, two\nlayer = base.Base(3, dtype='float16')\nbase.count()\nlayer.width()\n",
    "two.py": "import base, one\nSIZE = one.layer.size\nlayer = base.Base(4)\nprint(base.COUNT, layer.width().size)\n",
    "by_one.py": "from one import *\nimport policy\nprint(layer.size, layer.width().size, base.count())\n",
    "by_two.py": "import two\nprint(two.SIZE)\n",
    # An import that is not seen before the walk, behind a change to what it reads.
    "late.py": "import base\nSIZE = base.Base.size\n",
    "sooner.py": "import late, base\nprint(late.SIZE)\nbase.keras.Sequential().compile(loss=base.loss)\n",
    "later.py": "import base\nmade = base.Base(9); import late\nprint(late.SIZE, made.size)\n",
    "guarded.py": "import base\ntry:\n    import one\nexcept ImportError:\n    one = None\n"
    + "base.Base.size = 9\nbase.keras.Sequential().compile(loss=base.loss)\n",
    "policy.py": KERAS + "if keras.__version__ > '3':\n    keras.mixed_precision.set_global_policy('mixed_float16')\n",
}


@settings(max_examples=40)
@given(st.permutations(sorted(TANGLE)), st.integers(1, len(TANGLE)))
def test_what_else_is_walked_changes_nothing(order: list[str], count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = written(Path(directory), TANGLE)
        alone = {name: outlined(walked_in_turn(root, sorted(TANGLE), [name])[name]) for name in TANGLE}
        for name, facts in walked_in_turn(root, sorted(TANGLE), order[:count]).items():
            assert outlined(facts) == alone[name]


def test_of_a_huge_library_only_a_part_is_brought_in(tmp_path: Path) -> None:
    """A file of TensorFlow's own imports, through others, two thousand more."""
    count = MOST_BEYOND + MOST_MODULES + 200
    root = written(tmp_path, {"lib/__init__.py": "", "lib/start.py": "from lib import m0\n"})
    for number in range(count):
        (root / f"lib/m{number}.py").write_text(f"from lib import m{number + 1}\n")
    (facts,) = walked_in_turn(root, ["lib/start.py"], ["lib/start.py"]).values()
    assert MOST_BEYOND / 2 < len(facts.imports) <= MOST_BEYOND + MOST_MODULES + 1
    assert not facts.incomplete


def outlined(facts: SourceFacts) -> list[object]:
    """What was seen, without the numbers that only tell one walk from another."""
    events = (*facts.uses, *facts.calls, *facts.reads, *facts.writes, *facts.operations, *facts.withs, *facts.returns)
    return [
        *((type(event).__name__, str(event.location), event.context.guarded, shape(event)) for event in events),
        *(facts.policies_at(event) for event in events),
        *((own.name, sorted(own.attributes), sorted(own.base_arguments)) for own in facts.classes),
        sorted(facts.imports),
    ]


def shape(event: Event) -> list[str]:
    held = [getattr(event, name, None) for name in ("of", "value", "callee", "result")]
    return [described(value) for value in (*held, *getattr(event, "args", ())) if isinstance(value, Value)]


def test_a_script_inside_a_package(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/sub/__init__.py": "",
        "pkg/sub/train.py": "from pkg.base import K\nfrom ..base import K as J\nprint(K, J)\n",
        "pkg/base.py": "K = 7\n",
    }
    root = written(tmp_path, files)
    script = facts_from_file(root / "pkg/sub/train.py", "train.py")
    assert [described(argument) for argument in script.calls[-1].args] == ["7", "7"]


def test_modules_of_folders_without_an_init_file(tmp_path: Path) -> None:
    """`from models import layers`: Python takes the folder for a package."""
    files = {
        "models/layers.py": "K = 7\n",
        "models/inner/heads.py": "from . import sizes as of\nfrom models import layers\nJ = layers.K + of.L\n",
        "models/inner/sizes.py": "L = 1\n",
        "train.py": "from models import layers as parts, missing\nfrom models.inner import heads\n"
        "print(parts.K, heads.J, missing)\n",
    }
    root = written(tmp_path, files)
    script = facts_from_file(root / "train.py", "train.py")
    assert [described(argument) for argument in script.calls[-1].args[:2]] == ["7", "8"]


def test_modules_that_import_one_another(tmp_path: Path) -> None:
    root = written(tmp_path, {"a.py": "import b\nX = 1\nprint(b.Y)\n", "b.py": "import a\nY = 2\nprint(a.X)\n"})
    a, b = facts_with_imports(root / "a.py").values()
    assert described(a.calls[-1].args[0]) == "2"
    assert a.imports == (b.path,)


def test_text_without_a_directory_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(tmp_path, {"helper.py": "X = 1\n"}))
    text = "import helper\nprint(helper.X)\n"
    assert facts_from_text(text, "-").imports == ()
    facts = facts_from_text(text, "-", root=Path())
    assert described(facts.calls[-1].args[0]) == "1"
