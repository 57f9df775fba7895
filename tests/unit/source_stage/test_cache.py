"""The on-disk cache of the source stage: an entry is used only while the file and everything it imports are
unchanged."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_rules_contract import FIXTURE_FILES, FIXTURES

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding, Severity
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.rules.registry import all_rules
from mpdoctor.source import prefilter
from mpdoctor.source.prefilter import Glance, glance_from_text
from mpdoctor.source_stage import SourceOfFiles
from mpdoctor.source_stage.cache import ROWS, Cache, users_cache
from mpdoctor.source_stage.worker import Worker

CODES = frozenset(rule.code for rule in all_rules())
POLICY = 'import keras\nkeras.mixed_precision.set_global_policy("mixed_float16")\n'
LAYER = """
import tensorflow as tf

class Scale(tf.keras.layers.Layer):
    def call(self, x):
        return x + tf.ones([4])
"""


def cache_in(directory: Path) -> Cache:
    return Cache(directory, directory.with_name(f"{directory.name}-key") / "cache.key")


def found_in(
    files: Mapping[Path, str], cache: Cache | None, keras: Keras | None = None, codes: frozenset[str] = CODES
) -> list[Finding | Crashed]:
    stage = SourceOfFiles(files, cache=cache)
    found = stage.judge(lambda path: keras or Keras(), codes, list(files.values()))
    stage.save()
    return found


def test_what_is_remembered_is_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fixture, by Keras 3 and by tf_keras; the second time nothing is looked at."""
    files = {path.absolute(): path.relative_to(FIXTURES).as_posix() for path in FIXTURE_FILES}
    kerases = (Keras(), Keras("tf_keras"))
    first = [found_in(files, cache_in(tmp_path), keras) for keras in kerases]
    assert first[0] != first[1] and all(len(found) > 50 for found in first)
    for method in ("walk", "read", "judge"):
        monkeypatch.delattr(Worker, method)
    assert [found_in(files, cache_in(tmp_path), keras) for keras in kerases] == first


def test_a_text_is_looked_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again where it has changed, and where its folder has become a package: then its imports mean other files."""
    looked: list[bytes] = []

    def noted(text: bytes, package: str) -> Glance:
        looked.append(text)
        return glance_from_text(text, package)

    monkeypatch.setattr(prefilter, "glance_from_text", noted)
    layer, main = tmp_path / "files" / "layer.py", tmp_path / "files" / "main.py"
    layer.parent.mkdir()
    layer.write_text(LAYER)
    main.write_text(POLICY + "from . import layer\n")
    files = {path: path.name for path in (layer, main)}

    def looked_over() -> tuple[int, int]:
        looked.clear()
        found, count = found_in(files, cache_in(tmp_path / "cache")), len(looked)
        assert found == found_in(files, None)
        return count, len(found)

    assert looked_over() == (2, 0)
    assert looked_over() == (0, 0)
    (layer.parent / "__init__.py").write_text("")
    assert looked_over() == (3, 1), "both, and __init__.py"
    layer.write_text(LAYER + "# more\n")
    assert looked_over() == (1, 1)


def test_what_was_asked_is_part_of_it(tmp_path: Path) -> None:
    files = {path: path.name for path in (tmp_path / "layer.py", tmp_path / "main.py")}
    (tmp_path / "layer.py").write_text(LAYER)
    (tmp_path / "main.py").write_text(POLICY + "import layer\n")
    cache = tmp_path / "cache"
    for codes, expected in ((CODES, 1), (frozenset({"MP501"}), 0), (CODES, 1)):
        assert len(found_in(files, cache_in(cache), codes=codes)) == expected
    alone = {tmp_path / "layer.py": "layer.py"}
    assert found_in(alone, cache_in(cache)) == []
    assert len(found_in(files, cache_in(cache))) == 1


def test_a_file_that_cannot_be_read_is_read_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks as if it were empty, and is not."""
    file = tmp_path / "layer.py"
    file.write_text("")
    files = {file: "layer.py"}
    assert found_in(files, cache_in(tmp_path / "cache")) == []

    read = os.open

    def refuse(path: Path, *how: int) -> int:
        if path == file:
            raise PermissionError(13, "Permission denied")
        return read(path, *how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        (found,) = found_in(files, cache_in(tmp_path / "cache"))
        assert isinstance(found, Finding) and found.code == "MP001"
    assert found_in(files, cache_in(tmp_path / "cache")) == []


# What is wrong with the first depends on which of the others it imports, and what that says. (It is walked for a name.)
USE = "import keras\nfrom {} import Wrapper\nloss_scaled = Wrapper(keras.optimizers.Adam(), dynamic=False)\n"
PIECES = (
    *(USE.format(module) for module in ("a", "b", "pkg", "pkg.part")),
    "from .part import *\n",
    "import c; from pkg.part import Wrapper\n",
    "from é import Wrapper\n",
    "import keras\nWrapper = keras.optimizers.LossScaleOptimizer\n",
    "import keras\nWrapper = keras.optimizers.SGD\n",
    "from.part import*\n",
    "from .import part\nWrapper = part.Wrapper\n",
    POLICY,
    "def (\n",
)
NAMES = ("a.py", "b.py", "c.py", "é.py", "pkg/__init__.py", "pkg/part.py")
CHAIN = dict(zip(NAMES, (PIECES[2], PIECES[5], "", "", PIECES[4], PIECES[7]), strict=True))
edits = st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from((*PIECES, None)), max_size=2), max_size=3)


