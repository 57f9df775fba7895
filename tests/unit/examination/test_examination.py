"""The parent's end of the examiner: facts and failures that remain of a process that ends badly.

None of it needs TensorFlow: an interpreter that only claims to have it runs scripts that never ask for it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from live_processes import is_running

import mpdoctor
from mpdoctor.examination.examination_facts import ExaminerCrashed
from mpdoctor.examination.run import examine
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

BY_GROUP = pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no process groups")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's directory, where no virtual environment is active."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    directory = tmp_path / "project" / "deep"
    directory.mkdir(parents=True)
    monkeypatch.chdir(directory)
    return directory


def seen(project: Path, script: str, python: Path | None = None, **options: Any) -> ExaminationFacts:
    (project / "train.py").write_text(textwrap.dedent(script), encoding="utf-8")
    target = target_from_text(str(project / "train.py"))
    return examine(target, Settings((target,), python=python, **options), SilentProgress(), "auto")


# --- a process that ends badly ----------------------------------------------------------------------------------
CHILD = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
with open("child", "w") as file:
    file.write(str(child.pid))
"""


@BY_GROUP
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(
    ("end", "kind"),
    [("time.sleep(300)\n", "timed-out"), ("os._exit(3)\n", "died"), ("raise KeyError('x')\n", "raised")],
    ids=["timed-out", "left", "raised"],
)
def test_no_child_of_the_scripts_is_left(project: Path, claiming: Path, end: str, kind: str) -> None:
    started = time.monotonic()
    failure = seen(project, CHILD + end, claiming, timeout=1.5 if kind == "timed-out" else 25).failure
    assert failure.kind == kind
    assert time.monotonic() - started < 30
    child = int((project / "child").read_text())
    for _ in range(100):  # a signal takes its time
        if not is_running(child):
            break
        time.sleep(0.05)
    assert not is_running(child)


def test_time_is_up_while_the_script_waits(project: Path, claiming: Path) -> None:
    script = """\
        import sys, time
        print("waiting", flush=True)
        print("for rain", file=sys.stderr, flush=True)
        time.sleep(300)
        """
    facts = seen(project, script, claiming, timeout=1.5)
    assert (facts.failure.kind, facts.failure.during, facts.failure.last_words) == ("timed-out", "script", "for rain")
    assert 1.5 <= facts.failure.seconds < 20
    assert (facts.failure.signal, facts.failure.exit_code) == (None, None)
    assert facts.model_status[0] == "failed"


def test_one_that_ignores_signals_is_ended_all_the_same(project: Path, claiming: Path) -> None:
    script = """\
        import signal, time
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
        """
    assert seen(project, script, claiming, timeout=1).failure.kind == "timed-out"


@pytest.mark.parametrize(
    ("end", "signal_number", "exit_code"),
    [("os.abort()", signal.SIGABRT, None), ("os._exit(0)", None, 0), ("os._exit(256 + 9)", None, 9)],
    ids=["abort", "exit-0", "exit-code-wraps"],
)
def test_how_a_process_died(
    project: Path, claiming: Path, end: str, signal_number: int | None, exit_code: int | None
) -> None:
    failure = seen(project, f"import os\n{end}\n", claiming).failure
    assert (failure.kind, failure.signal, failure.exit_code) == ("died", signal_number, exit_code)
    assert not failure.saw_model


def test_fifty_megabytes_on_both_streams_leave_the_last_words(project: Path, claiming: Path) -> None:
    script = """\
        import os, sys
        for _ in range(50):
            os.write(1, b"o" * 1_000_000)  # one line without an end
            os.write(2, b"e" * 1_000_000)
        os.write(2, b"\\nI0000 00:00:1 port.cc:1] a log line of TensorFlow's\\n\\xff\\xfe the end\\n")
        os._exit(5)
        """
    failure = seen(project, script, claiming).failure
    assert (failure.kind, failure.exit_code) == ("died", 5)
    assert failure.last_words.endswith("\ufffd\ufffd the end")
    assert "port.cc" not in failure.last_words
    assert len(failure.last_words) <= 2000


def test_a_defect_of_ours_is_told_as_such(project: Path, claiming: Path) -> None:
    script = "import sys\nsys.modules['mpdoctor.examiner.session'].Session.models = None\n"
    with pytest.raises(ExaminerCrashed, match="TypeError"):
        seen(project, script, claiming)


# --- events -----------------------------------------------------------------------------------------------------
def test_what_is_no_event_is_passed_over_and_said(project: Path, claiming: Path) -> None:
    script = """\
        import os, sys
        folder = os.path.dirname(sys.orig_argv[-1])
        with open(os.path.join(folder, "events.jsonl"), "ab") as file:
            file.write(b'{"event": "Sta\\n\\xff\\xfe\\n[1]\\n{"text": 1}\\n')
            file.write(b'{"event": "Curse", "facts": {"kind": "died"}}\\n')
            file.write(b'{"event": "ModelSeen", "model": 7}\\n')  # which no event has described
            model = b'{"id": "m", "name": "m", "class_name": "", "policy": "", "keras": {}}'
            file.write(b'{"event": "Model", "number": 1, "layers_of": 7, "facts": ' + model + b'}\\n')
        with open(os.path.join(folder, "events.jsonl.trains"), "w") as file:
            file.write("no number")
        sys.exit("data is missing")
        """
    facts = seen(project, script, claiming)
    assert (facts.failure.kind, facts.failure.message, facts.failure.exit_code) == ("exited", "data is missing", 1)
    assert facts.passed_over.startswith("7 lines of the record of this examination could not be read")


