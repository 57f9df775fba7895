"""A program that is examined with edited text does what it does once its files are edited; and no file is touched.

None of it needs TensorFlow: the interpreter only claims to have it. What a program sees of itself it adds to a file
that the variable SAYS_INTO names.
"""

from __future__ import annotations

import json
import os
import py_compile
import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import mpdoctor
from mpdoctor.examination.run import examine
from mpdoctor.examiner.process.edited_source import EditedSource, read_edited, write_edited
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

HELPERS = """
--- tell.py
import os

def tell(*told):
    with open(os.environ["SAYS_INTO"], "a", encoding="utf-8") as file:
        print(*told, sep="|", file=file)
--- starts.py
import subprocess
import sys
import tell

def python(*arguments, **options):
    done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    tell.tell(arguments, done.returncode, done.stdout.decode(), done.stderr.decode())
--- seen.py
import inspect
import traceback
import tell

def seen(*things):
    for thing in things:
        tell.tell(inspect.getsource(thing), inspect.getsourcelines(thing)[1])
    try:
        things[0]()
    except Exception:
        tell.tell(traceback.format_exc().split("\\n", 3)[3])
"""
PART = """
--- part.py
# one line, OLD
def value():
    return "OLD"
"""

# The files of each program. In the edited text every OLD is NEW, and one more line begins the file.
PROGRAMS = {
    "script": """
--- train.py
import tell
tell.tell("OLD", __file__, __name__, __spec__)
""",
    "script that raises": """
--- train.py
def inner():
    raise KeyError("OLD")

inner()  # OLD
""",
    "script that is no Python": """
--- train.py
name = "OLD
""",
    "source of a script": """
--- train.py
from seen import seen

def f():
    raise ValueError("OLD")  # OLD

class A:
    name = "OLD"

seen(f, A)
""",
    "module": """
--- train.py
import tell, part
tell.tell(part.value(), part.__cached__)
"""
    + PART,
    "source of a module": """
--- train.py
import part
from seen import seen
seen(part.f, part.A)
--- part.py
import dataclasses

@dataclasses.dataclass
class A:
    x: str = "OLD"

def f():
    raise ValueError("OLD")
""",
    "lines that are read again": """
--- train.py
import linecache, part, tell
linecache.checkcache()
tell.tell(*linecache.getlines(part.__file__))
linecache.clearcache()
tell.tell(*linecache.updatecache(part.__file__), linecache.getline("part.py", 2))
"""
    + PART,
    "package": """
--- train.py
import tell, pkg.sub.deep
tell.tell(pkg.name, pkg.sub.deep.value())
--- pkg/__init__.py
name = "OLD"
--- pkg/sub/__init__.py
--- pkg/sub/deep.py
from .. import name
from .sibling import what

def value():
    return name, what, "OLD"
--- pkg/sub/sibling.py
what = "OLD"
""",
    "namespace package": """
--- train.py
import tell, space.inner.part
tell.tell(space.inner.part.what)
--- space/inner/part.py
what = "OLD"
""",
    "path that is relative": """
--- train.py
import os, sys
sys.path.insert(0, "library")
import tell, other
from seen import seen
tell.tell(other.what)
seen(other.f)
os.chdir("library")
tell.tell(other.what)
--- library/other.py
what = "OLD"

def f():
    raise ValueError("OLD")
""",
    "reloaded, run and read": """
--- train.py
import importlib, pkgutil, runpy, tell, part
importlib.reload(part)
tell.tell(part.value())
tell.tell(runpy.run_path(part.__file__)["value"](), runpy.run_module("part")["value"]())
tell.tell(pkgutil.get_data("pkg", "sub.py"), part.__loader__.get_source("part"))
--- pkg/__init__.py
--- pkg/sub.py
what = "OLD"
"""
    + PART,
    "neighbours of the library": """
--- train.py
import json, token, tell, part
from seen import seen
tell.tell(json.what, token.what)
seen(part.f)
--- part.py
def f():
    raise ValueError("OLD")
--- json.py
what = "OLD"
--- token.py
import os
what = "OLD"
place = os.path.join(os.path.dirname(os.__file__), "token.py")
exec(compile(open(place).read(), place, "exec"))
""",
    "multiprocessing": """
--- train.py
import multiprocessing, tell, part

def work(queue):
    queue.put(("OLD", part.value()))

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        tell.tell(method, queue.get(timeout=30))
        process.join()
"""
    + PART,
    "a module of a package": """
--- train.py
import multiprocessing
from . import part, tell
from .inner import deep

def work(queue):
    queue.put(("OLD", deep.value(), __name__))

if __name__ == "__main__":
    tell.tell(part.value(), deep.value(), __package__ == part.__package__, __spec__.name.rpartition(".")[2])
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    tell.tell(queue.get(timeout=30))
    process.join()
--- inner/__init__.py
--- inner/deep.py
from ..part import value
"""
    + PART,
    "started script": """
--- train.py
from starts import python
python("child.py", "x")
python("below/child.py", "x")
python("-B", "-W", "error", "ends.py")
python("raises.py")
python("exits.py")
python("again.py")
--- again.py
import runpy
print("OLD", __name__)
if __name__ == "__main__":
    runpy.run_path(__file__, run_name="again")
--- child.py
import sys, os, part
from part import value
print("OLD", value(), sys.argv, __name__, __file__, __spec__, __package__, type(__loader__).__name__)
print(sys.path[:3], sorted(globals()))
--- below/child.py
import sys
print("OLD", __file__, sys.path[:3])
--- ends.py
import atexit
atexit.register(print, "OLD")
--- raises.py
import sys, traceback
sys.excepthook = lambda *error: print(traceback.format_exception_only(*error[:2]))
raise ValueError("OLD")
--- exits.py
import sys
print("OLD")
sys.exit(3)
"""
    + PART,
    "started module": """
--- train.py
from starts import python
python("-m", "child", "x")
python("-m", "pkg")
python("-c", "import part; print(part.value())")
python("-m", "pdb", "-c", "continue", "-c", "quit", "child.py")
--- child.py
import sys
print("OLD", __name__, __spec__.name if __spec__ else "", sys.argv[1:])
--- pkg/__init__.py
name = "OLD"
--- pkg/__main__.py
from . import name
print(name, "OLD")
"""
    + PART,
    "child of a child": """
--- train.py
from starts import python
python("child.py")
--- child.py
import subprocess, sys, multiprocessing

def work(x):
    return x, "OLD"

if __name__ == "__main__":
    print(subprocess.check_output([sys.executable, "grandchild.py"]))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1]))
--- grandchild.py
import part
print("OLD", part.value())
"""
    + PART,
    "another sitecustomize": """
--- train.py
import os
from starts import python
os.environ["PYTHONPATH"] += os.pathsep + os.path.abspath("site")
python("child.py")
python("-m", "child")
--- child.py
import sys, sitecustomize
print("OLD", sitecustomize.what, sitecustomize.__file__, sys.path[:3])
--- site/sitecustomize.py
what = "OLD"
""",
    "tests of its own": """
--- train.py
import unittest, tell, test_part
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromModule(test_part).run(result)
tell.tell(result.testsRun, [text for _, text in result.failures])
--- test_part.py
import unittest

class Test(unittest.TestCase):
    def test(self):
        self.assertEqual("OLD", "x")  # OLD
""",
}
ENCODINGS = {
    "latin-1": ("# coding: latin-1\n{}".format, "latin-1", "\n"),
    "a mark": ("\ufeff{}".format, "utf-8", "\n"),
    "a mark and a cookie": ("\ufeff# -*- coding: utf-8 -*-\n{}".format, "utf-8", "\n"),
    "CRLF": ("# x\n{}".format, "utf-8", "\r\n"),
    "CR": ("# x\n{}".format, "utf-8", "\r"),
    "no last line end": ("# x\n{}#".format, "utf-8", "\n"),
    "a form feed": ("# x\n\x0c\n{}".format, "utf-8", "\n"),
}
READS_PART = """
--- train.py
import part, tell
from seen import seen
tell.tell(ascii(part.f.__defaults__))
seen(part.f)
"""
QUICK = {"source of a module", "neighbours of the library", "multiprocessing", "started script", "latin-1", "folder"}
PRINTS = "import tell\ntell.tell('OLD', __file__)\n"


