"""What the files of a project say of TensorFlow and Keras: pyproject.toml, setup.cfg, setup.py, requirements, Pipfile,
conda's environments, lock files, Dockerfiles. All of them are read as text; none is run."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.facts.frozen import dataclass
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.project.version_ranges import PlainRange, plain_requirement

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
ADDONS = "tensorflow-addons"
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_CONDA = ("environment*.y*ml", "conda*.y*ml", "env.y*ml")
_IMAGES = ("Dockerfile*", "*.Dockerfile")
_REQUIREMENTS = "requirements*.txt"
# In small letters, with the folders that are looked into.
_READ = (
    *(*_LOCKS, *_CONDA, *map(str.lower, _IMAGES), _REQUIREMENTS, "requirements", "docker"),
    *("pipfile", "pipfile.lock", "pyproject.toml", "setup.cfg", "setup.py"),
)
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
_WANTED = r"(?<![\w./-])((?:tensorflow|keras)[\w.\[\]-]*[<>=!~]=[\w.,<>=!~*]+)"  # a requirement among other words
_INSTALLS = re.compile(r"\s*[!%]\s*(?:\S+\s+-m\s+)?pip3?\s+install\b(.*)")  # a line of a notebook that runs pip
_LONGEST = 200  # a release, or the name of an image
_MOST_FILES = 50  # requirements that include one another


@dataclass(frozen=True)
class Pin:
    """One sentence of a file: a package, the releases that it allows, and how the report repeats it."""

    name: str
    allowed: SpecifierSet | PlainRange
    told: str


def may_hold_pins(folder: Path) -> bool:
    """Whether anything lies there that the functions below read. In most folders of a source tree nothing does, and one
    look tells. Some systems take upper and lower case for the same."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - one text for each, not one Path
    except OSError:  # what cannot be listed may be read all the same
        return True
    return any(map(_one_of(_READ), map(str.lower, names)))


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
    for path in (*_files(folder, _REQUIREMENTS), *_files(folder / "requirements", "*.txt")):
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
    text = _text(path)
    if not text:
        return
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
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
        for line in _instructions(_text(path)):
            image = re.match(r"FROM\s+(?:--\S+\s+)?(\S*?tensorflow[\w-]*):(\S+)", line, re.IGNORECASE)
            if image:
                pins += _pins_from_image(image[1], image[2], path)
            elif re.match(r"RUN\s", line, re.IGNORECASE):
                for installed in re.findall(r"\bpip3?\s+install\b([^;&|]*)", line):
                    for word in re.findall(_WANTED, installed):
                        pins += _pin(word, path)
    return pins


def _instructions(text: str) -> Iterator[str]:
    """The lines of a Dockerfile, with what its `ARG` and `ENV` lines say in the place of `${NAME}` and `$NAME`. What
    is given to the build from outside is not known, and stays as it is written."""
    said: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        told = re.sub(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))", lambda name: _variable(name, said), line.strip())
        for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S+)", told) if _DEFINES.match(told) else ():
            if len(value) <= _LONGEST:  # forty lines of `ENV A=$A$A` say a text of 2^40 characters
                said[name] = value.strip("\"'")
        yield told


def _variable(name: re.Match[str], said: Mapping[str, str]) -> str:
    """What a variable of a Dockerfile stands for: what was said of it, else the default at that place, else itself."""
    default = name[0] if name[2] is None else name[2]
    return said.get(name[1] or name[3], default)


def _pins_from_image(image: str, tag: str, path: Path) -> Iterator[Pin]:
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
        yield from _pin(f"tensorflow{allowed}", path, text=f"starts from {image}:{tag}", verb="")


def _nvidias(tag: str) -> str:
    return next((releases for month, releases in _NVIDIA if tag[: len(month)] >= month), "")


def pins_from_notebook(path: Path) -> list[Pin]:
    """What the cells of a notebook install: `!pip install tensorflow==2.9.*`, `%pip install …`."""
    text = _text(path)
    try:
        data = json.loads(text) if "tensorflow" in text and "pip" in text else {}
    except (ValueError, RecursionError):  # it is told elsewhere that it is no notebook
        return []
    cells = data.get("cells") if isinstance(data, dict) else None
    pins: list[Pin] = []
    for cell in cells if isinstance(cells, list) else ():
        source = cell.get("source", "") if isinstance(cell, dict) and cell.get("cell_type") == "code" else ""
        written = source if isinstance(source, list) else [source]
        for line in "".join(text for text in written if isinstance(text, str)).splitlines():
            installed = _INSTALLS.match(line)
            for word in re.findall(_WANTED, installed[1]) if installed else ():
                pins += _pin(word, path, "installs")
    return pins


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
    written, allowed = plain_requirement(wanted) or _requirement(wanted)
    name = re.sub(r"[-_.]+", "-", written).lower()
    if name in (*TENSORFLOW, *KERAS, ADDONS):
        said = text or wanted.partition(";")[0].strip()
        yield Pin(name, allowed, " ".join(word for word in (path.name, verb, said) if word))


def _requirement(text: str) -> tuple[str, SpecifierSet | PlainRange]:
    """The name and the releases; "" for what is no requirement."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return "", PlainRange(())
    return requirement.name, requirement.specifier


def _toml(path: Path) -> Mapping[str, Any]:
    text = _text(path)
    if "tensorflow" not in text and "keras" not in text:
        return {}
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # no TOML, or a number of more digits than Python reads
        return {}


def _files(folder: Path, *patterns: str) -> list[Path]:
    """In order. A folder that is no project's (a home, /tmp) may hold many thousands of others."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - one text for each, not one Path
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return []
    fits = _one_of(patterns)
    return [folder / name for name in sorted(filter(fits, names))]


@cache
def _one_of(patterns: tuple[str, ...]) -> Callable[[str], object]:
    return re.compile("|".join(map(translate, patterns))).match


def _text(path: Path) -> str:
    try:
        return bytes_from_file(path).decode("utf-8", "replace")
    except OSError:  # there is none, or it is not for us to read: then it decides nothing
        return ""


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = data.get(name)
    return inner if isinstance(inner, dict) else {}