@settings(max_examples=60)
@given(st.fixed_dictionaries({name: st.sampled_from(PIECES) for name in NAMES}), edits, st.sets(st.sampled_from(NAMES)))
@example(CHAIN, [{"pkg/part.py": PIECES[8]}, {"pkg/part.py": PIECES[7]}], set())
@example(CHAIN, [{"pkg/part.py": PIECES[8]}], {"b.py", "pkg/part.py"})
@example(CHAIN | {"a.py": PIECES[1]}, [{"pkg/part.py": PIECES[8]}], set())
@example(CHAIN | {"a.py": PIECES[1]}, [{"b.py": None}, {"b.py": PIECES[7]}], {"b.py"})
@example(CHAIN | {"a.py": PIECES[1], "b.py": PIECES[6], "é.py": PIECES[7]}, [{"é.py": PIECES[8]}], set())
@example(CHAIN | {"pkg/__init__.py": PIECES[9]}, [{"pkg/part.py": PIECES[8]}], set())
@example(CHAIN | {"pkg/__init__.py": PIECES[10]}, [{"pkg/part.py": PIECES[8]}], set())
@example({"é.py": PIECES[3], "pkg/__init__.py": PIECES[0], "pkg/part.py": POLICY}, [{"a.py": PIECES[7]}], set())
@example({"é.py": PIECES[3], "pkg/__init__.py": PIECES[0], "pkg/part.py": POLICY}, [{"a.py": PIECES[7]}], {"a.py"})
def test_after_any_edit_a_run_says_what_a_first_one_would(
    start: dict[str, str], edits: list[dict[str, str | None]], beyond: set[str]
) -> None:
    """Files are written, changed and removed between runs. Those `beyond` are only imported."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as kept:
        root = Path(directory)
        (root / "pkg").mkdir()
        for edit in (start, *edits):
            for name, text in edit.items():
                (root / name).unlink(missing_ok=True)
                if text is not None:
                    (root / name).write_text(text, encoding="utf-8")
            files = {root / name: name for name in NAMES if (root / name).exists() and name not in beyond}
            assert found_in(files, cache_in(Path(kept) / "cache")) == found_in(files, None)


# --- what it holds may come from anybody -----------------------------------------------------------------------------
@pytest.fixture
def files(tmp_path: Path) -> dict[Path, str]:
    (tmp_path / "layer.py").write_text(POLICY + LAYER)
    return {tmp_path / "layer.py": "layer.py"}


def silent_cache(files: Mapping[Path, str], cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves there that nothing is wrong with the files."""
    with monkeypatch.context() as patch:
        patch.setattr(Worker, "_judged", lambda *_: [])
        assert found_in(files, cache) == []


