"""The examiner's parts that need no TensorFlow: own lines, import hooks, events, failures, fit()."""

from __future__ import annotations

import functools
import importlib
import json
import linecache
import os
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from checking import needs_tensorflow
from hypothesis import given
from hypothesis import strategies as st

import mpdoctor
from mpdoctor.examiner.capture.graph_rewrites import rewrites_graphs
from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.failures.failure import failure_from_exception
from mpdoctor.examiner.probe.short_fit.short_fit import DROPPED, ENDLESS, shortened_fit
from mpdoctor.examiner.process.import_hooks import ImportHooks
from mpdoctor.examiner.process.user_code import class_location, is_own, own_location
from mpdoctor.examiner.protocol.event_kinds import Failure, Started
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.saved.file import SAVED

STDLIB = sysconfig.get_path("stdlib")


def compiled(path: Path, text: str) -> dict[str, Any]:
    """Write a file of the user's, run it, and give what it defines."""
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return names


# --- whose file it is -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("filename", "own"),
    [
        ("/home/me/train.py", True),
        ("train.py", True),
        ("/home/me/my-site-packages/train.py", True),
        ("/home/me/.venv/lib/python3.11/site-packages/keras/src/layer.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        (f"{STDLIB}/threading.py", False),
        (f"{STDLIB}/importlib/__init__.py", False),
        (f"{STDLIB}-of-mine/train.py", True),
        (str(Path(mpdoctor.__file__).parent / "examiner" / "probe.py"), False),
        ("/tmp/__autograph_generated_file1x2y.py", False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", False),
        ("<ipython-input-1>", False),
    ],
)
def test_files_of_installed_packages_are_not_the_users_own(filename: str, own: bool) -> None:
    assert is_own(filename) is own


def test_a_link_into_an_installed_package_is_not_own(tmp_path: Path) -> None:
    real = tmp_path / "site-packages" / "library.py"
    real.parent.mkdir()
    real.touch()
    (tmp_path / "mine.py").symlink_to(real)
    assert not is_own(str(tmp_path / "mine.py"))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "{{function_node __wrapped__Sum_device_/job:localhost}} label 6 is outside of [0, 6). [Op:Sum] name: ",
            "ValueError: label 6 is outside of [0, 6).",
        ),
        ("a {{brace}} [of the user's]\nmore", "ValueError: a {{brace}} [of the user's]"),
        (
            'in user code:\n\n    File "t.py", line 9, in step  *\n        f(x)\n\n    KeyError: no x',
            "ValueError: no x",
        ),
        ("in user code:", "ValueError: in user code:"),
        ("", "ValueError: "),
    ],
)
def test_an_error_is_told_without_tensorflows_kernel(words: str, line: str) -> None:
    assert first_line(ValueError(words)) == line


