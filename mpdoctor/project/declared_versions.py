"""What the files of a project say of TensorFlow and Keras: pyproject.toml, setup.cfg, setup.py, requirements, Pipfile,
conda's environments, lock files, Dockerfiles. All of them are read as text; none is run."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.project.regular_files import bytes_from_file

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
_CONDA = ("environment*.y*ml", "conda*.y*ml", "env.y*ml")
_IMAGES = ("Dockerfile*", "*.Dockerfile")
# NVIDIA's images are named by year and month: the releases of TensorFlow in those of that year, and before that month.
_NVIDIA = (
    ("20.", ">=2.0,<2.4"),
    ("21.", ">=2.4,<2.7"),
    ("22.", ">=2.7,<2.11"),
    ("23.", ">=2.11,<2.15"),
    ("24.01", ">=2.14,<2.16"),
    ("24.02", ">=2.14,<2.16"),
    ("24.03", ">=2.14,<2.16"),
    ("24.04", ">=2.14,<2.16"),
    ("24.05", ">=2.14,<2.16"),
    ("24.", ">=2.16"),
    ("25.", ">=2.16"),
)
_MOST_FILES = 50  # requirements that include one another


@dataclass(frozen=True)
class Pin:
    """One sentence of a file: a package, the releases that it allows, and how the report repeats it."""

    name: str
    allowed: SpecifierSet
    told: str


def pins_from_locks(folder: Path) -> list[Pin]:
    pins: list[Pin] = []
    for name in _LOCKS:
        packages = _toml(folder / name).get("package", [])
        for package in packages if isinstance(packages, list) else ():
            if isinstance(package, dict) and isinstance(package.get("version"), str):
                pins += _pin(f"{package.get('name')}=={package['version']}", folder / name, "locks")
    return [*pins, *_pins_from_pipfile_lock(folder / "Pipfile.lock")]


def _pins_from_pipfile_lock(path: Path) -> Iterator[Pin]:
    text = _text(path)
    try:
        data = json.loads(text) if "tensorflow" in text or "keras" in text else {}
    except (ValueError, RecursionError):  # it says nothing of Keras that anybody could read
        return
    for group in ("default", "develop"):
        for name, wanted in _table(data if isinstance(data, dict) else {}, group).items():
            if isinstance(wanted, dict) and isinstance(wanted.get("version"), str):
                yield from _pin(f"{name}{wanted['version']}", path, "locks")


def pins_from_declarations(folder: Path) -> list[Pin]:
    pins = [
        *_pins_from_pyproject(folder / "pyproject.toml"),
        *_pins_from_setup_cfg(folder / "setup.cfg"),
        *_pins_from_setup_py(folder / "setup.py"),
        *_pins_from_pipfile(folder / "Pipfile"),
    ]
    for path in _files(folder, *_CONDA):
        pins += _pins_from_conda(path)
    seen: set[Path] = set()
    for path in (*_files(folder, "requirements*.txt"), *_files(folder / "requirements", "*.txt")):
        pins += _pins_from_requirements(path, seen)
    return pins


def _pins_from_pyproject(path: Path) -> Iterator[Pin]:
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


def _pins_from_setup_cfg(path: Path) -> Iterator[Pin]:
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


def _pins_from_setup_py(path: Path) -> Iterator[Pin]:
    """Every text in it that is a requirement: lists of them are put together in many ways."""
    text = _text(path)
    if "tensorflow" not in text and "keras" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # of another Python, or no program at all
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for line in node.value.splitlines():
                yield from _pin(line, path)


def _pins_from_pipfile(path: Path) -> Iterator[Pin]:
    data = _toml(path)
    for group in ("packages", "dev-packages"):
        for name, wanted in _table(data, group).items():
            version = wanted.get("version") if isinstance(wanted, dict) else wanted
            if isinstance(version, str):
                yield from _pin(f"{name}{version.replace('*', '') if version == '*' else version}", path)


def _pins_from_conda(path: Path) -> Iterator[Pin]:
    """`- tensorflow-gpu=2.4`, `- conda-forge::tensorflow>=2.8,<2.11`, and pip's own lines below `- pip:`."""
    for line in _text(path).splitlines():
        item = re.match(r"""\s*-\s*["']?(?:[\w./-]+::)?([\w.-]+)\s*([^"'#]*)""", line)
        if item:
            name, wanted = item[1], item[2].strip()
            fuzzy = re.fullmatch(r"=?\s*(\d[\w.]*?)(?:\.\*)?(=[\w*.]+)?", wanted)  # one `=` is any patch release
            if fuzzy and not wanted.startswith("=="):
                yield from _pin(f"{name}=={fuzzy[1]}.*", path, text=f"{name}{item[2].strip()}")
            else:
                yield from _pin(f"{name}{wanted}", path)


def pins_from_images(folder: Path) -> list[Pin]:
    """The image that a Dockerfile starts from, and what it installs with pip."""
    pins: list[Pin] = []
    for path in (*_files(folder, *_IMAGES), *_files(folder / "docker", *_IMAGES)):
        for line in _text(path).replace("\\\n", " ").splitlines():
            image = re.match(r"\s*FROM\s+(?:--\S+\s+)?(\S*?tensorflow):(\S+)", line, re.IGNORECASE)
            if image:
                pins += _pins_from_image(image[1], image[2], path)
            elif re.match(r"\s*RUN\s", line, re.IGNORECASE):
                for word in re.findall(r"(?<![\w./-])((?:tensorflow|keras)[\w.\[\]-]*[<>=!~]=[\w.,<>=!~*]+)", line):
                    pins += _pin(word, path)
    return pins


def _pins_from_image(image: str, tag: str, path: Path) -> Iterator[Pin]:
    told = f"starts from {image}:{tag}"
    if image.endswith("nvidia/tensorflow"):
        if "-tf2-" in tag:
            allowed = next((releases for start, releases in _NVIDIA if tag.startswith(start)), "")
            yield from _pin(f"tensorflow{allowed}", path, text=told, verb="")
    elif image.endswith("tensorflow/tensorflow"):
        release = re.match(r"(\d+\.\d+(?:\.\d+)?)(?![\d.])", tag)
        if release:
            yield from _pin(
                f"tensorflow=={release[1]}{'' if release[1].count('.') > 1 else '.*'}", path, text=told, verb=""
            )


def _pins_from_requirements(path: Path, seen: set[Path]) -> Iterator[Pin]:
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


def _pin(wanted: object, path: Path, verb: str = "asks for", text: str = "") -> Iterator[Pin]:
    """`text`: how the file writes it, where that is not how pip does."""
    if not isinstance(wanted, str) or not re.match(r"\s*(tensorflow|keras)", wanted, re.IGNORECASE):
        return
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(wanted)
    except InvalidRequirement:
        return
    name = re.sub(r"[-_.]+", "-", requirement.name).lower()
    if name in (*TENSORFLOW, *KERAS):
        said = text or wanted.partition(";")[0].strip()
        yield Pin(name, requirement.specifier, " ".join(word for word in (path.name, verb, said) if word))


def _toml(path: Path) -> Mapping[str, Any]:
    text = _text(path)
    if "tensorflow" not in text and "keras" not in text:
        return {}
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):  # it says nothing of Keras that anybody could read
        return {}


def _files(folder: Path, *patterns: str) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return []
    return [path for path in entries if any(fnmatchcase(path.name, pattern) for pattern in patterns)]


def _text(path: Path) -> str:
    try:
        return bytes_from_file(path).decode("utf-8", "replace")
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return ""


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = data.get(name)
    return inner if isinstance(inner, dict) else {}
