"""What the examiner of a saved file can still do to the machine, once it has confined itself: nearly nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from checking import ROOT, check, contents, needs_tensorflow
from walls import CONFINEMENT, check_without

from mpdoctor.examiner.process import confinement

UNCONFINED = confinement.protection().partition("not confined: ")[2]
needs_landlock = pytest.mark.skipif(bool(UNCONFINED), reason=UNCONFINED)
DENIED = {"EACCES", "EPERM", "EXDEV", "EROFS"}

# Each is one expression. `old` is a file outside of the scratch directory, `folder` a directory; `kept` one inside.
FORBIDDEN = {
    "write": "open(old, 'r+')",
    "append": "open(old, 'a')",
    "create": "open(f'{outside}/new', 'w')",
    "truncate": "os.truncate(old, 0)",
    "remove a file": "os.unlink(old)",
    "remove a directory": "os.rmdir(folder)",
    "rename": "os.rename(old, f'{outside}/renamed')",
    "move in": "os.rename(old, f'{scratch}/stolen')",
    "move out": "os.rename(kept, f'{outside}/new')",
    "make a directory": "os.mkdir(f'{outside}/new')",
    "link out": "os.link(kept, f'{outside}/new')",
    "link in": "os.link(old, f'{scratch}/linked')",
    "symbolic link": "os.symlink(old, f'{outside}/new')",
    "write through a link": "os.symlink(old, f'{scratch}/way-out') or open(f'{scratch}/way-out', 'a')",
    "climb out": "open(f'{scratch}/../new', 'w')",
    "pipe": "os.mkfifo(f'{outside}/new')",
    "Unix socket": "socket.socket(socket.AF_UNIX).bind(f'{outside}/new')",
    "a kernel setting": "open('/proc/sys/kernel/core_pattern', 'r+')",
    "terminal": "os.open('/dev/tty', os.O_WRONLY)",
    "full device": "os.open('/dev/full', os.O_WRONLY)",
    "beside the events": "open(events + '.trains', 'w')",
    "a later thread": "in_a_thread(open, f'{outside}/new', 'w')",
    "a child": "in_a_child(f'echo hi > {outside}/new')",
    "a child of its own session": "in_a_child(f'setsid sh -c \"echo hi > {outside}/new\"')",
}
# Needs a newer Landlock than writing does.
FORBIDDEN_SINCE = {
    "a connection": (4, "socket.create_connection(('127.0.0.1', listening), 5)"),
    "a server": (4, "socket.create_server(('127.0.0.1', 0))"),
    "an abstract Unix socket": (6, "socket.socket(socket.AF_UNIX).connect(abstract)"),
    "a signal": (6, "os.kill(os.getppid(), 0)"),
}
ALLOWED = {
    "write": "open(f'{scratch}/a', 'w').write('x')",
    "make a directory": "os.makedirs(f'{scratch}/b/c')",
    "rename": "os.rename(kept, f'{scratch}/cache/kept')",
    "remove": "os.unlink(doomed)",
    "truncate": "os.truncate(f'{scratch}/long', 1)",
    "symbolic link": "os.symlink(old, f'{scratch}/pointer')",
    "read": "open(old).read()",
    "read through a link": "os.symlink(old, f'{scratch}/pointing') or open(f'{scratch}/pointing').read()",
    "execute": "in_a_child('true')",
    "null device": "open(os.devnull, 'w').write('x')",
    "null device of a shell": "in_a_child('echo hi > /dev/null')",
    "temporary file": "tempfile.NamedTemporaryFile().write(b'x')",
    "events": "os.open(events, os.O_WRONLY | os.O_APPEND | os.O_CREAT)",
    "cache": "open(os.environ['XDG_CACHE_HOME'] + '/x', 'w')",
    "a later thread": "in_a_thread(open, f'{scratch}/d', 'w')",
    "a socket pair": "socket.socketpair()",
    "a signal to itself": "os.kill(os.getpid(), 0)",
}
CONFINED = """\
import errno, json, os, socket, subprocess, sys, tempfile, threading
from mpdoctor.examiner.process.confinement import confine

scratch, events, outside, old, listening, abstract, expressions = json.loads(sys.argv[1])
folder, kept, doomed = outside + "/folder", scratch + "/kept", scratch + "/doomed"


def in_a_thread(function, *given):
    raised = []

    def run():
        try:
            function(*given)
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def in_a_child(command):
    if os.system(command + " 2>/dev/null"):
        raise PermissionError(errno.EACCES, command)


def outcome(expression):
    try:
        eval(expression)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return ""


