"""Finds Python environments, their owners and the versions in their files, without running any of them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.facts.machine.environment import TENSORFLOWS
from mpdoctor.project.asked_of_system import names_like
from mpdoctor.project.file_owners import is_own_or_of_the_system
from mpdoctor.project.regular_files import bytes_from_file

ENVIRONMENT_FOLDERS = (".venv", "venv", "env")
PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py", ".git")
VIRTUAL, CONDA = "pyvenv.cfg", "conda-meta"  # what an environment holds that these have made
# Where tools keep environments that lie outside of the project: pyenv, conda, virtualenvwrapper, pipenv, Poetry.
ENVIRONMENT_STORES = (
    "~/.pyenv/versions",
    *(f"~/{name}/envs" for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")),
    "/opt/conda/envs",
    "~/.virtualenvs",
    "~/.local/share/virtualenvs",
    "~/.cache/pypoetry/virtualenvs",
)
_PROGRAMS = ("python.exe", "Scripts/python.exe") if os.name == "nt" else ("bin/python",)
_PARTS = (".", "bin", "Scripts", VIRTUAL, "lib", "Lib")  # beside the program: who may change one, decides what runs
_PACKAGES = ("lib/python*/site-packages", "Lib/site-packages")
_DISTRIBUTIONS = {name.replace("-", "_") for name in TENSORFLOWS}
Versions = tuple[tuple[int, ...] | None, str]


# --- where they are ---------------------------------------------------------------------------------------------
def active_environments() -> Iterator[Path]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])


def environments_of_project(start: Path) -> Iterator[Path]:
    """The environments in a folder and above it, nearest first, up to the nearest folder with a file that marks a
    project. Without such a folder there are none."""
    folders = (start, *start.parents)
    roots = [n for n, folder in enumerate(folders) if any(os.path.lexists(folder / name) for name in PROJECT_FILES)]
    inside = folders[: roots[0] + 1] if roots else ()
    environments = (folder / name for folder in inside for name in ENVIRONMENT_FOLDERS)
    return (folder for folder in environments if os.path.isfile(folder / VIRTUAL) or os.path.isdir(folder / CONDA))  # noqa: PTH112,PTH113


def environments_near(start: Path) -> Iterator[Path]:
    """All environments that a user may mean: active, in a folder or anywhere above it, or kept elsewhere by tools."""
    yield from active_environments()
    for folder in (start, *start.parents):
        yield from (folder / name for name in ENVIRONMENT_FOLDERS)
    yield from _kept_environments()


def _kept_environments() -> Iterator[Path]:
    """What pyenv, conda and their like keep outside of projects."""
    try:  # every environment that this user's conda made
        register = bytes_from_file(_in_home("~/.conda/environments.txt")).decode("utf-8", "replace")
    except OSError:
        register = ""
    yield from (Path(line) for line in register.splitlines() if line)
    own = [os.environ.get("PYENV_ROOT"), os.environ.get("WORKON_HOME")]
    stores = [Path(own[0]) / "versions"] if own[0] else []
    stores += [Path(own[1])] if own[1] else []
    for store in (*stores, *map(_in_home, ENVIRONMENT_STORES)):
        try:
            yield from sorted(store.iterdir())
        except OSError:  # there is none, or it is not for us to read
            continue


def _in_home(path: str) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - which never raises, and finds nothing without a home


def environment_of(python: Path) -> Path | None:
    """The environment of an interpreter: that of its own folder, else that of the program that it links to; None where
    neither holds packages."""
    for program in (Path(os.path.abspath(python)), Path(os.path.realpath(python))):  # noqa: PTH100 - no link is followed
        folder = program.parent
        environment = folder.parent if folder.name in ("bin", "Scripts") else folder
        if any(_folders_matching(environment, pattern) for pattern in _PACKAGES):
            return environment
    return None


def python_of(environment: Path) -> Path | None:
    paths = (environment / program for program in _PROGRAMS)
    return next((path for path in paths if os.path.isfile(path)), None)  # noqa: PTH113 - Path's raises where it may not look


# --- whose they are ---------------------------------------------------------------------------------------------
def part_of_others(environment: Path, python: Path) -> Path | None:
    """The first part of it that belongs to neither the user nor the administrator, or that others may write to; None
    where nobody else can have put anything there."""
    for path in (environment, *(environment / name for name in _PARTS[1:]), python):
        try:
            if not all(is_own_or_of_the_system(status, path) for status in (path.lstat(), path.stat())):
                return path
        except FileNotFoundError:
            continue
        except OSError:
            return path
    return None


# --- what their files say ---------------------------------------------------------------------------------------
def versions_from_files(environment: Path) -> Versions:
    """Python's version, None where the files do not say it; and TensorFlow's, "" where there is none, "?" where it is
    installed and its version is not known."""
    tensorflows = [version for folder in _packages(environment) for version in _tensorflows(folder)]
    return _python_version(environment), next(iter(tensorflows), "")


def release_in(environment: Path, *names: str) -> str:
    """The version of the first of these distributions that is installed there, "" where there is none."""
    wanted = {name.replace("-", "_") for name in names}
    versions = (version for folder in _packages(environment) for version in _releases(folder, wanted))
    return next(versions, "")


def release_beside(name: str) -> str:
    """The version of a distribution that is installed beside mpdoctor, "" without it. `importlib.metadata` would say
    the same, and a check of one file would wait 15 ms for its import."""
    wanted = {name.replace("-", "_")}
    versions = (version for folder in sys.path for version in _releases(Path(folder), wanted))
    return next(versions, "")


def _packages(environment: Path) -> list[Path]:
    return [folder for pattern in _PACKAGES for folder in _folders_matching(environment, pattern)]


def _python_version(environment: Path) -> tuple[int, ...] | None:
    try:
        text = bytes_from_file(environment / VIRTUAL).decode("utf-8", "replace")
    except OSError:
        text = ""
    names = [f"python-{path.name}" for path in _folders_matching(environment, "lib/python*")]
    names = [path.name for path in _folders_matching(environment, f"{CONDA}/python-*.json")] + names
    version = re.search(r"^version(?:_info)? *= *([0-9]{1,3}(?:\.[0-9]{1,3}){1,2})\b", text, re.MULTILINE)
    for name in names:
        version = version or re.match(r"python-(?:python)?([0-9]{1,3}(?:\.[0-9]{1,3}){1,2})\b", name)
    return tuple(int(part) for part in version[1].split(".")) if version else None


def _tensorflows(packages: Path) -> Iterator[str]:
    yield from _releases(packages, _DISTRIBUTIONS)
    if os.path.isfile(packages / "tensorflow" / "__init__.py"):  # noqa: PTH113
        yield "?"


def _releases(packages: Path, names: set[str]) -> Iterator[str]:
    """The versions of these distributions (named with underscores), read from the names of their metadata folders."""
    try:
        listed = names_like(tuple(f"{name}-*" for name in sorted(names)), packages)
    except OSError:
        return
    for suffix in (".dist-info", ".egg-info"):
        for folder in listed:
            name, _, version = folder.removesuffix(suffix).partition("-")
            if folder.endswith(suffix) and name in names and re.match(r"[0-9]", version):
                yield version.partition("-")[0]


def _folders_matching(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []
