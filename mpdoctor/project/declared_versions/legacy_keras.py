"""Whether the files of a project that start its programs set TF_USE_LEGACY_KERAS=1, with which `tf.keras` is tf_keras:
Dockerfiles, compose files, shell scripts, .env files, Makefiles, conda's environments, and commands in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.facts.versions import LEGACY_KERAS, LEGACY_KERAS_ON
from mpdoctor.project.declared_versions.images import IMAGES
from mpdoctor.project.declared_versions.pins import files_named, text_of

SCRIPTS = (".sh", ".slurm", ".sbatch")
STARTS = (
    *(f"*{suffix}" for suffix in SCRIPTS),
    *(".env", "*.env", "[Mm]akefile", "*compose*.y*ml", "environment*.y*ml", "tox.ini"),
)
FOLDERS = ("docker", "scripts")
_PROJECTS = (
    *(*IMAGES, ".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt"),
    *("*compose*.y*ml", "environment*.y*ml", "tox.ini", "README*", "LICENSE*"),
)
# `ENV NAME 1` of a Dockerfile, `NAME: "1"` of YAML, `export NAME=1`; what TensorFlow takes for a yes (environment.py)
_SETTING = re.compile(rf"""(?<![\w$]){LEGACY_KERAS}["']?(?:\s*[=:]\s*|\s+)["']?(?P<value>[\w$\{{]*)""")
# Whole texts of a program: what stands before a command, or is given to one
_IN_COMMAND = re.compile(
    rf"""(?P<quote>["'])(?:\w+=\S*\s+){{0,20}}{LEGACY_KERAS}=(?:1|[Tt]rue)(?:\s+\w+=[^\s"']*){{0,20}}\s*"""
    r"""(?:\s(?:python|bash|sh|exec|mpirun|torchrun)[\w.]*\s[^"'\n]*)?(?P=quote)"""
)


def is_project(folder: Path) -> bool:
    """Whether the scripts in a folder are about this project. A home, or /tmp, may hold anybody's."""
    return bool(files_named(folder, *_PROJECTS))


def file_that_sets_it(folder: Path) -> str:
    """The name of the first that does; "" where none does, or one sets something else as well: then it depends."""
    name = ""
    for place in ("", *FOLDERS):
        for path in files_named(folder / place, *IMAGES, *STARTS):
            values = set(_values(text_of(path), is_script=path.suffix in SCRIPTS))
            if values - set(LEGACY_KERAS_ON):
                return ""
            if values and not name:
                name = path.name
    return name


def sets_it_for_a_command(text: str) -> bool:
    """Whether a Python program holds a command, or the beginning of one, with the setting:
    `"TF_USE_LEGACY_KERAS=1 python train.py"`. A message that speaks of it is none."""
    return LEGACY_KERAS in text and _IN_COMMAND.search(text) is not None


def _values(text: str, is_script: bool) -> Iterator[str]:
    """What the variable is set to. In a script what is indented may depend on a condition: "", nothing known."""
    for line in text.splitlines() if LEGACY_KERAS in text else ():
        setting = _SETTING.search(line.partition("#")[0])
        if setting is not None:
            yield "" if is_script and line[:1].isspace() else setting["value"]
