"""Modules in the working directory, or beside a script, that have the names of modules which mpdoctor imports: it never
imports them.

Each leaves a mark when it is imported. `python -m mpdoctor` in such a directory is not for strangers' files: Python
itself looks for the package there, before any line of mpdoctor's.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from checking import ROOT, check, needs_tensorflow
from test_documentation import Job

from mpdoctor.examiner.own_imports import NEEDED_LATER
from mpdoctor.project.interpreters import interpreter_from_path

OTHERS = (
    "typer", "rich", "click", "shellingham", "cattr", "cattrs", "attr", "attrs", "jinja2", "markupsafe",
    "packaging", "pathspec", "platformdirs", "tomli", "numpy", "keras", "tf_keras", "tensorflow", "h5py",
    "google", "absl", "six", "ml_dtypes", "optree", "namex", "tensorflow_datasets", "sitecustomize",
    "usercustomize", "pygments", "markdown_it", "mdurl", "exceptiongroup", "typing_extensions", "setuptools",
    "pip", "pkg_resources", "_distutils_hack", "colorama", "tomllib",
)  # fmt: skip
STANDARD = sorted(name for name in sys.stdlib_module_names if name != "__future__")
MARKING = """
with open({mark!r}, "a") as file:
    file.write({name!r} + "\\n")
"""
# Gives what a plain run would have got, and notes who asked for it.
REEXPORTING = """
import sys
def _note():
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith("<") or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    with open({mark!r}, "a") as file:
        file.write(__name__ + " " + (frame.f_code.co_filename if frame else "-") + "\\n")
_note()
def _real():
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder
    folder = __file__.rpartition("/")[0]
    spec = PathFinder.find_spec(__name__, [place for place in sys.path if place != folder])
    if spec is None:
        raise ModuleNotFoundError(__name__, name=__name__)
    sys.modules[__name__] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