def rows(table: Iterable[str]) -> list[object]:
    """A row costs a second of a processor: the default run has those that show most."""
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in table]


def files_of(program: str) -> dict[str, bytes]:
    _, *parts = re.split(r"^--- (.*)\n", HELPERS + program, flags=re.MULTILINE)
    return {name: text.encode() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def laid_out(directory: Path, program: str) -> dict[str, bytes]:
    """The files that are to be edited, by real path, and their new text."""
    edited = {}
    for name, text in files_of(program).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        if b"OLD" in text:
            edited[os.path.realpath(path)] = b"# edited\n" + text.replace(b"OLD", b"NEW, as it is edited")
    return edited


def everything_in(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time and bytes of each file, and of each folder."""
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [directory, *directory.rglob("*")]
    }


class Project:
    """A user's directory, and what a program in it tells."""

    def __init__(self, place: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = place / "project"
        self.directory.mkdir()
        self.python = python
        self._told = place / "told"
        monkeypatch.setenv("SAYS_INTO", str(self._told))
        monkeypatch.setenv("PYTHONPATH", str(place))
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        monkeypatch.chdir(self.directory)

    def run(self, edited: dict[str, bytes], target: str, keep_run: Path | None = None) -> tuple[str, ExaminationFacts]:
        self._told.write_text("", encoding="utf-8")
        examined = target_from_text(target)
        settings = Settings((examined,), python=self.python, edited=edited, timeout=60, keep_run=keep_run)
        facts = examine(examined, settings, SilentProgress(), "auto")
        failure = facts.failure and replace(facts.failure, seconds=0.0)
        return self._told.read_text(encoding="utf-8"), replace(facts, failure=failure)

    def is_as_if_edited(self, edited: dict[str, bytes], target: str = "train.py") -> str:
        """What the program tells and what is seen of it, with the edited text and with files that hold it."""
        before = everything_in(self.directory)
        told, facts = self.run(edited, target)
        assert everything_in(self.directory) == before, "nothing is touched"
        for path, text in edited.items():
            Path(path).write_bytes(text)
        assert (told, facts) == self.run({}, target)
        said = told + str(facts.failure)
        assert "OLD" not in said
        assert "NEW, as it is edited" in said or "SyntaxError" in said
        return said


@pytest.fixture
def project(tmp_path: Path, claiming: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, claiming, monkeypatch)


@pytest.mark.parametrize("name", rows(PROGRAMS))
def test_a_program_with_edited_text_does_what_the_edited_program_does(project: Project, name: str) -> None:
    project.is_as_if_edited(laid_out(project.directory, PROGRAMS[name]))


@pytest.mark.parametrize("name", rows(ENCODINGS))
def test_edited_text_is_read_in_its_own_encoding(project: Project, name: str) -> None:
    form, encoding, ending = ENCODINGS[name]
    laid_out(project.directory, READS_PART)
    module = project.directory / "part.py"
    old = "def f(x='OLD é'):\n    raise ValueError('OLD é')\n"
    module.write_bytes(old.encode())
    new = form(old.replace("OLD", "NEW, as it is edited")).replace("\n", ending).encode(encoding)
    said = project.is_as_if_edited({os.path.realpath(module): new})
    assert "NEW, as it is edited \\xe9" in said and "NEW, as it is edited é" in said


@pytest.mark.parametrize("target", ["train.py:make", "train:make"])
def test_a_factory_is_taken_from_edited_text(project: Project, target: str) -> None:
    (project.directory / "tell.py").write_text(files_of("")["tell.py"].decode())
    script = project.directory / "train.py"
    script.write_text("OLD = 1\n")
    edited = "import tell\ndef make():\n    tell.tell('NEW, as it is edited')\n"
    assert "returned NoneType" in project.is_as_if_edited({os.path.realpath(script): edited.encode()}, target)


def test_bytecode_of_the_old_text_is_not_taken(project: Project) -> None:
    edited = laid_out(project.directory, PROGRAMS["module"])
    module = project.directory / "part.py"
    new = edited[os.path.realpath(module)]
    module.write_bytes(module.read_bytes().ljust(len(new), b"\n"))  # as long as the new text
    os.utime(module, (1, 1))
    compiled = py_compile.compile(str(module), doraise=True)
    assert compiled is not None and Path(compiled).exists()
    project.is_as_if_edited(edited)


@pytest.mark.skipif(os.name == "nt", reason="links take rights there")
@pytest.mark.parametrize("linked", rows(["script", "folder", "module", "edited through the link"]))
def test_links_lead_to_edited_text(project: Project, linked: str) -> None:
    real = project.directory / "real"
    edited = laid_out(real, PROGRAMS["module"] + "--- second.py\nwhat = 'OLD'\n")
    target = "real/train.py"
    if linked == "script":
        (project.directory / "run.py").symlink_to(real / "train.py")
        target = "run.py"
    elif linked == "folder":
        (project.directory / "way").symlink_to(real)
        target = "way/train.py"
    elif linked == "module":
        (real / "part.py").rename(project.directory / "elsewhere.py")
        (real / "part.py").symlink_to(project.directory / "elsewhere.py")
        edited[os.path.realpath(real / "part.py")] = edited.pop(str(real.resolve() / "part.py"))
    else:
        script = real / "train.py"
        script.write_text(PRINTS + "import runpy\nrunpy.run_path('way/second.py')\nexec(tell.__doc__ or '')\n")
        (project.directory / "way").symlink_to(real)
        edited[os.path.realpath(script)] = script.read_bytes().replace(b"OLD", b"NEW, as it is edited")
    project.is_as_if_edited(edited, target)


def test_only_the_edited_file_is_meant(project: Project) -> None:
    """Neither one of the same name nor another name of the same bytes."""
    (project.directory / "other").mkdir()
    laid_out(
        project.directory,
        "--- train.py\nimport tell, part, other.part, hard\ntell.tell(part.w, other.part.w, hard.w)\n",
    )
    for name in ("part.py", "other/part.py"):
        (project.directory / name).write_text("w = 'old'\n")
    os.link(project.directory / "part.py", project.directory / "hard.py")
    told, _ = project.run({os.path.realpath("part.py"): b"w = 'new'\n"}, "train.py")
    assert told == "new|old|old\n"


def test_a_plain_open_reads_the_disk(project: Project) -> None:
    edited = laid_out(project.directory, "--- train.py\nimport tell\ntell.tell(open(__file__).read())  # OLD\n")
    told, _ = project.run(edited, "train.py")
    assert "OLD" in told and "NEW" not in told


def test_a_python_that_takes_no_environment_reads_the_disk(project: Project) -> None:
    script = "--- train.py\nfrom starts import python\npython('-I', 'child.py')\n--- child.py\nprint('OLD')\n"
    told, _ = project.run(laid_out(project.directory, script), "train.py")
    assert "OLD\n" in told


def test_a_kept_run_keeps_the_edited_text(project: Project, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    edited = laid_out(project.directory, PROGRAMS["module"])
    told, _ = project.run(edited, "train.py", keep_run=kept)
    request = kept / "run-1" / "request.json"
    assert read_edited(json.loads(request.read_text())["edited"]) == edited
    os.environ["SAYS_INTO"] = str(tmp_path / "again")
    start = Path(mpdoctor.__file__).parent / "examiner" / "start.py"
    subprocess.run([project.python, start, "--foreground", request], capture_output=True, timeout=60, check=True)
    assert (tmp_path / "again").read_text() == told


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["plain.py", "two\nlines.py", "é.py", os.fsdecode(b"\xff.py")]
    texts = {str(tmp_path / name): name.encode("utf-8", "surrogateescape") + b"\0\r\n" for name in names}
    assert read_edited(write_edited(str(tmp_path / "edited"), texts)) == texts


@pytest.mark.parametrize("path", [None, 3, "", "\0", b"missing", "missing.py", Path("missing.py")])
def test_what_is_no_edited_file_is_read_from_the_disk(path: object, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    gone = str(tmp_path / "gone.py")
    assert EditedSource({os.path.realpath(tmp_path / "a.py"): b"x", gone: b"y"}).of(path) is None
    assert EditedSource({gone: b"y"}).of(gone) is None
