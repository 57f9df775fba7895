"""Where one hostile file is tried: its folder, what lies outside of it, and the Keras that is to be fooled."""

from __future__ import annotations

import base64
import functools
import io
import marshal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSIONS = {"3": "3.15.1", "tf_keras": "2.21.0", "2.15": "2.15.0", "2.10": "2.10.0", "2.4": "2.4.0"}
INSIDE = ("model", "model.h5", "model.keras", "second.h5", "neighbour.py", "elsewhere")  # what makers write
DUMP = "import sys, marshal; sys.stdout.buffer.write(marshal.dumps(eval(sys.stdin.read()).__code__))"


@dataclass(frozen=True)
class Site:
    """`python` is the interpreter whose bytecode the file must hold, None for the one that runs the tests; `bases` a
    folder of SavedModels of that Keras."""

    folder: Path
    outside: Path
    keras: str
    form: str
    suffix: str
    port: int = 9
    python: Path | None = field(default=None, compare=False)
    bases: Path = field(default=Path(), compare=False)

    @classmethod
    def in_directory(cls, directory: Path, keras: str, form: str, suffix: str, **more: Any) -> Site:
        site = cls(directory / "inside", directory / "outside", keras, form, suffix, **more)
        site.folder.mkdir(parents=True)
        site.outside.mkdir()
        site.canary.write_bytes(canary_bytes())
        site.keepsake.write_text("kept\n")
        return site

    @property
    def path(self) -> Path:
        return self.folder / f"model{self.suffix}"

    @property
    def marker(self) -> str:
        return str(self.outside / "marker")

    @property
    def canary(self) -> Path:
        return self.outside / "canary.weights.h5"  # a name that Keras takes for its own

    @property
    def keepsake(self) -> Path:
        """What some attacks try to remove."""
        return self.outside / "keepsake"

    @property
    def scratch(self) -> Path:
        """All that an examination may write to."""
        return self.folder.parent / "scratch"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/file"

    @property
    def version(self) -> str:
        return VERSIONS[self.keras]

    @property
    def is_keras3(self) -> bool:
        return self.keras == "3"

    def bytecode(self, source: str | None = None) -> str:
        """Of a function of one argument that leaves the marker, as Keras writes it, for the Python in question."""
        return _bytecode(source or f"lambda x: (open({self.marker!r}, 'w').close(), x)[1]", self.python)

    def changed(self) -> list[str]:
        """What happened outside; a hostile file succeeded if this is not empty."""
        found = {path.name: path for path in self.outside.iterdir()} if self.outside.is_dir() else {}
        expected = {self.canary.name: canary_bytes(), "keepsake": b"kept\n"}
        new = sorted(set(found) - set(expected))
        gone = sorted(name for name, old in expected.items() if name not in found or found[name].read_bytes() != old)
        inside = sorted(path.name for path in self.folder.iterdir() if path.name not in INSIDE)
        beside = sorted(
            path.name for path in self.folder.parent.iterdir() if path not in (self.folder, self.outside, self.scratch)
        )
        return new + [f"{name} changed" for name in gone] + [f"../{name}" for name in beside] + inside


@functools.cache
def canary_bytes() -> bytes:
    """Text for who reads text, and behind it HDF5 with weights for who follows a link to it."""
    import h5py

    target = io.BytesIO()
    with h5py.File(target, "w", userblock_size=512) as file:
        file["kernel"] = [[7.0] * 4] * 4
    return b"canary: nobody is to read this\n".ljust(512, b" ") + target.getvalue()[512:]


@functools.cache
def _bytecode(source: str, python: Path | None) -> str:
    if python is None:
        code = marshal.dumps(eval(source).__code__)
    else:
        code = subprocess.run([python, "-c", DUMP], input=source.encode(), stdout=subprocess.PIPE, check=True).stdout
    return base64.encodebytes(code).decode()