def test_another_key_signs_nothing(tmp_path: Path, files: dict[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who fills a shared cache cannot hide a finding. The user's own mpdoctor would be believed."""
    silent_cache(files, Cache(tmp_path / "cache", tmp_path / "other" / "cache.key"), monkeypatch)
    cache_in(tmp_path / "cache").save()  # there is a key now
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1
    silent_cache(files, cache_in(tmp_path / "second"), monkeypatch)
    assert found_in(files, cache_in(tmp_path / "second")) == []


class Calls:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file, kept: file.write_bytes(b""),
        lambda file, kept: file.write_bytes(b"nonsense"),
        lambda file, kept: file.write_bytes(kept[: len(kept) // 2]),
        lambda file, kept: file.write_bytes(kept[:32] + b"[" * 100_000),
        lambda file, kept: file.write_bytes(b"[" * 100_000),
        lambda file, kept: file.write_bytes(kept + b" "),
        lambda file, kept: file.write_bytes(pickle.dumps(Calls(f"touch {file.parent / 'harm'}"))),
        lambda file, kept: os.truncate(file, 2**40),
        lambda file, kept: (file.unlink(), file.mkdir()),
        lambda file, kept: (file.unlink(), os.mkfifo(file)),
        lambda file, kept: (file.unlink(), file.symlink_to(file)),
    ],
)
def test_whatever_lies_there_the_run_says_the_same(
    tmp_path: Path, files: dict[Path, str], damage: Callable[[Path, bytes], object]
) -> None:
    first = found_in(files, None)
    for pattern in ("cache/*.kept", "cache-key/cache.key"):
        found_in(files, cache_in(tmp_path / "cache"))
        (file,) = tmp_path.glob(pattern)
        damage(file, file.read_bytes())
        assert found_in(files, cache_in(tmp_path / "cache")) == first
        assert found_in(files, cache_in(tmp_path / "cache")) == first
        assert not (file.parent / "harm").exists()


def a_link_in_its_place(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name(f"{path.name}-elsewhere")))


def somebody_elses(path: Path) -> None:
    os.chown(path, 12345, -1, follow_symlinks=False)


def writable_by(mode: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(path.stat().st_mode | mode)


def of_a_group(mode: int) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        os.chown(path, -1, 12345)
        path.chmod(path.stat().st_mode | mode)

    return spoil


AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@pytest.mark.parametrize("what", ["cache", "cache/*.kept", "cache-key", "cache-key/cache.key"])
@pytest.mark.parametrize(
    "spoil",
    [
        a_link_in_its_place,
        writable_by(0o002),
        pytest.param(somebody_elses, marks=AS_ROOT),
        pytest.param(of_a_group(0o020), marks=AS_ROOT),
    ],
    ids=["link", "world", "owner", "group"],
)
def test_what_others_may_have_written_is_no_cache(
    tmp_path: Path,
    files: dict[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    spoil: Callable[[Path], None],
) -> None:
    silent_cache(files, cache_in(tmp_path / "cache"), monkeypatch)
    (path,) = tmp_path.glob(what)
    spoil(path)
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1


def test_a_key_that_others_may_read_is_replaced(
    tmp_path: Path, files: dict[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent_cache(files, cache_in(tmp_path / "cache"), monkeypatch)
    key = tmp_path / "cache-key" / "cache.key"
    before = key.read_bytes()
    key.chmod(0o644)
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1
    assert key.read_bytes() != before and key.stat().st_mode & 0o777 == 0o600


def test_a_signature_holds_for_one_working_directory(
    tmp_path: Path, files: dict[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent_cache(files, cache_in(tmp_path / "cache"), monkeypatch)
    (kept,) = (tmp_path / "cache").iterdir()
    monkeypatch.chdir(tmp_path)
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1
    (here,) = set((tmp_path / "cache").iterdir()) - {kept}
    kept.replace(here)
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1


def test_nothing_is_written_through_a_link(
    tmp_path: Path, files: dict[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where somebody foresaw the name."""
    cache_in(tmp_path / "cache").save()
    (kept,) = (tmp_path / "cache").iterdir()
    other = tmp_path / "other"
    other.write_text("the user's")
    kept.with_name(f"{kept.stem}.{bytes(8).hex()}.new").symlink_to(other)
    kept.unlink()
    kept.symlink_to(other)
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", bytes)
        assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1
    assert len(found_in(files, cache_in(tmp_path / "cache"))) == 1
    assert other.read_text() == "the user's" and kept.is_file() and not kept.is_symlink()


def test_only_what_mpdoctor_named_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpdoctor.project.users_cache.MOST_FILES", 3)
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    of_others = ["notes.kept", "notes.pickle", "a" * 32, f"{'a' * 31}.kept", f"{'a' * 32}.kept.old", "important.new"]
    left = [f"{'a' * 32}.pickle", f"{'b' * 32}.{'c' * 16}.new", f"{'d' * 32}.4711"]
    forgotten = [f"{digit * 32}.kept" for digit in "012345"]
    for name in (*of_others, *left, *forgotten):
        (cache / name).write_text("")
        os.utime(cache / name, (1, 1))
    (cache / f"{'e' * 32}.kept").mkdir()
    young = cache / f"{'b' * 32}.{'d' * 16}.new"
    young.write_text("")
    cache_in(cache).save()
    names = {path.name for path in cache.iterdir()}
    assert names >= {*of_others, f"{'e' * 32}.kept", young.name}
    assert not names & set(left) and len(names & set(forgotten)) == 2


def test_what_cannot_be_made_again_is_not_kept(tmp_path: Path, files: dict[Path, str]) -> None:
    first = found_in(files, None)
    (path,) = files
    for evidence in ({"odd": object()}, {3: "three"}, {"large": 1 << 20_000}):
        cache = cache_in(tmp_path / "cache")
        (found,) = first
        assert isinstance(found, Finding)
        entry = cache.keep(path, bytes(16), SourceFacts("layer.py"), True, True)
        cache.keep_findings(entry, b"", [replace(found, evidence=evidence)])
        cache.save()
        assert cache_in(tmp_path / "cache").find(path, "layer.py", bytes(16), True) is None
        assert found_in(files, cache_in(tmp_path / "cache")) == first


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters())
values = st.recursive(
    scalars | st.builds(Location, st.text(), st.integers(0, 99), st.integers(0, 99)) | st.sampled_from(Severity),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=12,
)


@given(st.builds(Finding, st.text(), st.text(), evidence=st.dictionaries(st.text(), values)))
def test_what_is_kept_comes_back(finding: Finding) -> None:
    """As equal, and of the same types."""
    made = ROWS.value(json.loads(json.dumps(ROWS.from_value(finding))))
    assert made == finding and repr(made) == repr(finding)


# --- where it lies ---------------------------------------------------------------------------------------------------
def check(
    directory: Path, home: Path, *options: str, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mpdoctor", "check", ".", "--output-format", "concise", *options],
        cwd=directory,
        env={**os.environ, "XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")},
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=before,
    )


def test_on_the_command_line(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    (project / "layer.py").write_text(POLICY + LAYER)
    without = check(project, home, "--no-cache")
    assert "MP202" in without.stdout and not home.exists()
    runs = [check(project, home) for _ in range(2)]
    assert [(run.returncode, run.stdout) for run in runs] == [(without.returncode, without.stdout)] * 2
    assert sorted(path.name[-5:] for path in home.glob("*/mpdoctor/*")) == [".kept", "e.key"]
    assert {path.stat().st_mode & 0o777 for path in home.glob("*/mpdoctor/*")} == {0o600}
    assert sorted(path.name for path in project.iterdir()) == ["layer.py"]
    (project / "layer.py").write_text(POLICY)
    assert "MP202" not in check(project, home).stdout


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "layer.py").write_text(POLICY + LAYER)
    (tmp_path / "home").write_text("a file where the directory would be")
    run = check(tmp_path, tmp_path / "home")
    assert "MP202" in run.stdout and run.stderr == ""


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` would be a directory of the project then."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    assert users_cache() is None
    assert list(tmp_path.iterdir()) == []


def test_a_key_within_the_cache_would_be_restored_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    for data, is_apart in (("one", False), ("one/mpdoctor/below", False), ("link/one", False), ("two", True)):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / data))
        assert (users_cache() is not None) is is_apart


@AS_ROOT
def test_root_makes_nothing_in_a_home_of_somebody_else(tmp_path: Path, files: dict[Path, str]) -> None:
    """`sudo` would leave there what the user could not write to."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    assert len(found_in(files, Cache(home / ".cache" / "mpdoctor", home / ".local" / "cache.key"))) == 1
    assert list(home.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="no limit to the size of files")
def test_on_a_full_disk(tmp_path: Path) -> None:
    """Not a byte can be written."""
    (tmp_path / "layer.py").write_text(POLICY + LAYER)
    import resource

    run = check(tmp_path, tmp_path / "home", before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert "MP202" in run.stdout and run.stderr == ""
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file()]


def test_two_runs_at_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "layer.py").write_text(POLICY + LAYER)
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: check(project, tmp_path / "home"), range(6)))
    assert {(run.returncode, run.stdout, run.stderr) for run in runs} == {(1, runs[0].stdout, "")}
    assert sorted(path.name[-5:] for path in (tmp_path / "home").glob("*/mpdoctor/*")) == [".kept", "e.key"]


def test_a_program_is_remembered_with_all_that_is_judged_in_it(tmp_path: Path) -> None:
    """The model of a file that is imported under a policy: its text, the policy, and which files were asked about."""
    model = "import keras\nmodel = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, activation='softmax')])\n"
    train = POLICY + "from models import model\nmodel.compile('adam', 'mse')\n"
    files = {tmp_path / name: name for name in ("models.py", "train.py")}
    cache = tmp_path / "cache"

    def codes(asked: Mapping[Path, str]) -> list[str]:
        return [finding.code for finding in found_in(asked, cache_in(cache)) if isinstance(finding, Finding)]

    for texts, expected in (
        ((model, train), ["MP201"]),
        ((model.replace("'softmax'", "'softmax', dtype='float32'"), train), []),
        ((model, train), ["MP201"]),
        ((model, train.replace("mixed_float16", "float32")), []),
        ((model, train), ["MP201"]),
    ):
        for path, text in zip(files, texts, strict=True):
            path.write_text(text)
        assert [codes(files) for _ in range(2)] == [expected] * 2
    alone = {tmp_path / "train.py": "train.py"}
    assert [codes(alone), codes(files)] == [codes(alone), ["MP201"]]