def test_what_pip_installed_in_another_folder_is_not_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install --target`, with the program beside it: the names that the packages' RECORD files list are theirs."""
    record = tmp_path / "keras-3.15.1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(
        'keras/__init__.py,sha256=x,10\n"odd, name.py",,\n../../bin/keras,,\nkeras-3.15.1.dist-info/RECORD,,\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    installed = [tmp_path / "keras" / "src" / "optimizer.py", tmp_path / "odd, name.py"]
    users = [tmp_path / "train.py", tmp_path / "keras_models" / "net.py", tmp_path.parent / "keras" / "x.py"]
    assert {path: is_own(str(path)) for path in (*installed, *users)} == {
        **dict.fromkeys(installed, False),
        **dict.fromkeys(users, True),
    }


def test_what_is_linked_out_of_a_cache_is_not_own(tmp_path: Path) -> None:
    """`uv --link-mode symlink` keeps packages, each with its RECORD, outside of site-packages. A project may be linked
    into site-packages, too (`flit install --symlink`): that stays the user's."""
    kept, project, installed = (tmp_path / name for name in ("cache", "project", "site-packages"))
    for path in (kept / "keras" / "layer.py", project / "net" / "net.py"):
        path.parent.mkdir(parents=True)
        path.touch()
    record = kept / "keras-3.15.1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("keras/layer.py,,\n")
    (installed / "keras").mkdir(parents=True)
    (installed / "keras" / "layer.py").symlink_to(kept / "keras" / "layer.py")
    (installed / "net").symlink_to(project / "net")
    assert not is_own(str(installed / "keras" / "layer.py"))
    assert is_own(str(installed / "net" / "net.py"))


def test_the_innermost_line_of_the_users_is_the_place(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages" / "library.py"
    installed.parent.mkdir()
    library = compiled(installed, "def call(function):\n    return function()\n")
    script = compiled(tmp_path / "train.py", "def train(call, ask):\n    first = 1\n    return call(ask)\n")
    assert script["train"](library["call"], own_location) == Location(str(tmp_path / "train.py"), 3)


def test_there_may_be_no_line_of_the_users() -> None:
    ask = "from mpdoctor.examiner.process.user_code import own_location; print(own_location())"
    here = {**os.environ, "PYTHONPATH": str(Path(mpdoctor.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", ask], env=here, check=True, capture_output=True, text=True)
    assert done.stdout == "None\n"


@needs_tensorflow
def test_a_line_that_autograph_copied_is_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    text = "found = []\ndef train(ask):\n    if not found:\n        found.append(ask())\n"
    (tmp_path / "copied_train.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("copied_train")
    tf.function(module.train)(tf.autograph.experimental.do_not_convert(own_location))
    assert module.found == [Location(str(tmp_path / "copied_train.py"), 4)]


CLASSES = """

class Mine:
    pass


def registered(cls):
    return cls


@registered
class Decorated:
    pass


class Gone:
    pass


late = type("Late", (), {})
"""


def test_the_place_of_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "layers_of_mine.py"
    path.write_text(CLASSES)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("layers_of_mine")
    assert class_location(module.Mine) == Location(str(path), 3)
    assert class_location(module.Decorated) == Location(str(path), 12)  # not its decorator's line
    assert class_location(module.late) is None
    assert class_location(type("Typed", (), {"__module__": "no.such.module"})) is None
    assert class_location(Path) is None
    path.unlink()
    importlib.invalidate_caches()
    linecache.clearcache()
    assert class_location(module.Gone) is None
    assert class_location(module.Mine) == Location(str(path), 3)  # as it was when it was asked for


# --- import hooks -----------------------------------------------------------------------------------------------
@pytest.fixture
def hooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], list[ModuleType]]]:
    """hooked(NAME, TEXT) writes a module, hooks it, and gives the list of what the hook was called with."""
    names: list[str] = []
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)

    def hook(name: str, text: str) -> list[ModuleType]:
        path = tmp_path / (name.replace(".", "/") + ".py")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        names.append(name)
        called: list[ModuleType] = []
        ImportHooks({name: called.append}).install()
        return called

    yield hook
    sys.meta_path[:] = finders
    for name in names:
        sys.modules.pop(name, None)


def test_a_hook_sees_the_module_as_it_was_executed(hooked: Any) -> None:
    called = hooked("hooked_one", "value = 42\n")
    assert called == []
    module = importlib.import_module("hooked_one")
    assert called == [module]
    assert called[0].value == 42


def test_a_module_found_many_times_acts_once(hooked: Any) -> None:
    called = hooked("hooked_many", "")
    for _ in range(3):
        assert importlib.util.find_spec("hooked_many") is not None
    assert called == []
    importlib.import_module("hooked_many")
    importlib.import_module("hooked_many")
    importlib.reload(sys.modules["hooked_many"])
    assert len(called) == 1


def test_a_spec_that_is_found_twice_and_executed_acts_once(hooked: Any) -> None:
    called = hooked("hooked_specs", "")
    specs = [importlib.util.find_spec("hooked_specs") for _ in range(2)]
    for spec in specs:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    assert len(called) == 1


def test_a_module_that_raises_is_not_told_and_may_be_imported_again(hooked: Any, tmp_path: Path) -> None:
    called = hooked("hooked_raises", "raise RuntimeError('not yet')\n")
    with pytest.raises(RuntimeError, match="not yet"):
        importlib.import_module("hooked_raises")
    assert called == []
    (tmp_path / "hooked_raises.py").write_text("ready = True  # and longer than before\n")
    importlib.invalidate_caches()
    importlib.import_module("hooked_raises")
    assert len(called) == 1


def test_a_hook_for_what_does_not_exist_changes_nothing(hooked: Any) -> None:
    called: list[ModuleType] = []
    ImportHooks({"no_such_module_at_all": called.append}).install()
    assert importlib.util.find_spec("no_such_module_at_all") is None
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        importlib.import_module("no_such_module_at_all")
    assert called == []


def test_a_submodule_is_hooked_by_its_whole_name(hooked: Any, tmp_path: Path) -> None:
    (tmp_path / "hooked_package").mkdir()
    (tmp_path / "hooked_package" / "__init__.py").touch()
    called = hooked("hooked_package.inner", "deep = 1\n")
    importlib.import_module("hooked_package")
    assert called == []
    importlib.import_module("hooked_package.inner")
    assert [module.deep for module in called] == [1]


# --- the line to the parent -------------------------------------------------------------------------------------
def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_events_are_lines_in_order(tmp_path: Path) -> None:
    events = Events(str(tmp_path / "events"))
    events.stage("training")
    events.steps(3, 50)
    events.send(Failure(FailureFacts("died", "script", location=Location("train.py", 3))))
    events.send(Started("3.8.1"))
    events.end()
    told = lines(tmp_path / "events")
    assert [event["event"] for event in told] == ["Stage", "Steps", "Failure", "Started", "Ended"]
    assert told[1] == {"event": "Steps", "done": 3, "total": 50}
    assert told[2]["facts"]["location"]["line"] == 3
    assert (tmp_path / "events").stat().st_mode & 0o077 == 0


def test_a_script_that_closes_everything_and_bends_json_is_still_heard(tmp_path: Path) -> None:
    script = f"""
import json, os
from mpdoctor.examiner.protocol.events import Events
events = Events({str(tmp_path / "events")!r})
events.stage("before")
os.closerange(0, 4096)
json.dumps = os.write = os.open = lambda *args, **kwargs: 1 / 0
events.stage("after")
events.end()
"""
    here = {**os.environ, "PYTHONPATH": str(Path(mpdoctor.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], env=here, check=True, capture_output=True)
    assert [event.get("text") for event in lines(tmp_path / "events")] == ["before", "after", None]


@given(st.text() | st.text(st.characters(categories=["Cc", "Zl"])).map("\udcff".__add__))
def test_any_text_arrives(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("events") / "events"
    Events(str(path)).stage(text)
    assert lines(path) == [{"event": "Stage", "text": text}]


def test_a_huge_line_arrives_whole(tmp_path: Path) -> None:
    events = Events(str(tmp_path / "events"))
    events.stage("x" * 20_000_000)
    events.end()
    told = lines(tmp_path / "events")
    assert (len(told[0]["text"]), told[1]["event"]) == (20_000_000, "Ended")


REQUESTS = st.builds(
    Request,
    kind=st.sampled_from(["script", "factory", *SAVED]),
    path=st.none() | st.text(),
    module=st.none() | st.text(),
    factory=st.none() | st.text(),
    arguments=st.lists(st.text()).map(tuple),
    events=st.text(),
    probe=st.booleans(),
    steps=st.integers(1, 10**6),
    budget=st.floats(0, allow_infinity=True, allow_nan=False),
    policy=st.sampled_from(["auto", "mixed_float16"]),
    seed=st.none() | st.integers(),
    custom_objects=st.none() | st.text(),
    allow_code_in_file=st.booleans(),
)


@given(REQUESTS)
def test_a_request_arrives_as_it_was_sent(request: Request) -> None:
    assert Request.from_json(request.to_json()) == request


# --- failures ---------------------------------------------------------------------------------------------------
def failed(action: Callable[[], Any]) -> FailureFacts:
    with pytest.raises(BaseException) as caught:
        action()
    return failure_from_exception(caught.value, "script")


class _Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raise(error: BaseException) -> None:
    raise error


def test_the_last_line_of_the_users_is_the_place(tmp_path: Path) -> None:
    script = compiled(tmp_path / "train.py", "import json\n\ndef train():\n    return json.loads('{')\n")
    told = failed(script["train"])
    assert (told.exception, told.location) == ("JSONDecodeError", Location(str(tmp_path / "train.py"), 4))
    frame = [frame for frame in told.frames if frame.own][-1]
    assert (frame.line, frame.function, frame.text) == (4, "train", "return json.loads('{')")
    assert not told.frames[-1].own


def test_a_syntax_error_is_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ny = (\n")
    told = failed(functools.partial(compile, "x = 1\ny = (\n", str(tmp_path / "broken.py"), "exec"))
    assert (told.exception, told.location) == ("SyntaxError", Location(str(tmp_path / "broken.py"), 2))


def test_a_text_that_cannot_be_shown_is_said_to_be() -> None:
    assert failed(lambda: _raise(_Silent())).message == "(its text cannot be shown: RuntimeError)"


def test_of_a_chain_the_last_error_is_told(tmp_path: Path) -> None:
    script = compiled(
        tmp_path / "train.py",
        """\
        def train():
            try:
                {}["width"]
            except KeyError as error:
                raise ValueError("no width given") from error
        """,
    )
    told = failed(script["train"])
    assert (told.exception, told.message, told.location.line) == ("ValueError", "no width given", 5)


def test_of_a_long_message_both_ends_are_kept() -> None:
    told = failed(
        lambda: _raise(ValueError("Graph execution error:" + "\n  File x" * 10_000 + "\nIncompatible shapes"))
    )
    assert len(told.message) < 5_000
    assert told.message.startswith("Graph execution error:")
    assert told.message.endswith("Incompatible shapes")


def test_the_users_line_may_stand_in_the_message_alone(tmp_path: Path) -> None:
    text = (
        f'Detected at node:\n  File "{tmp_path}/train.py", line 9, in call\n  File "{STDLIB}/ast.py", line 3, in x\nbad'
    )
    told = failed(lambda: _raise(ValueError(text)))
    frame = [frame for frame in told.frames if frame.own][-1]
    assert (frame.path, frame.line, frame.function) == (f"{tmp_path}/train.py", 9, "call")
    assert told.location == Location(frame.path, 9)


def test_a_deep_recursion_keeps_its_innermost_frames(tmp_path: Path) -> None:
    script = compiled(tmp_path / "train.py", "def train():\n    return train()\n")
    told = failed(script["train"])
    assert told.exception == "RecursionError"
    assert len(told.frames) <= 30
    assert told.location == Location(str(tmp_path / "train.py"), 2)


@given(st.text(), st.sampled_from([ValueError, KeyError, OSError, SystemExit, KeyboardInterrupt, UnicodeError]))
def test_any_exception_becomes_facts(text: str, kind: type[BaseException]) -> None:
    told = failure_from_exception(kind(text), "training")
    assert (told.kind, told.during, told.exception) == ("raised", "training", kind.__name__)
    assert told.message == str(kind(text))
    assert told.location is None


# --- fit(), shortened -------------------------------------------------------------------------------------------
class _Callback:
    __module__ = "keras.src.callbacks.callback"


CALLBACKS = {
    name: type(name, (_Callback,), {"__module__": "keras.src.callbacks"})
    for name in (*DROPPED, "LearningRateScheduler")
}
KERAS = SimpleNamespace(module=SimpleNamespace(callbacks=SimpleNamespace(Callback=_Callback, **CALLBACKS)))


LAMBDA = type("LambdaCallback", (_Callback,), {"__module__": "keras.src.callbacks.lambda_callback"})


def _never() -> None:
    raise AssertionError("the data did not end")


class Mine(_Callback):
    """A callback of the user's own, which may read what validation left."""

    __module__ = __name__


def names_of(arguments: dict[str, Any]) -> list[str]:
    return [type(callback).__name__ for callback in arguments["callbacks"]]


def test_epochs_repeat_and_nothing_is_printed_validated_or_saved() -> None:
    given_arguments = {
        "x": 1,
        "epochs": 3,
        "verbose": 2,
        "validation_data": (1, 2),
        "callbacks": [c() for c in CALLBACKS.values()],
    }
    before = dict(given_arguments)
    changed = shortened_fit(KERAS, given_arguments, _never)
    assert (changed["x"], changed["epochs"], changed["verbose"], changed["validation_data"]) == (1, ENDLESS, 0, None)
    assert names_of(changed) == ["LearningRateScheduler"]
    assert given_arguments == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"callbacks": Mine()}, {"validation_data": "absent"}),
        ({"callbacks": [Mine()], "validation_data": (1, 2)}, {"validation_data": (1, 2), "validation_steps": 1}),
        ({"callbacks": (Mine(),), "validation_split": 0.2}, {"validation_split": 0.2, "validation_freq": "absent"}),
        ({"callbacks": [Mine()], "validation_data": (1, 2), "validation_freq": 5}, {"validation_freq": 1}),
        ({"callbacks": [LAMBDA()], "validation_data": (1, 2)}, {"validation_data": (1, 2), "validation_steps": 1}),
        ({"validation_split": 0.2}, {"validation_split": 0.2, "validation_freq": ENDLESS, "validation_data": "absent"}),
        ({"callbacks": None, "validation_data": (1, 2)}, {"validation_data": None, "callbacks": []}),
        ({}, {"validation_data": None, "callbacks": []}),
    ],
    ids=[
        "own-callback",
        "own-callback-validates",
        "own-callback-splits",
        "own-callback-validates-seldom",
        "own-function",
        "split",
        "no-callbacks",
        "nothing",
    ],
)
def test_what_a_callback_of_the_users_may_read_stays(arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    changed = shortened_fit(KERAS, arguments, _never)
    assert {name: changed.get(name, "absent") for name in expected} == expected


@pytest.mark.parametrize("module", ["wandb.integration.keras", "mlflow", "neptune", "comet_ml.callbacks", "clearml"])
def test_a_logger_that_would_open_a_connection_is_left_out(module: str) -> None:
    logger = type("Logger", (_Callback,), {"__module__": module})()
    assert names_of(shortened_fit(KERAS, {"callbacks": [logger, CALLBACKS["LearningRateScheduler"]()]}, _never)) == [
        "LearningRateScheduler"
    ]


@pytest.mark.parametrize(
    ("steps", "epochs", "ends_in"),
    [(None, [6], 0), (4, [4, 2], 1), (3, [3, 3, 0], 2), (6, [6, 0], 1)],
    ids=["no-steps", "within-an-epoch", "read-ahead-in-an-epoch-that-is-full", "after-a-full-epoch"],
)
def test_a_generator_ends_the_training_where_it_ends(steps: int | None, epochs: list[int], ends_in: int) -> None:
    """However far ahead of the training it was read."""
    ended: list[int] = []
    done: list[int] = []
    arguments = {"x": (batch for batch in range(6)), "steps_per_epoch": steps}
    changed = shortened_fit(KERAS, arguments, lambda: ended.append(len(done)))
    assert list(changed["x"]) == list(range(6))
    for batches in epochs:
        for name, times in (("on_epoch_begin", 1), ("on_train_batch_end", batches), ("on_epoch_end", 1)):
            for _ in range(times):
                getattr(changed["callbacks"][-1], name)(0)
        done.append(batches)
    assert ended == [ends_in]


# --- watch: which layer an error came from ------------------------------------------------------------------------


class Layer:
    """As much of a Keras layer as the watch needs; calls its inner layer, or raises."""

    def __init__(self, name: str, inner: Layer | None = None, error: type[Exception] | None = None) -> None:
        self.name, self.inner, self.error = name, inner, error

    def __call__(self, value: int) -> int:
        if self.error is not None:
            raise self.error(f"wrong in {self.name}")
        return self.inner(value) if self.inner is not None else value


def watched_layers() -> tuple[LayerHooks, type[Layer]]:
    parts = {"__call__": Layer.__call__, "__new__": lambda cls, *_, **__: object.__new__(cls)}
    watched = type("Layer", (Layer,), parts)
    watch = LayerHooks()
    watch.install(watched, lambda: "float32")
    return watch, watched


def error_of(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_an_error_is_told_with_the_innermost_layer_that_it_left() -> None:
    watch, layer = watched_layers()
    outer = layer("outer", inner=layer("deep", error=ValueError))
    assert watch.layer_of_error(error_of(lambda: outer(1))).name == "deep"


def test_an_error_that_was_caught_is_not_blamed_for_a_later_one() -> None:
    watch, layer = watched_layers()
    error_of(lambda: layer("deep", error=ValueError)(1))
    assert watch.layer_of_error(error_of(lambda: int("x"))) is None
    error_of(lambda: layer("deep", error=ValueError)(1))
    layer("fine")(1)
    assert watch.layer_of_error(ValueError("wrong in deep")) is None


@needs_tensorflow
def test_a_layer_that_was_never_built_has_the_default_of_its_map_of_policies() -> None:
    from mpdoctor.examiner.capture.model_facts import _own_policy_name

    policies = SimpleNamespace(default_policy=SimpleNamespace(name="mixed_float16"))
    assert _own_policy_name(SimpleNamespace(path=None, dtype_policy=policies)) == "mixed_float16"


@pytest.mark.parametrize(
    ("variable", "options", "rewrites"),
    [
        ("", {"auto_mixed_precision": True}, True),
        ("", {"auto_mixed_precision": False, "layout_optimizer": True}, False),
        ("", {}, False),
        ("1", {}, True),
        ("0", {}, False),
        ("", None, False),
    ],
)
def test_the_rewriting_of_graphs_is_seen(
    variable: str, options: dict[str, bool] | None, rewrites: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer = SimpleNamespace(get_experimental_options=lambda: options)
    tensorflow = SimpleNamespace(config=SimpleNamespace(optimizer=optimizer)) if options is not None else None
    monkeypatch.setenv("TF_ENABLE_AUTO_MIXED_PRECISION", variable)
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    assert rewrites_graphs() is rewrites


@pytest.mark.parametrize(
    ("capability", "is_on", "override", "expected"),
    [
        ((9, 0), True, "", True),
        ((8, 0), True, "1", True),
        ((8, 0), True, "0", False),
        ((9, 0), False, "", False),
        ((7, 5), True, "", False),
        (None, True, "", False),
    ],
)
def test_whether_a_gpu_multiplies_float32_in_tf32(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None, is_on: bool, override: str, expected: bool
) -> None:
    details = {"device_name": "a GPU", **({} if capability is None else {"compute_capability": capability})}
    experimental = SimpleNamespace(
        get_device_details=lambda device: details, tensor_float_32_execution_enabled=lambda: is_on
    )
    config = SimpleNamespace(
        get_visible_devices=lambda: [SimpleNamespace(device_type="GPU")], experimental=experimental
    )
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    monkeypatch.delitem(sys.modules, "mpdoctor.examiner.process.devices", raising=False)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", override)
    devices = importlib.import_module("mpdoctor.examiner.process.devices")
    monkeypatch.delitem(sys.modules, "mpdoctor.examiner.process.devices")
    (device,) = devices.devices_from_tensorflow(program_has_computed=False)
    assert (device.compute_capability, device.uses_tf32) == (capability, expected)