def test_what_a_script_printed_last_is_known_where_it_ended_itself_and_shown_where_that_is_asked_for(
    project: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    script = """\
        import os, sys
        os.write(1, b"no GPU was found\\n")
        sys.exit(3)
        """
    assert seen(project, script).failure.last_words == "no GPU was found"
    assert b"no GPU" not in capfdbinary.readouterr().err
    assert seen(project, script, show_output=True).failure.exit_code == 3
    assert b"no GPU was found\n" in capfdbinary.readouterr().err
    assert seen(project, "import sys\nprint('all well')\nsys.exit(0)\n").failure.last_words == ""


def test_an_end_that_the_script_tells_is_no_clean_bill(project: Path, claiming: Path) -> None:
    script = """\
        import os, sys, time
        folder = os.path.dirname(sys.orig_argv[-1])
        with open(os.path.join(folder, "events.jsonl"), "ab") as file:
            file.write(b'{"event": "Ended"}\\n')
        time.sleep(300)
        """
    failure = seen(project, script, claiming).failure
    assert (failure.kind, failure.exit_code) == ("exited", 0)


def test_an_end_in_the_middle_of_an_event_is_told_as_a_death(project: Path, claiming: Path) -> None:
    script = """\
        import os, sys
        folder = os.path.dirname(sys.orig_argv[-1])
        with open(os.path.join(folder, "events.jsonl"), "ab") as file:
            file.write(b'{"event": "Ended"')
        os._exit(0)
        """
    assert seen(project, script, claiming).failure.kind == "died"


def test_the_private_folder_is_gone_afterwards(project: Path, claiming: Path) -> None:
    script = "import os, sys\nprint(os.path.dirname(sys.orig_argv[-1]), file=sys.stderr, flush=True)\nos._exit(1)\n"
    folder = Path(seen(project, script, claiming).failure.last_words)
    assert folder.name.startswith("mpdoctor-")
    assert not folder.exists()


# --- what is kept, and looked at by hand --------------------------------------------------------------------------
FAILING = """\
    import sys
    def inner():
        raise KeyError("the column is missing")
    print("printed", "to stderr", file=sys.stderr)
    inner()
    """


def names_of(path: Path) -> list[str]:
    """The events of the examiner itself, without the supervisor's last one."""
    names = [json.loads(line)["event"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [name for name in names if name != "Exited"]


def test_a_run_is_kept(project: Path, claiming: Path) -> None:
    kept = project / "kept"
    kept.mkdir()
    for _ in range(2):
        seen(project, FAILING, claiming, keep_run=kept, script_args=("--token", "x"))
    assert sorted(path.name for path in kept.iterdir()) == ["run-1", "run-2"]
    run = kept / "run-1"
    assert sorted(path.name for path in run.iterdir()) == ["events.jsonl", "request.json", "stderr.txt"]
    assert run.stat().st_mode & 0o077 == 0
    assert Request.from_json((run / "request.json").read_text(encoding="utf-8")).arguments == ("--token", "x")
    events = names_of(run / "events.jsonl")
    assert events[0] == "Started" and {"Failure", "Ended"} <= set(events)
    assert (run / "stderr.txt").read_text(encoding="utf-8") == "printed to stderr\n"


@pytest.mark.parametrize(
    ("target", "given", "seed"),
    [("train.py", None, None), ("train.py", 3, 3), ("train.py:build", None, 0), ("train.py:build", 3, 3)],
)
def test_what_is_trained_on_made_up_batches_says_the_same_twice(
    target: str, given: int | None, seed: int | None, project: Path, claiming: Path
) -> None:
    (project / "train.py").write_text(FAILING, encoding="utf-8")
    (project / "kept").mkdir()
    settings = Settings((target_from_text(target),), python=claiming, seed=given, keep_run=project / "kept")
    examine(settings.targets[0], settings, SilentProgress(), "auto")
    (written,) = (project / "kept").glob("run-1/request.json")
    assert Request.from_json(written.read_text(encoding="utf-8")).seed == seed


def test_a_kept_request_runs_in_the_foreground(project: Path, claiming: Path) -> None:
    kept = project / "kept"
    kept.mkdir()
    seen(project, FAILING, claiming, keep_run=kept)
    start = Path(mpdoctor.__file__).parent / "examiner" / "start.py"
    command = [claiming, start, "--foreground", kept / "run-1" / "request.json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    for shown in ("[Started]\n", "printed to stderr\n", "[Failure]\n", "    exception: 'KeyError'\n", "[Ended]\n"):
        assert shown in run.stderr
    assert "line 3, in inner\n" in run.stderr and "KeyError: 'the column is missing'\n" in run.stderr
    assert str(Path("mpdoctor", "examiner", "main.py")) in run.stderr, "the whole traceback"
    (written,) = kept.glob("run-1/foreground-*/events.jsonl")
    assert names_of(written) == names_of(kept / "run-1" / "events.jsonl")


def test_a_defect_of_ours_shows_its_traceback_in_the_foreground(project: Path, claiming: Path) -> None:
    script = "import sys\nsys.modules['mpdoctor.examiner.session'].Session.models = None\n"
    kept = project / "kept"
    kept.mkdir()
    with pytest.raises(ExaminerCrashed):
        seen(project, script, claiming, keep_run=kept)
    start = Path(mpdoctor.__file__).parent / "examiner" / "start.py"
    command = [claiming, start, "--foreground", kept / "run-1" / "request.json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 70
    assert "[Crashed]\n" in run.stderr and "TypeError" in run.stderr