_real()
"""
WRONG = "import tensorflow as tf\nopt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
TRAINING = """
import numpy as np
import keras
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
inputs, labels = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 1).astype("float32")
{before}
model.fit(inputs, labels, verbose=0)
"""


class Shadows:
    """A folder full of them, but for the names in `without`."""

    def __init__(self, folder: Path, without: Sequence[str] = (), text: str = MARKING) -> None:
        self.folder = folder
        self._mark = folder.with_name(f"{folder.name}.mark")
        folder.mkdir(exist_ok=True)
        for name in {*STANDARD, *OTHERS} - set(without):
            (folder / f"{name}.py").write_text(text.format(name=name, mark=str(self._mark)))
        if "mpdoctor" not in without:
            (folder / "mpdoctor").mkdir()
            for name in ("__init__", "__main__", "cli"):
                (folder / "mpdoctor" / f"{name}.py").write_text(MARKING.format(name=name, mark=str(self._mark)))

    def marks(self) -> list[str]:
        """Since the last look."""
        told = self._mark.read_text().splitlines() if self._mark.exists() else []
        self._mark.unlink(missing_ok=True)
        return told

    def is_met_by(self, *arguments: str) -> bool:
        """Whether what Python runs with these arguments, in this folder, imports one of them."""
        subprocess.run([sys.executable, *arguments], cwd=self.folder, capture_output=True, check=False)
        return bool(self.marks())


@pytest.fixture
def checkout(tmp_path: Path) -> Shadows:
    """Of a project to be read: with a tensorflow.py of its own nothing would be said of what imports that."""
    return Shadows(tmp_path / "here", without=("tensorflow",))


@pytest.fixture
def shadows(tmp_path: Path) -> Shadows:
    made = Shadows(tmp_path / "here")
    assert len(list(made.folder.glob("*.py"))) > 300
    assert made.is_met_by("-m", "mpdoctor")  # each of them works
    return made


def run(*command: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=200)


def program() -> Path:
    installed = Path(sys.executable).with_name("mpdoctor")
    if not installed.exists():
        pytest.skip(f"{installed} is not there: mpdoctor is not installed")
    return installed


# --- source -----------------------------------------------------------------------------------------------------------
def test_the_action_imports_nothing_of_the_checkout(checkout: Shadows) -> None:
    (checkout.folder / "train_it.py").write_text(WRONG)
    (checkout.folder / "temporary").mkdir()
    (checkout.folder / "temporary" / "mpdoctor").symlink_to(ROOT)
    job = Job(checkout.folder)
    job.run()
    assert (job.status, checkout.marks()) == (1, []), job.log
    assert "MP101" in (checkout.folder / "mpdoctor.sarif").read_text()


def test_the_action_installs_with_nothing_of_the_checkout(shadows: Shadows) -> None:
    (install,) = (step for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
                  if "pip install" in step.get("run", ""))  # fmt: skip
    python, *options = install["run"].replace('"$PYTHON"', sys.executable).partition(" install")[0].split()
    done = run(python, *options, "--version", directory=shadows.folder)
    assert shadows.marks() == []
    assert done.stdout.startswith("pip ") or "No module named pip" in done.stderr


@pytest.mark.parametrize("files", [1, 12])
def test_the_hook_imports_nothing_of_the_checkout(checkout: Shadows, files: int) -> None:
    """Also where so much is to be read that other processes help."""
    padding = "".join(f"x{number} = tf.cast({number}, 'float16')\n" for number in range(4000))
    for number in range(files):
        (checkout.folder / f"train_{number}.py").write_text(WRONG + padding * (files > 1))
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command, *options = hook["entry"].split()
    assert command == "mpdoctor"
    names = sorted(path.name for path in checkout.folder.glob("train_*.py"))
    done = run(program(), *options, "--no-cache", "--output-format", "json", *names, directory=checkout.folder)
    assert (done.returncode, checkout.marks()) == (1, []), done.stderr
    assert {finding["path"] for finding in json.loads(done.stdout)["findings"]} == set(names)


def test_a_process_that_begins_anew_imports_nothing_of_the_working_directory(shadows: Shadows) -> None:
    """As on macOS and Windows, where none is forked."""
    launcher = shadows.folder.parent / "launcher" / "launch.py"
    launcher.parent.mkdir()
    launcher.write_text(
        f"import os, sys\nsys.path[0] = {str(ROOT)!r}\n"
        "if __name__ == '__main__':\n"
        "    from mpdoctor.source_stage import process_count, worker_process\n"
        "    import multiprocessing\n"
        "    process_count.FORKS = False\n"
        "    if process_count.most_processes() == 1: print('alone'); raise SystemExit\n"
        "    worker_process._processes = multiprocessing.get_context('spawn')\n"
        "    worker = worker_process.WorkerProcess(worker_process.WorkerInput({}, {}, None))\n"
        "    worker.ask('nothing', (['asked'],))\n"
        "    ((facts, _),) = worker.answer().values()\n"
        "    print('answered', 'nothing' in str(facts.breakdowns), 'PYTHONSAFEPATH' in os.environ)\n"
    )
    done = run(sys.executable, launcher, directory=shadows.folder)
    assert shadows.marks() == []
    assert done.stdout.strip() == ("answered True False" if sys.version_info >= (3, 11) else "alone"), done.stderr


def test_as_a_module_it_passes_over_the_working_directory(tmp_path: Path) -> None:
    """What starts a module imports some of the standard library, which is out of our hands."""
    shadows = Shadows(tmp_path / "here", without=("mpdoctor", *STANDARD))
    assert shadows.is_met_by("-c", "import typer")
    done = run(sys.executable, "-m", "mpdoctor", "check", "--static", "typer.py", directory=shadows.folder)
    assert (done.returncode, shadows.marks()) == (0, []), done.stderr


def test_an_isolated_module_imports_nothing_of_the_working_directory(shadows: Shadows) -> None:
    done = run(sys.executable, "-I", "-m", "mpdoctor", "check", "--static", "typer.py", directory=shadows.folder)
    assert shadows.marks() == []
    assert done.returncode == 0 or "No module named mpdoctor" in done.stderr


def test_an_interpreter_answers_with_nothing_of_the_working_directory(
    shadows: Shadows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shadows.folder)
    assert interpreter_from_path(Path(sys.executable)).python == sys.version_info[:3]
    assert shadows.marks() == []


# --- programs ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("raise ValueError('as it stands here')\n", "as it stands here"),
        ("import sys\nsys.exit(3)\n", "3"),
        ("compile('1 +', 'x', 'exec')\n", "invalid syntax"),
        ("x = 1\n", "without a Keras model"),
    ],
)
@needs_tensorflow
def test_what_examines_meets_none_beside_the_script(shadows: Shadows, script: str, says: str) -> None:
    (shadows.folder / "train_it.py").write_text(script)
    done = run(program(), "check", "train_it.py", "--output-format", "json", directory=shadows.folder)
    report = json.loads(done.stdout)
    assert ([finding["code"] for finding in report["findings"]], report["crashed"]) == (["MP002"], []), done.stderr
    assert says in json.dumps(report["findings"])
    assert shadows.marks() == []


@needs_tensorflow
def test_the_script_gets_its_neighbours_as_in_a_plain_run(shadows: Shadows) -> None:
    # setuptools takes over the import of pip, with whichever `traceback` there is by then; modules in C, as _pickle,
    # may raise anything where they meet another `copyreg`
    left_out = ("antigravity", "this", "pip")
    names = [name for name in (*STANDARD, *OTHERS, "mpdoctor") if name not in left_out and name[0] != "_"]
    script = shadows.folder / "train_it.py"
    imports = "".join(f"try: import {name}\nexcept ImportError: pass\n" for name in names)
    script.write_text(imports + "import sys\nopen('path.txt', 'w').write(repr(sys.path))\n")
    done = run(sys.executable, script.name, directory=shadows.folder)
    assert done.returncode == 0, done.stderr
    plain, path = shadows.marks(), (shadows.folder / "path.txt").read_text()
    assert {"json", "types", "random", "keras", "tensorflow", "inspect", "__init__"} <= set(plain)
    done = run(program(), "check", script.name, "--output-format", "json", directory=shadows.folder)
    assert shadows.marks() == plain
    assert (shadows.folder / "path.txt").read_text() == path
    assert json.loads(done.stdout)["crashed"] == []


@pytest.mark.slow
@needs_tensorflow
def test_a_script_beside_an_mpdoctor_trains(tmp_path: Path) -> None:
    """As in a checkout of ours: what the examiner imports while it trains must be complete before it is hidden."""
    (tmp_path / "mpdoctor").mkdir()
    (tmp_path / "mpdoctor" / "__init__.py").write_text("")
    (tmp_path / "train_it.py").write_text(TRAINING.format(before=""))
    done = run(program(), "check", "train_it.py", "--output-format", "json", directory=tmp_path)
    report = json.loads(done.stdout)
    assert (done.returncode, report["crashed"], [probe["verdict"] for probe in report["probes"]]) == (
        0,
        [],
        ["healthy"],
    )


@pytest.mark.slow
@needs_tensorflow
def test_a_training_with_neighbours_asks_for_none_of_them_itself(tmp_path: Path) -> None:
    """Neighbours that hand on the real module, so that TensorFlow runs: what is imported is what a plain run imports,
    and never by mpdoctor."""
    shadows = Shadows(tmp_path / "here", text=REEXPORTING, without=("mpdoctor", *OTHERS, *sys.builtin_module_names))
    script = shadows.folder / "train_it.py"
    script.write_text(TRAINING.format(before=""))
    run(sys.executable, script.name, directory=shadows.folder)
    plain = shadows.marks()
    done = run(program(), "check", script.name, "--output-format", "json", directory=shadows.folder)
    asked = shadows.marks()
    report = json.loads(done.stdout)
    assert ([probe["steps"] for probe in report["probes"]], report["crashed"]) == ([50], []), done.stderr
    assert not [mark for mark in asked if f"{os.sep}mpdoctor{os.sep}examiner" in mark]
    names = {mark.split()[0] for mark in asked} & set(STANDARD)
    assert {"json", "random", "inspect"} <= names <= {mark.split()[0] for mark in plain}


@pytest.mark.slow
@needs_tensorflow
def test_a_script_may_replace_modules(tmp_path: Path) -> None:
    names = ("json", "inspect", "traceback", "linecache", "zipfile", "gzip", "tempfile", "shutil", "pickle",
             "dataclasses", "importlib.util", "platform", "glob", "struct")  # fmt: skip
    replaced = f"import sys, types\nfor name in {names}: sys.modules[name] = types.ModuleType(name)"
    (tmp_path / "train.py").write_text(TRAINING.format(before=replaced))
    assert run(sys.executable, "train.py", directory=tmp_path).returncode == 0
    done = check("train.py", directory=tmp_path)
    assert ([probe["steps"] for probe in done.report["probes"]], done.report["crashed"]) == ([50], [])


@pytest.mark.parametrize("variables", [{}, {"PYTHONSAFEPATH": "1"}, {"PYTHONPATH": "more"}])
@needs_tensorflow
def test_the_path_is_that_of_a_plain_run(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text("import sys\nopen('path.txt', 'w').write(repr(sys.path))\n")
    environment = {"PATH": os.environ["PATH"], **variables}
    paths = []
    for command in ([sys.executable, "train.py"], [program(), "check", "train.py"]):
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        paths.append((tmp_path / "path.txt").read_text())
    assert paths[0] == paths[1]


# --- saved files ------------------------------------------------------------------------------------------------------
@needs_tensorflow
@pytest.mark.slow
def test_a_saved_file_is_loaded_with_nothing_of_the_working_directory(
    shadows: Shadows, saved_models: Callable[[str], Path]
) -> None:
    model = shadows.folder / "healthy.keras"
    model.write_bytes((saved_models("3") / model.name).read_bytes())
    done = run(program(), "check", model.name, "--output-format", "json", directory=shadows.folder)
    assert shadows.marks() == []
    assert len(json.loads(done.stdout)["probes"]) == 1, done.stdout


# --- what the examiner must have imported beforehand ------------------------------------------------------------------
def test_all_of_the_standard_library_that_the_examiner_needs_is_imported_first() -> None:
    files = [*(ROOT / "mpdoctor" / "examiner").glob("*.py"), *(ROOT / "mpdoctor" / "facts").glob("*.py")]
    needed = set()
    for file in [*files, ROOT / "mpdoctor" / "loss_scale.py"]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                needed |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                needed.add(node.module)
                if node.module.partition(".")[0] in sys.stdlib_module_names:
                    parts = {f"{node.module}.{alias.name}" for alias in node.names}
                    assert not parts & set(sys.modules), f"{file.name}: the package may have another part by then"
    needed = {name for name in needed if name.partition(".")[0] in sys.stdlib_module_names} - {"__future__"}
    code = "import sys, mpdoctor.examiner.main; print(*sys.modules)"
    early = run(sys.executable, "-c", code, directory=ROOT).stdout.split()
    assert needed - {*early, *NEEDED_LATER} == set()


@pytest.mark.parametrize(
    ("neighbour", "hidden", "kept"),
    [
        ("random", {"random", "tempfile", "email.utils"}, {"inspect", "importlib", "re", "threading", "json"}),
        ("json", {"json", "json.decoder"}, {"inspect", "tempfile", "re", "email.utils"}),
        ("types", {"types", "enum", "re", "json"}, {"inspect"}),
        ("mpdoctor", {"mpdoctor", "mpdoctor.examiner.main"}, {"json"}),
        ("harmless", set(), {"json", "inspect", "random", "mpdoctor"}),
    ],
)
def test_what_has_imported_a_shadowed_module_is_imported_anew(
    tmp_path: Path, neighbour: str, hidden: set[str], kept: set[str]
) -> None:
    (tmp_path / f"{neighbour}.py").write_text("")
    code = (
        f"import sys; known = frozenset(sys.modules); sys.path.insert(0, {str(ROOT)!r})\n"
        "from mpdoctor.examiner.own_imports import OwnImports\n"
        "own = OwnImports(known); own.begin()\nimport mpdoctor.examiner.main\n"
        f"own.hand_over({str(tmp_path)!r}); print(*sys.modules)\nwith own.in_place(): print(*sys.modules)"
    )
    done = run(sys.executable, "-I", "-S", "-c", code, directory=tmp_path)
    programs, own = map(set, map(str.split, done.stdout.splitlines()))
    assert (hidden & programs, kept - programs, (hidden | kept) - own) == (set(), set(), set()), done.stderr
