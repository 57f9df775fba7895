"""Which Keras a project asks for: what its pyproject.toml, requirements, setup.cfg or lock file says of TensorFlow
and Keras. A range that allows both Keras 2 and Keras 3 says nothing."""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.facts.versions import Keras

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_DECLARATIONS = ("pyproject.toml", "setup.cfg")
_LAST_KERAS_2 = 15  # TensorFlow 2.15: from 2.16 on tf.keras is Keras 3
_NEWEST = {"tensorflow": 30, "keras": 30}  # minor releases that are tried, those to come included
_PATCHES = range(9, -1, -1)
_MOST_FILES = 50  # requirements that include one another


@dataclass(frozen=True)
class _Pin:
    """One sentence of a file: a package, the releases that it allows, and how the report repeats it."""

    name: str
    allowed: SpecifierSet
    told: str


def keras_from_project(near: Path) -> Keras | None:
    """The Keras that the nearest project asks for that holds a directory; None where none asks for a certain one."""
    here = Path(os.path.abspath(near))  # noqa: PTH100 - as the configuration is looked for
    for folder in (here, *here.parents):
        for pins in (_pins_from_locks(folder), _pins_from_declarations(folder)):
            keras = _keras_from_pins(pins)
            if keras is not None:
                return keras
        if (folder / ".git").exists():
            break
    return None


# --- judging --------------------------------------------------------------------------------------------------------
def _keras_from_pins(pins: list[_Pin]) -> Keras | None:
    """What Keras itself is pinned to decides, else TensorFlow."""
    of_tensorflow = [pin for pin in pins if pin.name in TENSORFLOW]
    tensorflow = _releases(of_tensorflow, "2")
    of_keras = [pin for pin in pins if pin.name in KERAS]
    two, three = _releases(of_keras, "2"), _releases(of_keras, "3")
    if bool(two) is not bool(three):
        because = " and ".join(dict.fromkeys(pin.told for pin in of_keras))
        if three:
            version = _version(of_keras, "keras", "3")
            return Keras("keras", version, _version(of_tensorflow, "tensorflow", "2"), because)
        version = _version(of_keras, "keras", "2")
        return Keras("tf.keras", version, version, because)
    if not tensorflow:
        return None
    because = " and ".join(dict.fromkeys(pin.told for pin in of_tensorflow))
    if max(tensorflow) <= _LAST_KERAS_2:
        version = _version(of_tensorflow, "tensorflow", "2")
        return Keras("tf.keras", version, version, because)
    if min(tensorflow) > _LAST_KERAS_2:
        return Keras("keras", _installed("keras", "3"), _version(of_tensorflow, "tensorflow", "2"), because)
    return None


def _releases(pins: Iterable[_Pin], major: str) -> set[int]:
    """The minor releases that any of these sentences allows: requirements differ by platform and by extra."""
    return {
        minor
        for pin in pins
        if len(pin.allowed)  # a package without a version may be any
        for minor in range(_NEWEST["tensorflow"])
        if _allows(pin.allowed, f"{major}.{minor}")
    }


def _allows(allowed: SpecifierSet, release: str) -> bool:
    return any(allowed.contains(f"{release}.{patch}", prereleases=True) for patch in _PATCHES)


def _version(pins: list[_Pin], package: str, major: str) -> str:
    """The installed release where it is allowed, else the newest that is; "" where there is no upper bound."""
    installed = _installed(package, major)
    if installed and any(pin.allowed.contains(installed, prereleases=True) for pin in pins):
        return installed
    from packaging.version import Version

    exact = {
        Version(one.version) for pin in pins for one in pin.allowed if one.operator == "==" and "*" not in one.version
    }
    if exact:
        return str(max(exact))
    newest = max(_releases(pins, major), default=_NEWEST[package])
    return "" if newest >= _NEWEST[package] - 1 else f"{major}.{newest}"


def _installed(package: str, major: str) -> str:
    """The version of a package beside mpdoctor, "" without it or with another major one. Nothing of it is imported."""
    import importlib.metadata

    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
    return version if version.startswith(f"{major}.") else ""


