"""Which backend Keras 3 runs on, as the environment, the files of a project and `keras.json` say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.knowledge.keras_backends import TENSORFLOW, VARIABLE, other_than_tensorflow
from mpdoctor.project.asked_of_system import environment_variable, is_there
from mpdoctor.project.declared_versions.images import IMAGES
from mpdoctor.project.declared_versions.legacy_keras import FOLDERS, STARTS, is_project
from mpdoctor.project.declared_versions.pins import files_named, text_of

# `ENV NAME jax` of a Dockerfile, `NAME: jax` of YAML, `export NAME=jax`
_SETTING = re.compile(rf"""(?<![\w$]){VARIABLE}["']?(?:\s*[=:]\s*|\s+)["']?(?P<name>\w+)""")
_REQUIREMENTS = (
    *("requirements*.txt", "requirements*.in", "*[-_]requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"),
    *("Pipfile", "environment*.y*ml", "conda*.y*ml"),
)
_REQUIRED = re.compile(r"(?<![\w.-])(?P<name>jax|torch|keras)(?![\w.-])", re.IGNORECASE)
_REQUIRES_TENSORFLOW = re.compile(r"tensorflow|\btf[-_](?:nightly|keras)", re.IGNORECASE)


def backend_around(folder: Path) -> str:
    """The backend that the environment names, else the project that holds a folder, else the user's `keras.json`; ""
    where none does."""
    return environment_variable(VARIABLE) or _backend_of_project(folder) or _backend_of_user()


def _backend_of_project(here: Path) -> str:
    here = Path(os.path.abspath(here))  # noqa: PTH100 - as the configuration is looked for
    for folder in (here, *here.parents):
        if folder == here or is_project(folder):
            named = frozenset(_names_in_starts(folder)) or _names_in_requirements(folder)
            if named:
                return other_than_tensorflow(named) or TENSORFLOW
        if is_there(folder / ".git"):
            break
    return ""


def _names_in_starts(folder: Path) -> Iterator[str]:
    """What the files of a project set the variable to that start its programs."""
    for place in ("", *FOLDERS):
        for path in files_named(folder / place, *IMAGES, *STARTS):
            text = text_of(path)
            for line in text.splitlines() if VARIABLE in text else ():
                setting = _SETTING.search(line.partition("#")[0])
                if setting is not None:
                    yield setting["name"]


def _names_in_requirements(folder: Path) -> frozenset[str]:
    """The backends among what a project needs beside Keras; none where it asks for no Keras."""
    lines = (line for path in files_named(folder, *_REQUIREMENTS) for line in text_of(path).splitlines())
    code = "\n".join(line.partition("#")[0] for line in lines)
    names = {match["name"].lower() for match in _REQUIRED.finditer(code)}
    if _REQUIRES_TENSORFLOW.search(code):
        return frozenset((TENSORFLOW,))
    return frozenset(names - {"keras"}) if "keras" in names else frozenset()


def _backend_of_user() -> str:
    """What `keras.json` says, which Keras reads where the environment says nothing; "" without one."""
    own = os.path.expanduser("~/.keras")  # noqa: PTH111 - Path.home() raises where nobody has a home
    text = text_of(Path(environment_variable("KERAS_HOME") or own) / "keras.json")
    named = re.search(r'"backend"\s*:\s*"(\w+)"', text)
    return named[1] if named is not None else ""
