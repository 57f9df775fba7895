"""Targets of a check, and the source lines that are shown with a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.finding import Excerpt
from mpdoctor.judging.excerpts import excerpt_from_location
from mpdoctor.project.targets import SUPPORTED, Target, TargetError, target_from_text, with_its_files
from mpdoctor.settings.options import Settings, keras_from_text

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "train.py",
        "a b.py",
        "od:d.py",
        "sub/model.py",
        "m.keras",
        "notes.txt",
        "c/x/.hidden/y.py",
        "n.ipynb",
        "m.h5",
        "M.HDF5",
        "exported/saved_model.pb",
        "frozen.pb",
        "lite.tflite",
        "ckpt-1.index",
        "ckpt-1.data-00000-of-00001",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / "tool").write_text("#!/usr/bin/env python3\nx = 1\n")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("train.py", Target("train.py", "script", Path("train.py"))),
        ("./train.py", Target("./train.py", "script", Path("train.py"))),
        ("a b.py", Target("a b.py", "script", Path("a b.py"))),
        ("od:d.py", Target("od:d.py", "script", Path("od:d.py"))),
        ("od:d.py:build", Target("od:d.py:build", "factory", Path("od:d.py"), factory="build")),
        (
            "sub/model.py:build",
            Target("sub/model.py:build", "factory", Path("sub/model.py"), factory="build"),
        ),
        ("a b.py:build", Target("a b.py:build", "factory", Path("a b.py"), factory="build")),
        ("pkg.mod:build", Target("pkg.mod:build", "factory", module="pkg.mod", factory="build")),
        ("mod:build", Target("mod:build", "factory", module="mod", factory="build")),
        ("m.keras", Target("m.keras", "keras-file", Path("m.keras"))),
        ("m.h5", Target("m.h5", "hdf5-file", Path("m.h5"))),
        ("M.HDF5", Target("M.HDF5", "hdf5-file", Path("M.HDF5"))),
        ("exported", Target("exported", "saved-model", Path("exported"))),
        ("exported/", Target("exported/", "saved-model", Path("exported"))),
        ("n.ipynb", Target("n.ipynb", "notebook", Path("n.ipynb"))),
        ("tool", Target("tool", "script", Path("tool"))),
        ("sub", Target("sub", "directory", Path("sub"))),
        (".", Target(".", "directory", Path())),
    ],
)
def test_targets(text: str, target: Target) -> None:
    assert target_from_text(text) == target


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nope.py", "no such file or directory: 'nope.py'."),
        ("nope.py:build", "no such file or directory: 'nope.py'."),
        ("tran.py", "Did you mean train.py?"),
        ("sub/modle.py:build", "Did you mean sub/model.py?"),
        (r"C:\work\train.py", "no such file or directory"),
        (r"C:\work\train.py:build", "no such file or directory: 'C:\\\\work\\\\train.py'"),
        ("notes.txt", SUPPORTED),
        ("exported/saved_model.pb", "is a part of a SavedModel: name its directory, exported."),
        ("frozen.pb", "is a frozen graph of TensorFlow 1 without its SavedModel"),
        ("lite.tflite", "is a converted model"),
        ("ckpt-1.index", "is a checkpoint: it holds weights and no model."),
        ("ckpt-1.data-00000-of-00001", "is a checkpoint: it holds weights and no model."),
        ("m.h6", "Did you mean m.h5?"),
        ("notes-txt:build", "names no file and no function"),
        ("notes.txt:build", "no Python file"),
        ("./notes.txt:build", "no Python file"),
        ("", "no such file"),
        (":build", "no such file"),
        ("mod:", "no such file"),
        ("nul\0.py", "no such file"),
        ("x" * 10_000, "no such file"),
    ],
)
def test_what_is_no_target(text: str, says: str) -> None:
    with pytest.raises(TargetError) as error:
        target_from_text(text)
    assert says in str(error.value)
    assert len(str(error.value)) < 300
    assert "\n" not in str(error.value) and "\0" not in str(error.value)


def test_a_directory_without_python_is_no_target() -> None:
    with pytest.raises(TargetError, match=r"there is no Python file in c or below it\.$"):
        with_its_files(target_from_text("c"), ())
    Path("sub/.gitignore").write_text("*.py")
    with pytest.raises(TargetError, match=r"no Python file in sub or below it that `exclude` and .gitignore"):
        with_its_files(target_from_text("sub"), ())


@pytest.mark.parametrize(
    ("text", "package", "version"),
    [
        ("3", "keras", ""),
        ("keras", "keras", ""),
        ("3.15", "keras", "3.15"),
        ("tf_keras", "tf_keras", ""),
        ("2", "tf.keras", ""),
        ("2.15", "tf.keras", "2.15"),
        ("2.4.4", "tf.keras", "2.4.4"),
        ("2.16", "tf_keras", "2.16"),
    ],
)
def test_keras_from_text(text: str, package: str, version: str) -> None:
    keras = keras_from_text(text)
    assert (keras.package, keras.version, keras.because) == (package, version, f"--keras {text}")


@pytest.mark.parametrize("text", ["", "1", "4.0", "three", "3.x", "2.15.0.1"])
def test_no_such_keras(text: str) -> None:
    with pytest.raises(ValueError, match=r"give 3, tf_keras, or a version such as 2\.15"):
        keras_from_text(text)


@pytest.mark.parametrize(
    ("select", "ignore", "is_chosen"),
    [
        ((), (), True),
        (("MP3",), (), True),
        (("mp302",), (), True),
        (("attribute-shadowed-by-wrapper",), (), True),
        (("MP4",), (), False),
        (("MP301",), (), False),
        (("attribute",), (), False),
        ((), ("MP",), False),
        (("MP302",), ("MP30",), False),
        ((), ("MP301",), True),
    ],
)
def test_select_and_ignore(select: tuple[str, ...], ignore: tuple[str, ...], is_chosen: bool) -> None:
    settings = Settings((), select=select, ignore=ignore)
    assert settings.chooses("MP302", "attribute-shadowed-by-wrapper") is is_chosen


@pytest.mark.parametrize(
    ("name", "place", "excerpt"),
    [
        ("train.py", (1,), Excerpt(1, ("one", "two\x0c still two"))),
        ("train.py", (2, 1, 2, 3), Excerpt(1, ("one", "two\x0c still two", "three"))),
        ("train.py", (3,), Excerpt(2, ("two\x0c still two", "three"))),
        ("train.py", (4,), None),
        ("train.py", (0,), None),
        ("gone.py", (1,), None),
        ("", (1,), None),
    ],
)
def test_excerpts(tmp_path: Path, name: str, place: tuple[int, ...], excerpt: Excerpt | None) -> None:
    (tmp_path / "train.py").write_bytes(b"one\r\ntwo\x0c still two\r\nthree\r\n")
    assert excerpt_from_location(Location(str(tmp_path / name), *place)) == excerpt


def test_excerpts_of_odd_files(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    assert excerpt_from_location(Location(str(path), 2)) == Excerpt(1, ("# -*- coding: latin-1 -*-", "x = 'é'"))
    path.write_bytes(b"x = '\xe9'\n")  # no UTF-8, and nothing says what else
    assert excerpt_from_location(Location(str(path), 1)) is None
    path.write_text("x" * 1_000_000)
    excerpt = excerpt_from_location(Location(str(path), 1))
    assert excerpt is not None and len(excerpt.lines[0]) == 2000
    path.write_text("\n".join(map(str, range(1, 101))))
    excerpt = excerpt_from_location(Location(str(path), 10, 1, 90, 2))
    assert excerpt is not None and (excerpt.first_line, excerpt.lines[-1]) == (9, "16")
