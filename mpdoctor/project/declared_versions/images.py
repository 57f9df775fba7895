"""What a Dockerfile says of TensorFlow: the image that it starts from, and what it installs with pip."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mpdoctor.project.declared_versions.install_commands import pins_from_commands
from mpdoctor.project.declared_versions.pins import Pin, files_named, pins_from_requirement, text_of

IMAGES = ("Dockerfile*", "*.Dockerfile")
# NVIDIA's images are named by year and month. Each month stands for itself and those behind it, up to the next; what
# came before TensorFlow 2.16 was the newest release at the time. Those that are named -tf1- hold 1.15, all of them.
_NVIDIA = (
    ("24.06", ">=2.16"),
    ("24.02", "==2.15.*"),
    ("23.11", "==2.14.*"),
    ("23.08", "==2.13.*"),
    ("23.04", "==2.12.*"),
    ("23.01", "==2.11.*"),
    ("22.10", "==2.10.*"),
    ("22.06", "==2.9.*"),
    ("22.03", "==2.8.*"),
    ("22.01", "==2.7.*"),
    ("21.09", "==2.6.*"),
    ("21.06", "==2.5.*"),
    ("21.02", "==2.4.*"),
    ("20.09", "==2.3.*"),
    ("20.06", "==2.2.*"),
    ("20.02", "==2.1.*"),
    ("20.01", "==2.0.*"),
)
_AMAZONS = ("tensorflow-training", "tensorflow-inference")  # images whose tags start with TensorFlow's release
_DEFINES = re.compile(r"(?:ARG|ENV)\s", re.IGNORECASE)  # lines of a Dockerfile that give a name to a text
_LONGEST = 200  # a release, or the name of an image


def pins_from_images(folder: Path) -> list[Pin]:
    """The image that a Dockerfile starts from, and what it installs with pip."""
    pins: list[Pin] = []
    for path in (*files_named(folder, *IMAGES), *files_named(folder / "docker", *IMAGES)):
        for line in _instructions(text_of(path)):
            image = re.match(r"FROM\s+(?:--\S+\s+)?(\S*?tensorflow[\w-]*):(\S+)", line, re.IGNORECASE)
            if image:
                pins += pins_from_image(image[1], image[2], path)
            elif re.match(r"RUN\s", line, re.IGNORECASE):
                pins += pins_from_commands(line, path)
    return pins


def _instructions(text: str) -> Iterator[str]:
    """The lines of a Dockerfile, with what its `ARG` and `ENV` lines say in the place of `${NAME}` and `$NAME`. What
    is given to the build from outside is not known, and stays as it is written."""
    said: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        replaced = re.sub(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))", lambda name: _variable(name, said), line.strip())
        for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S+)", replaced) if _DEFINES.match(replaced) else ():
            if len(value) <= _LONGEST:  # forty lines of `ENV A=$A$A` say a text of 2^40 characters
                said[name] = value.strip("\"'")
        yield replaced


def _variable(name: re.Match[str], said: Mapping[str, str]) -> str:
    """The value of a variable in a Dockerfile: as it was set, else its default at this place, else the text as it
    stands."""
    default = name[0] if name[2] is None else name[2]
    return said.get(name[1] or name[3], default)


def pins_from_image(image: str, tag: str, path: Path, verb: str = "starts from") -> Iterator[Pin]:
    """NVIDIA's images are named by month; TensorFlow's own, and Amazon's, by release."""
    allowed = ""
    release = re.match(r"(\d+\.\d+(?:\.\d+)?)(?![\d.])", tag)
    if re.search(r"(^|/)nvidia/tensorflow$", image):
        allowed = "==1.15.*" if "-tf1-" in tag else _nvidias(tag) if "-tf2-" in tag else ""
    elif image.rpartition("/")[2].startswith("merlin-tensorflow"):
        allowed = _nvidias(tag)
    elif release and (image.endswith("tensorflow/tensorflow") or image.rpartition("/")[2] in _AMAZONS):
        allowed = f"=={release[1]}{'' if release[1].count('.') > 1 else '.*'}"
    if allowed:
        yield from pins_from_requirement(f"tensorflow{allowed}", path, verb, f"{image}:{tag}")


def _nvidias(tag: str) -> str:
    """The TensorFlow releases in NVIDIA's image with this tag; "" for a tag that names no month (`nightly`, `latest`,
    `xx.xx`)."""
    named = re.match(r"\d\d\.\d\d(?!\d)", tag)
    return next((releases for month, releases in _NVIDIA if named and named[0] >= month), "")
