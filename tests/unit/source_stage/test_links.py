"""Links out of the project, pipes and files that the system makes up are neither read nor quoted."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from checking import check

from mpdoctor.project.files import files_below
from mpdoctor.project.regular_files import bytes_from_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")

WRONG = 'import keras\nkeras.mixed_precision.set_policy("mixed_float16")\n'
WRAPPER = "import keras\nWrapper = keras.optimizers.LossScaleOptimizer\n"
USES = "import keras\nfrom {} import Wrapper\nloss_scaled = Wrapper(keras.optimizers.Adam(), dynamic=False)\n"
SECRET = "correct-horse-battery-staple"
REPORTS = ("a.json", "a.sarif", "a.md", "a.html", "a.xml", "a.svg")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two packages, and beside it what is none of its business."""
    monkeypatch.setenv("A_TOKEN", SECRET)
    directory = tmp_path / "repository"
    for name in (".git/config", "one/train.py", "one/pyproject.toml", "two/pyproject.toml", "two/shared.py"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("x = 1\n" if name.endswith(".py") else "")
    (directory / "two" / "shared.py").write_text(WRONG)
    (directory / ".git" / "config").write_text(f"[http]\nextraheader: {SECRET}\n")
    (tmp_path / "netrc").write_text(f"machine here login me\n    password {SECRET}\n")
    (tmp_path / "outside.py").write_text(WRONG)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(WRONG)
    return directory


def links_in(report: dict[str, object]) -> list[str]:
    skipped = report["skipped"]
    assert isinstance(skipped, list)
    return [skip["reason"].partition(" is a link ")[0] for skip in skipped if " is a link " in skip["reason"]]


LEADING_OUT: list[Callable[[Path], None]] = [
    lambda link: link.symlink_to("/proc/self/environ"),
    lambda link: link.symlink_to("../../netrc"),
    lambda link: link.symlink_to("../../outside.py"),
    lambda link: link.symlink_to("../.git/config"),
    lambda link: (link.with_name("chain").symlink_to("../../netrc"), link.symlink_to("chain")),  # type: ignore[func-returns-value]
    lambda link: (link.with_name("way").symlink_to("../.."), link.symlink_to("way/netrc")),  # type: ignore[func-returns-value]
]


@pytest.mark.parametrize("make", LEADING_OUT)
@pytest.mark.parametrize("name", ["e.py", "e.ipynb"])
def test_a_link_out_of_the_project_is_passed_over_and_told(
    project: Path, make: Callable[[Path], None], name: str
) -> None:
    make(project / "one" / name)
    done = check("--static", "one", directory=project)
    assert (done.exit_code, done.codes(), links_in(done.report)) == (0, [], [f"one/{name}"])
    assert SECRET not in done.said


def test_every_report_tells_of_it_and_none_quotes_it(project: Path) -> None:
    (project / "one" / "e.py").symlink_to("/proc/self/environ")
    written = [part for name in REPORTS for part in ("--report", name)]
    done = check("--static", ".", *written, output_format="terminal", directory=project)
    assert done.exit_code == 1  # of two/shared.py
    for text in (done.stdout, *((project / name).read_text() for name in REPORTS)):
        assert "leads out of the project" in " ".join(text.replace("&#160;", " ").split())
        assert SECRET not in text


@pytest.mark.parametrize(
    ("target", "is_read"),
    [("../two/shared.py", True), ("train.py", False), ("e.py", False), ("../none.py", False), ("../two", False)],
    ids=["of another package", "seen anyway", "a circle", "nowhere", "a directory"],
)
def test_links_within_the_repository_are_followed_to_code(project: Path, target: str, is_read: bool) -> None:
    """Within a repository one package may use another's files. What is no file of code is no matter."""
    (project / "one" / "e.py").symlink_to(target)
    done = check("--static", "one", directory=project)
    assert (done.exit_code, links_in(done.report)) == (int(is_read), [])
    assert [finding["path"] for finding in done.report["findings"]] == ["one/e.py"] * is_read


def test_without_a_repository_a_project_is_its_pyproject_or_the_directory(project: Path) -> None:
    (project / ".git" / "config").unlink()
    (project / ".git").rmdir()
    (project / "one" / "e.py").symlink_to("../two/shared.py")
    (project / "one" / "below").mkdir()
    (project / "one" / "below" / "f.py").symlink_to("../train.py")
    assert [path.name for path, _ in files_below(project / "one").passed_over] == ["e.py"]
    assert files_below(project / "one" / "below").passed_over == ()
    (project / "one" / "pyproject.toml").unlink()
    assert [path.name for path, _ in files_below(project / "one" / "below").passed_over] == ["f.py"]


def test_where_nothing_else_is_left(project: Path) -> None:
    (project / "three").mkdir()
    (project / "three" / "e.py").symlink_to("../../outside.py")
    done = check("--static", "three", directory=project)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "three" in done.stderr and "lead out of the project" in done.stderr


@pytest.mark.parametrize(
    ("link", "targets", "findings"),
    [
        ("helper.py", ["train.py"], 1),
        ("helper", ["train.py"], 1),
        ("helper", ["train.py", "more.py"], 2),
        ("inner/helper.py", ["train.py", "more.py"], 2),
        ("inner/helper.py", ["."], 2),
    ],
)
def test_an_import_follows_no_link_out_of_the_project(
    project: Path, link: str, targets: list[str], findings: int
) -> None:
    """What is wrong depends on what is imported: it is unknown there, and known within the project."""
    here = project / "one"
    (here / "inner").mkdir()
    for name in ("train.py", "more.py"):
        (here / name).write_text(USES.format(link.removesuffix(".py").replace("/", ".")))
    for elsewhere, found in ((project.parent, 0), (project / "two", findings)):
        (elsewhere / "real").mkdir()
        for name in ("real.py", "real/__init__.py"):
            (elsewhere / name).write_text(WRAPPER)
        (here / link).unlink(missing_ok=True)
        (here / link).symlink_to(elsewhere / ("real.py" if link.endswith(".py") else "real"))
        done = check("--static", *targets, directory=here)
        assert len(done.codes()) == found
        assert links_in(done.report) == ([] if found else [link])


@pytest.mark.parametrize(("to", "findings"), [("../../outside", 0), ("../two/real", 1)])
def test_the_folder_of_the_packages_is_no_link_out_of_the_project(project: Path, to: str, findings: int) -> None:
    for elsewhere in (project.parent / "outside", project / "two" / "real"):
        elsewhere.mkdir()
        (elsewhere / "helper.py").write_text(WRAPPER)
    (project / "one" / "src").symlink_to(to)
    script = project / "one" / "examples" / "train.py"
    script.parent.mkdir()
    script.write_text(USES.format("helper"))
    done = check("--static", "one/examples/train.py", directory=project)
    assert len(done.codes()) == findings
    assert links_in(done.report) == ([] if findings else [str(Path("one", "src"))])


# --- what the user names -------------------------------------------------------------------------------------------
def test_a_link_that_is_named_is_read(project: Path) -> None:
    """It is the user's own word."""
    (project / "one" / "e.py").symlink_to(project.parent / "outside.py")
    done = check("--static", "one/e.py", directory=project)
    assert (done.exit_code, done.codes()) == (1, ["MP101"])
    assert done.report["findings"][0]["excerpt"]["lines"][1] == WRONG.splitlines()[1]
    (project / "named").symlink_to(project.parent / "package")
    done = check("--static", "named", directory=project)
    assert (done.codes(), links_in(done.report)) == (["MP101"], [])


@pytest.mark.parametrize(
    ("behind", "name", "also"),
    [
        ("/proc/self/environ", "e.py", []),
        ("/proc/self/environ", "e.ipynb", ["one/train.py"]),
        ("netrc", "e.py", []),
        ("netrc", "e.py", ["one/train.py"]),
        ("json", "e.ipynb", []),
        ("nul", "e.py", []),
        ("latin", "e.py", []),
        ("cookie", "e.py", []),
        ("pipe", "e.py", []),
        ("pipe", "e.py", ["one/train.py"]),
        ("socket", "e.py", []),
        ("/dev/zero", "e.py", ["one/train.py"]),
    ],
)
def test_what_is_no_python_is_never_quoted(project: Path, behind: str, name: str, also: list[str]) -> None:
    """Not even where it was named; and nothing is waited for."""
    place = project.parent / behind
    if behind == "nul":
        place.write_bytes(f"a = 1\n\0TOKEN={SECRET}\n".encode())
    elif behind == "latin":
        place.write_bytes(f"a = 1\nTOKEN={SECRET}\n".encode() + b"\xff")
    elif behind == "cookie":
        place.write_bytes(f"# coding: latin-1\nTOKEN={SECRET} is no Python \xff\n".encode("latin-1"))
    elif behind == "pipe":
        os.mkfifo(place)
    elif behind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            os.chdir(project.parent)
            listening.bind("socket")
    elif behind == "json":
        place.write_text(json.dumps({"auth": SECRET}))
    (project / "one" / name).symlink_to(place)
    done = check("--static", f"one/{name}", *also, "--report", "a.html", output_format="sarif", directory=project)
    assert done.exit_code == 2
    assert SECRET not in done.said and "Traceback" not in done.said
    assert not (project / "a.html").exists() or SECRET not in (project / "a.html").read_text()


@pytest.mark.parametrize("behind", ["pipe", "/dev/zero", "/proc/self/environ"])
def test_nothing_that_is_read_beside_it_is_waited_for(project: Path, behind: str) -> None:
    for name in (".gitignore", "pyproject.toml", "setup.cfg", "requirements.txt", "uv.lock", "helper.py"):
        place = project / "one" / name
        place.unlink(missing_ok=True)
        if behind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to(behind)
    (project / "one" / "train.py").write_text("import helper\nimport keras\n")
    for target in ("one", "one/train.py"):
        done = check("--static", target, directory=project)
        assert (done.exit_code, done.codes()) == (0, [])
        assert SECRET not in done.said


def test_a_syntax_error_of_the_project_is_still_quoted(project: Path) -> None:
    (project / "one" / "train.py").write_text("x = 1\ndef (\n")
    done = check("--static", "one", directory=project)
    assert done.report["findings"][0]["excerpt"]["lines"] == ["x = 1", "def ("]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dev/null", "a device"),
        ("/proc/self/environ", "the system makes up"),
        ("/proc/self/maps", "the system makes up"),
        (".", "a directory"),
    ],
)
def test_only_regular_files_are_opened(path: str, said: str) -> None:
    with pytest.raises(OSError, match=said):
        bytes_from_file(path)


def test_more_than_any_memory_holds(tmp_path: Path) -> None:
    """A sparse file takes no room on the disk."""
    (tmp_path / "huge.py").touch()
    os.truncate(tmp_path / "huge.py", 2**40)
    done = check("--static", ".", directory=tmp_path)
    assert (done.exit_code, done.codes()) == (1, ["MP001"])
    assert json.loads(done.stdout)["findings"][0]["message"].endswith("bytes.")


def test_files_are_read_whole(tmp_path: Path) -> None:
    for size in (0, 1, 4095, 4096, 4097, 100_000):
        content = os.urandom(size)
        (tmp_path / "file").write_bytes(content)
        assert bytes_from_file(tmp_path / "file") == content