# --- reading --------------------------------------------------------------------------------------------------------
def _pins_from_locks(folder: Path) -> list[_Pin]:
    pins: list[_Pin] = []
    for name in _LOCKS:
        packages = _toml(folder / name).get("package", [])
        for package in packages if isinstance(packages, list) else ():
            if isinstance(package, dict) and isinstance(package.get("version"), str):
                pins += _pin(f"{package.get('name')}=={package['version']}", folder / name, "locks")
    return pins


def _pins_from_declarations(folder: Path) -> list[_Pin]:
    pins = [
        *_pins_from_pyproject(folder / "pyproject.toml"),
        *_pins_from_setup_cfg(folder / "setup.cfg"),
    ]
    seen: set[Path] = set()
    for path in sorted([*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt")]):
        pins += _pins_from_requirements(path, seen)
    return pins


def _pins_from_pyproject(path: Path) -> Iterator[_Pin]:
    data = _toml(path)
    project = _table(data, "project")
    groups = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    groups += _table(data, "dependency-groups").values()
    for group in groups:
        for text in group if isinstance(group, list) else ():
            yield from _pin(text, path)
    poetry = _table(_table(data, "tool"), "poetry")
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    tables += [_table(group, "dependencies") for group in _table(poetry, "group").values() if isinstance(group, dict)]
    for table in tables:
        for name, wanted in table.items():
            version = wanted.get("version") if isinstance(wanted, dict) else wanted
            if isinstance(version, str):
                yield from _pin(f"{name}{_specifier_from_poetry(version)}", path)


def _specifier_from_poetry(version: str) -> str:
    """`^2.15` allows everything before 3, `~2.15` before 2.16, `2.15` that release alone."""
    parts = []
    for part in version.split(","):
        caret = re.fullmatch(r"\s*([\^~]?)\s*(\d+)(?:\.(\d+))?(\.[\w.]+)?\s*", part)
        if caret is None:
            parts.append(part.strip())
            continue
        sign, major, minor, rest = caret[1], caret[2], caret[3] or "0", caret[4] or ""
        end = {"^": f"{int(major) + 1}", "~": f"{major}.{int(minor) + 1}"}.get(sign)
        parts.append(f">={major}.{minor}{rest},<{end}" if end else f"=={part.strip()}")
    return ",".join(part for part in parts if part != "*")


def _pins_from_setup_cfg(path: Path) -> Iterator[_Pin]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(_text(path))
    except configparser.Error:
        return
    groups = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        groups += [value for _, value in parser.items("options.extras_require")]
    for group in groups:
        for line in group.splitlines():
            yield from _pin(line, path)


def _pins_from_requirements(path: Path, seen: set[Path]) -> Iterator[_Pin]:
    """A requirements file, and those that it includes: `-r other.txt`, `-c constraints.txt`."""
    if path in seen or len(seen) > _MOST_FILES:
        return
    seen.add(path)
    for line in _text(path).replace("\\\n", " ").splitlines():
        included = re.match(r"\s*(?:-r|-c|--requirement|--constraint)[ =]*(\S+)", line)
        if included:
            yield from _pins_from_requirements(Path(os.path.normpath(path.parent / included[1])), seen)
        else:
            yield from _pin(re.sub(r"\s--\w.*", "", line.partition(" #")[0]), path)


def _pin(text: object, path: Path, verb: str = "asks for") -> Iterator[_Pin]:
    if not isinstance(text, str) or not re.match(r"\s*(tensorflow|keras)", text, re.IGNORECASE):
        return
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return
    name = re.sub(r"[-_.]+", "-", requirement.name).lower()
    if name in (*TENSORFLOW, *KERAS):
        yield _Pin(name, requirement.specifier, f"{path.name} {verb} {text.partition(';')[0].strip()}")


def _toml(path: Path) -> Mapping[str, Any]:
    text = _text(path)
    if "tensorflow" not in text and "keras" not in text:
        return {}
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):  # it says nothing of Keras that anybody could read
        return {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return ""


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = data.get(name)
    return inner if isinstance(inner, dict) else {}
