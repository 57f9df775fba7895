"""What the files of a project say of TensorFlow and Keras: pyproject.toml, setup.cfg, setup.py, requirements, Pipfile,
conda's environments, lock files, a package's metadata, Dockerfiles, shell scripts, prose. All of them are read as
text; none is run."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpdoctor.project.asked_of_system import names_like
from mpdoctor.project.declared_versions.images import IMAGES
from mpdoctor.project.declared_versions.legacy_keras import FOLDERS, STARTS
from mpdoctor.project.declared_versions.pins import (
    Pin,
    files_named,
    pins_from_conda_requirement,
    pins_from_requirement,
    text_of,
)
from mpdoctor.project.declared_versions.written_texts import text_from_expression
from mpdoctor.project.toml import table_from_toml

_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_CONDA = ("environment*.y*ml", "conda*.y*ml", "env.y*ml", "*[-_]env.y*ml", "*[-_]environment.y*ml", "env[-_]*.y*ml")
_REQUIREMENTS = ("requirements*.txt", "requirements*.in", "*[-_]requirements.txt", "constraints*.txt")
_PACKAGING = ("pip_package", "python_package")  # where a Bazel build keeps what makes its wheel, mostly in tools/
# In small letters, with the folders that are looked into.
_READ = (
    *(*_LOCKS, *_CONDA, *map(str.lower, IMAGES), *_REQUIREMENTS, "requirements", "docker"),
    *("pipfile", "pipfile.lock", "pyproject.toml", "setup.cfg", "setup.py", "tools", *_PACKAGING),
    *("*.dist-info", "pkg-info"),
    *(*FOLDERS, *STARTS),
)
_LARGEST_SETUP = 2**19  # bytes: Python makes up to 900 of each while it parses
_LARGEST_LOCK = 2**25  # of JSON, of each of which Python makes up to 40
_MOST_FILES = 50  # requirements that include one another


def may_hold_pins(folder: Path) -> bool:
    """Whether anything lies there that the functions below read. In most folders of a source tree nothing does, and one
    look tells. Some systems take upper and lower case for the same."""
    try:
        return bool(names_like(_READ, folder, in_any_case=True))
    except OSError:  # what cannot be listed may be read all the same
        return True


def pins_from_locks(folder: Path) -> list[Pin]:
    """The pins in the lock files of a folder."""
    pins: list[Pin] = []
    for name in _LOCKS:
        packages = _toml(folder / name).get("package", [])
        for package in packages if isinstance(packages, list) else ():
            if isinstance(package, dict) and isinstance(package.get("version"), str):
                pins += pins_from_requirement(f"{package.get('name')}=={package['version']}", folder / name, "locks")
    return [*pins, *_pins_from_pipfile_lock(folder / "Pipfile.lock")]


def _pins_from_pipfile_lock(path: Path) -> Iterator[Pin]:
    text = text_of(path, _LARGEST_LOCK)
    if not ("tensorflow" in text or "keras" in text):
        return
    import json  # in most projects there is none to read

    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # it says nothing of Keras that anybody could read
        return
    for group in ("default", "develop"):
        for name, wanted in _table(data if isinstance(data, dict) else {}, group).items():
            if isinstance(wanted, dict) and isinstance(wanted.get("version"), str):
                yield from pins_from_requirement(f"{name}{wanted['version']}", path, "locks")


def pins_from_declarations(folder: Path) -> list[Pin]:
    """The pins in the files of a folder that declare what a project needs."""
    pins = [
        *_pins_from_pyproject(folder / "pyproject.toml"),
        *_pins_from_setup_cfg(folder / "setup.cfg"),
        *_pins_from_setup_py(folder / "setup.py"),
        *_pins_from_pipfile(folder / "Pipfile"),
        *_pins_from_metadata(folder / "PKG-INFO"),
    ]
    wheels = files_named(folder, "*.dist-info")
    if len(wheels) == 1:  # several are those of an environment, in which nobody knows whose a file is
        pins += _pins_from_metadata(wheels[0] / "METADATA")
    for place in (*(folder / name for name in _PACKAGING), *(folder / "tools" / name for name in _PACKAGING)):
        pins += _pins_from_setup_py(place / "setup.py")
    for path in files_named(folder, *_CONDA):
        pins += _pins_from_conda(path)
    seen: set[Path] = set()
    for path in (*files_named(folder, *_REQUIREMENTS), *files_named(folder / "requirements", "*.txt")):
        pins += _pins_from_requirements(path, seen)
    return pins


def _pins_from_pyproject(path: Path) -> Iterator[Pin]:
    data = _toml(path)
    project = _table(data, "project")
    groups = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    groups += _table(data, "dependency-groups").values()
    for group in groups:
        for text in group if isinstance(group, list) else ():
            yield from pins_from_requirement(text, path)
    poetry = _table(_table(data, "tool"), "poetry")
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    tables += [_table(group, "dependencies") for group in _table(poetry, "group").values() if isinstance(group, dict)]
    for table in tables:
        for name, wanted in table.items():
            version = wanted.get("version") if isinstance(wanted, dict) else wanted
            if isinstance(version, str):
                yield from pins_from_requirement(f"{name}{_specifier_from_poetry(version)}", path)


def _specifier_from_poetry(version: str) -> str:
    """`^2.15` and `~2` allow everything before 3, `~2.15` before 2.16, `2.15` that release alone, `2.15.*` all of
    them."""
    parts = []
    for part in version.split(","):
        caret = re.fullmatch(r"\s*([\^~]?)\s*(\d+)(?:\.(\d+))?(\.[\w.]+)?\s*", part)
        if re.fullmatch(r"\s*\d+(\.\d+)*\.\*\s*", part):
            parts.append(f"=={part.strip()}")
            continue
        if caret is None:
            parts.append(part.strip())
            continue
        sign, major, minor, rest = caret[1], caret[2], caret[3] or "0", caret[4] or ""
        next_major, next_minor = f"{int(major) + 1}", f"{major}.{int(minor) + 1}"
        end = {"^": next_major, "~": next_minor if caret[3] else next_major}.get(sign)
        parts.append(f">={major}.{minor}{rest},<{end}" if end else f"=={part.strip()}")
    return ",".join(part for part in parts if part != "*")


def _pins_from_setup_cfg(path: Path) -> Iterator[Pin]:
    text = text_of(path)
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
            yield from pins_from_requirement(line, path)


def _pins_from_setup_py(path: Path) -> Iterator[Pin]:
    """The pins in a setup.py: every string in it that is a requirement, since lists of requirements are put together in
    many ways."""
    text = text_of(path, _LARGEST_SETUP)
    if "tensorflow" not in text and "keras" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # of another Python, or no program at all
        return
    names = _texts_by_name(tree)
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        written = text_from_expression(node, names) if isinstance(node, ast.expr) else None
        if written is None:
            waiting += ast.iter_child_nodes(node)
        for line in (written or "").splitlines():
            yield from pins_from_requirement(line, path)


def _texts_by_name(tree: ast.Module) -> dict[str, str]:
    """What stands in it as `NAME = "2.10.0"`, each name once."""
    assigned = [
        node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    counts = Counter(node.targets[0].id for node in assigned if isinstance(node.targets[0], ast.Name))
    texts: dict[str, str] = {}
    for node in assigned:
        target, text = node.targets[0], text_from_expression(node.value, texts)
        if isinstance(target, ast.Name) and counts[target.id] == 1 and text is not None:
            texts[target.id] = text
    return texts


def _pins_from_pipfile(path: Path) -> Iterator[Pin]:
    data = _toml(path)
    for group in ("packages", "dev-packages"):
        for name, wanted in _table(data, group).items():
            version = wanted.get("version") if isinstance(wanted, dict) else wanted
            if isinstance(version, str):
                yield from pins_from_requirement(name if version == "*" else f"{name}{version}", path)


def _pins_from_metadata(path: Path) -> Iterator[Pin]:
    """The pins in what an unpacked package says of itself, in the header of its metadata; its prose follows."""
    header, _, _ = text_of(path).replace("\r\n", "\n").partition("\n\n")
    for line in header.splitlines():
        field, _, wanted = line.partition(":")
        if field == "Requires-Dist":
            yield from pins_from_requirement(wanted.strip(), path)


def _pins_from_conda(path: Path) -> Iterator[Pin]:
    """`- tensorflow-gpu=2.4`, `- conda-forge::tensorflow>=2.8,<2.11`, and pip's own lines below `- pip:`."""
    for line in text_of(path).splitlines():
        item = re.match(r"""\s*-\s*["']?(?:[\w./-]+::)?([\w.-]+)\s*([^"'#]*)""", line)
        if item:
            yield from pins_from_conda_requirement(item[1], item[2].strip(), path)


def _pins_from_requirements(path: Path, seen: set[Path]) -> Iterator[Pin]:
    """The pins of a requirements file and of the files that it includes: `-r other.txt`, `-c constraints.txt`."""
    if path in seen or len(seen) > _MOST_FILES:
        return
    seen.add(path)
    for line in text_of(path).replace("\\\n", " ").splitlines():
        included = re.match(r"\s*(?:-r|-c|--requirement|--constraint)[ =]*(\S+)", line)
        if included:
            yield from _pins_from_requirements(Path(os.path.normpath(path.parent / included[1])), seen)
        else:
            yield from pins_from_requirement(re.sub(r"\s--\w.*", "", line.partition(" #")[0]), path)


def _toml(path: Path) -> Mapping[str, Any]:
    text = text_of(path)
    if "tensorflow" not in text and "keras" not in text:
        return {}
    try:
        return table_from_toml(text)
    except (ValueError, RecursionError):
        return {}


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = data.get(name)
    return inner if isinstance(inner, dict) else {}
