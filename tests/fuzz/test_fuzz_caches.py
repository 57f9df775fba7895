"""Damaged caches: a run with any bytes in the cache's place reports what a run without a cache reports."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fuzzing import Fuzz
from test_cache import LAYER, POLICY, Calls, found_in

from mpdoctor.finding import Crashed, Finding
from mpdoctor.source_stage.cache import Cache
from mpdoctor.source_stage.worker import Worker

pytestmark = [pytest.mark.fuzz, pytest.mark.skipif(os.name == "nt", reason="no pipes, owners or modes to play with")]

SOURCES = {
    "layer.py": POLICY + LAYER,
    "main.py": "import keras\nimport wraps\nloss_scaled = wraps.Wrapper(keras.optimizers.Adam(), dynamic=False)\n",
    "wraps.py": "import keras\nWrapper = keras.optimizers.LossScaleOptimizer\n",
    "broken.py": "def (\n",
}
DEEP = (b"[" * 100_000, b'{"a":' * 50_000, b"(" * 100_000 + b".")
ODD = ("", "\0", "../../x", "é", "\ud800", "a" * 300)


@dataclass(frozen=True)
class Workplace:
    """Two projects with the user's cache of each, the key, and what somebody else would like to be believed."""

    root: Path
    expected: dict[str, list[Finding | Crashed]]
    kept: dict[str, bytes]  # by name of the file
    key: bytes
    poisoned: tuple[bytes, ...]

    @property
    def cache(self) -> Path:
        return self.root / "home" / "cache"

    @property
    def key_file(self) -> Path:
        return self.root / "home" / "data" / "cache.key"

    @property
    def places(self) -> list[Path]:
        """The files that hold something, and are still files."""
        places = [*(self.cache / name for name in self.kept), self.key_file]
        return [
            place for place in places if place.is_file() and not place.is_symlink() and 0 < place.stat().st_size < 2**20
        ]

    def files(self, project: str) -> dict[Path, str]:
        return {self.root / project / name: name for name in SOURCES}

    def restore(self) -> None:
        shutil.rmtree(self.root / "home", ignore_errors=True)
        files = {self.cache / name: kept for name, kept in self.kept.items()}
        for place, content in {**files, self.key_file: self.key}.items():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.write_bytes(content)
            place.chmod(0o600)

    def run(self, project: str) -> list[Finding | Crashed]:
        os.chdir(self.root / project)
        return found_in(self.files(project), Cache(self.cache, self.key_file))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    monkeypatch.chdir(tmp_path)
    for project in ("one", "two"):
        (tmp_path / project).mkdir()
        for name, text in SOURCES.items():
            (tmp_path / project / name).write_text(text if project == "one" else text.replace("Scale", "Grow"))
    empty = Workplace(tmp_path, {}, {}, b"", ())
    expected = {project: found_in(empty.files(project), None) for project in ("one", "two")}
    poisoned = []
    for key in ("other.key", "another.key"):
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "_judged", lambda *_: [])
            os.chdir(tmp_path / "one")
            assert found_in(empty.files("one"), Cache(tmp_path / key, tmp_path / f"{key}s" / key)) == []
        poisoned += [path.read_bytes() for path in (tmp_path / key).iterdir()]
    assert {project: empty.run(project) for project in expected} == expected
    kept = {path.name: path.read_bytes() for path in empty.cache.iterdir()}
    assert len(kept) == len(poisoned) == 2
    return Workplace(tmp_path, expected, kept, empty.key_file.read_bytes(), tuple(poisoned))


Damage = Callable[[random.Random, Workplace, Path], object]


def flipped(random: random.Random, _: Workplace, place: Path) -> None:
    content = bytearray(place.read_bytes())
    for _times in range(random.randint(1, 8)):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    place.write_bytes(content)


def cut(random: random.Random, _: Workplace, place: Path) -> None:
    content = place.read_bytes()
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    place.write_bytes(random.choice((content[:start], content[end:], content[:start] + content[end:])))