reason = confine(scratch, events)
print(json.dumps([reason, {expression: outcome(expression) for expression in expressions}]))
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What came of each expression, in one confined process: "" or the name of the error."""
    import socket

    place = tmp_path_factory.mktemp("confined")
    outside, scratch, events = place / "outside", place / "scratch", place / "events.jsonl"
    (outside / "folder").mkdir(parents=True)
    scratch.mkdir()
    events.touch()
    old = outside / "old"
    old.write_text("old")
    for name in ("kept", "doomed", "long"):
        (scratch / name).write_text(name)
    abstract = f"\0mpdoctor-{os.getpid()}"
    expressions = [*FORBIDDEN.values(), *(text for _, text in FORBIDDEN_SINCE.values()), *ALLOWED.values()]
    before = contents(outside)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(abstract)
        unix.listen()
        listening = server.getsockname()[1]
        given = json.dumps([str(scratch), str(events), str(outside), str(old), listening, abstract, expressions])
        done = subprocess.run(
            [sys.executable, "-c", CONFINED, given],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert contents(outside) == before
    reason, outcomes = json.loads(done.stdout)
    assert reason == ""
    return outcomes


@needs_landlock
@pytest.mark.parametrize("expression", FORBIDDEN.values(), ids=FORBIDDEN)
def test_it_changes_nothing_outside(tried: dict[str, str], expression: str) -> None:
    assert tried[expression] in DENIED


@needs_landlock
@pytest.mark.parametrize(("since", "expression"), FORBIDDEN_SINCE.values(), ids=FORBIDDEN_SINCE)
def test_it_reaches_nobody(tried: dict[str, str], since: int, expression: str) -> None:
    abi = int(confinement.protection().partition("(ABI ")[2].partition(")")[0])
    if abi < since:
        pytest.skip(f"Landlock's ABI is {abi} here, and this came with {since}")
    assert tried[expression] in DENIED


@needs_landlock
@pytest.mark.parametrize("expression", ALLOWED.values(), ids=ALLOWED)
def test_it_works_in_its_scratch_directory(tried: dict[str, str], expression: str) -> None:
    assert tried[expression] == ""


@needs_landlock
def test_a_thread_that_was_there_before_is_told(tmp_path: Path) -> None:
    program = """
        import sys, threading
        from mpdoctor.examiner.process.confinement import confine, protection

        end = threading.Event()
        threading.Thread(target=end.wait).start()
        print(confine(sys.argv[1]), protection(), sep="\\n")
        end.set()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    reason, told = done.stdout.splitlines()
    assert "a thread was running" in reason
    assert told == f"not confined: {reason}"


@pytest.mark.parametrize(
    ("error", "words"),
    [("ENOSYS", "built without Landlock"), ("EOPNOTSUPP", "switched off"), ("EPERM", "forbidden here")],
)
def test_a_kernel_without_it_is_told_and_lived_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: str, words: str
) -> None:
    import errno

    def refuse(number: int, *arguments: object) -> int:
        raise OSError(getattr(errno, error), "no")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(confinement, "_system_call", refuse)
    monkeypatch.setattr(confinement, "_outcome", None)
    if os.uname().machine in confinement._MACHINES:
        assert words in confinement.confine(str(tmp_path))
        assert confinement.protection().startswith("not confined: ")


def test_another_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(confinement, "_outcome", None)
    assert confinement.protection() == "not confined: Landlock is a part of Linux, and this is darwin"


# --- live -----------------------------------------------------------------------------------------------------------
# A user's own module, trusted with --custom-objects, that does what code in a file could do as well.
WRITER = """\
import os, sys
import tensorflow as tf


class Doubled(tf.keras.layers.Layer):
    def call(self, x):
        return x * 2


for path in ("written.txt", os.path.expanduser("~/mpdoctor-was-here")):
    try:
        with open(path, "w") as file:
            file.write("x")
    except OSError as error:
        print(error, file=sys.stderr)
os.system("echo hi > by-the-shell.txt")
"""


def with_writer(directory: Path, folder: Path) -> list[str]:
    (folder / "own.keras").write_bytes((directory / "own.keras").read_bytes())
    (folder / "writer.py").write_text(WRITER)
    return ["own.keras", "--custom-objects", "writer", "--steps", "2"]


@pytest.mark.slow
@needs_landlock
@needs_tensorflow
def test_code_that_a_check_is_given_writes_nothing(saved_models, tmp_path: Path) -> None:
    arguments = with_writer(saved_models("3"), tmp_path)
    done = check(*arguments, directory=tmp_path, environment={"HOME": str(tmp_path)})
    assert done.report["probes"], str(done)
    assert done.report["environment"]["Saved files"].startswith("confined by Landlock")
    assert done.report["targets"][0]["files_written"] == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["own.keras", "writer.py"]


@needs_tensorflow
@pytest.mark.slow
def test_without_confinement_the_saved_code_writes_files(saved_models, tmp_path: Path) -> None:
    """So that the test above can fail."""
    arguments = with_writer(saved_models("3"), tmp_path)
    done = check_without(CONFINEMENT, *arguments, directory=tmp_path, environment={"HOME": str(tmp_path)})
    assert done.report["probes"], str(done)
    assert {"written.txt", "by-the-shell.txt", "mpdoctor-was-here"} <= {path.name for path in tmp_path.iterdir()}
