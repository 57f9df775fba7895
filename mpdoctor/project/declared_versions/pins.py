"""A pin: what one file says about the allowed releases of TensorFlow or Keras. And the files that hold pins."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.facts.frozen import dataclass
from mpdoctor.project.asked_of_system import bytes_of, names_like
from mpdoctor.project.declared_versions.version_ranges import PlainRange, plain_requirement
from mpdoctor.project.regular_files import LARGEST

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

# packaging is imported where a line speaks of TensorFlow: a check of a project that never does starts sooner


TENSORFLOW = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-macos",
    "tensorflow-intel",
    "tensorflow-rocm",
)
KERAS = ("keras",)
ADDONS = "tensorflow-addons"
PROBABILITY = "tensorflow-probability"
TF_KERAS = "tf-keras"  # says that it is wanted, and not whether `tf.keras` is it
_LONGEST_REQUIREMENT = 1000
# `==2.0.0-beta1`, `==2.15.0.post1` and `==2.12.0+nv23.6` have the Keras of the release that they are named after
_BEFORE_OR_OF_ITS_OWN = re.compile(
    r"(==\s*\d{1,4}(?:\.\d{1,4}){1,3})(?:[-.]?(?:a|b|c|rc|alpha|beta|dev|pre|post)\d+|\+[\w.]+)"
)
_NO_RELEASE = re.compile(r"\d{10}")  # a number that Python may refuse to read


@dataclass(frozen=True)
class Pin:
    """One sentence of a file: a package, the releases that it allows, how the report repeats it, and the file."""

    name: str
    allowed: SpecifierSet | PlainRange
    told: str
    path: Path

    def allowing_all(self) -> Pin:
        """A pin of the same package that allows any release."""
        return dataclasses.replace(self, allowed=PlainRange(()))


def pins_from_requirement(wanted: object, path: Path, verb: str = "asks for", text: str = "") -> Iterator[Pin]:
    """`text`: how the file writes it, where that is not how pip does."""
    if not isinstance(wanted, str) or not re.match(r"\s{0,99}(tensorflow|keras|tf[-_.]keras)", wanted, re.IGNORECASE):
        return
    if len(wanted) > _LONGEST_REQUIREMENT or _NO_RELEASE.search(wanted):
        return
    released = _BEFORE_OR_OF_ITS_OWN.sub(r"\1", wanted)
    written, allowed = plain_requirement(released) or _requirement(released)
    name = re.sub(r"[-_.]+", "-", written).lower()
    if name in (*TENSORFLOW, *KERAS, ADDONS, PROBABILITY, TF_KERAS):
        said = text or wanted.partition(";")[0].strip()
        yield Pin(name, allowed, " ".join(word for word in (path.name, verb, said) if word), path)


def pins_from_conda_requirement(name: str, wanted: str, path: Path, verb: str = "asks for") -> Iterator[Pin]:
    """Conda's `tensorflow=2.4` is any patch release, and so is `tensorflow=2.4.*=gpu_py37`; the rest is as for pip."""
    fuzzy = re.fullmatch(r"=?\s*(\d[\w.]*?)(?:\.\*)?(=[\w*.]+)?", wanted)
    if fuzzy and not wanted.startswith("=="):
        yield from pins_from_requirement(f"{name}=={fuzzy[1]}.*", path, verb, f"{name}{wanted}")
    else:
        yield from pins_from_requirement(f"{name}{wanted}", path, verb)


def _requirement(text: str) -> tuple[str, SpecifierSet | PlainRange]:
    """The name and the releases; "" for what is no requirement."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return "", PlainRange(())
    return requirement.name, requirement.specifier


def files_named(folder: Path, *patterns: str) -> list[Path]:
    """The files of the folder that match one of these patterns, sorted. It lists names only, since a folder that is no
    project's (a home, /tmp) may hold many thousands."""
    try:
        return [folder / name for name in names_like(patterns, folder)]
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return []


def text_of(path: Path, largest: int = LARGEST) -> str:
    try:
        return bytes_of(path, largest).decode("utf-8", "replace")
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return ""