def spliced(random: random.Random, at: Workplace, place: Path) -> None:
    content, other = place.read_bytes(), random.choice((*at.kept.values(), *at.poisoned, at.key))
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    place.write_bytes(content[:start] + other[random.randrange(len(other)) :][: random.randrange(999)] + content[end:])


def unsigned(random: random.Random, at: Workplace, place: Path) -> None:
    """An own signature in front of somebody else's content, and the other way round."""
    contents = (*at.kept.values(), *at.poisoned)
    place.write_bytes(random.choice(contents)[:32] + random.choice(contents)[32:])


def swapped(random: random.Random, at: Workplace, place: Path) -> None:
    other = random.choice(at.places)
    mine, others = place.read_bytes(), other.read_bytes()
    place.write_bytes(others)
    other.write_bytes(mine)


def poisoned(random: random.Random, at: Workplace, _: Path) -> None:
    for place in at.places:
        if place != at.key_file:
            place.write_bytes(random.choice(at.poisoned))


def hostile(random: random.Random, at: Workplace, place: Path) -> None:
    signature = random.choice((b"", bytes(32), *(kept[:32] for kept in at.kept.values())))
    row = random.choice(([], ["00" * 16, True, True, ["os.system", {}], {}], None, 3))
    rows = {str(path): row for path in at.files("one")}
    content = random.choice(
        (
            pickle.dumps(Calls(f"touch {at.root / 'harm'}"), protocol=random.randrange(6)),
            json.dumps(random.choice((rows, dict.fromkeys(ODD, rows), [rows], "text", 1e308))).encode(),
            random.choice(DEEP),
            random.randbytes(random.randrange(5000)),
            b"",
        )
    )
    place.write_bytes(signature + content)


def another_kind(random: random.Random, at: Workplace, place: Path) -> None:
    """In the place of a file, or of the directory around it."""
    place = random.choice((place, place.parent))
    aside = place.rename(at.root / "home" / f"aside-{random.random()}")
    kind = random.randrange(9)
    if kind == 0:
        place.mkdir()
    elif kind == 1:
        os.mkfifo(place)
    elif kind == 2:
        place.write_bytes(b"a file")
    elif kind == 3:
        place.touch()
        os.truncate(place, 2**33)
    elif kind == 4:
        with socket.socket(socket.AF_UNIX) as listening:
            os.chdir(place.parent)
            listening.bind(place.name)
    elif kind < 8:
        place.symlink_to(random.choice((aside, place, "/dev/zero", "/nowhere", "/proc/self/environ", at.root / "one")))


def of_others(random: random.Random, _: Workplace, place: Path) -> None:
    place = random.choice((place, place.parent))
    if os.geteuid() == 0:
        os.chown(place, random.choice((0, 12345)), random.choice((0, 12345)))
    place.chmod(random.choice((0o000, 0o200, 0o400, 0o600, 0o620, 0o640, 0o660, 0o602, 0o666, 0o700, 0o777, 0o1777)))


def gone(random: random.Random, _: Workplace, place: Path) -> None:
    place.unlink()


DAMAGES: tuple[Damage, ...] = (
    flipped, cut, spliced, unsigned, swapped, poisoned, hostile, another_kind, of_others, gone,
)  # fmt: skip


def test_caches(fuzz: Fuzz, workplace: Workplace) -> None:
    first = {place: place.read_text() for place in workplace.root.glob("*/*.py")}

    def case(random: random.Random) -> None:
        workplace.restore()
        for _ in range(random.randint(1, 3)):
            if places := workplace.places:
                random.choice(DAMAGES)(random, workplace, random.choice(places))
        for project in random.choices(("one", "two"), k=2):
            assert workplace.run(project) == workplace.expected[project]
        assert not (workplace.root / "harm").exists()
        assert {place: place.read_text() for place in first} == first

    fuzz("caches", case)
