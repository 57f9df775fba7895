"""What the shell scripts of a project install with pip: `setup.sh` with `python3 -m pip install tensorflow==2.3.1`."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.project.declared_versions.install_commands import pins_from_commands
from mpdoctor.project.declared_versions.legacy_keras import SCRIPTS, is_project
from mpdoctor.project.declared_versions.pins import Pin, files_named, text_of


def pins_from_scripts(folder: Path) -> list[Pin]:
    """The pins in the shell scripts of a project's root folder; none for other folders, which may hold anybody's
    scripts."""
    paths = files_named(folder, *(f"*{suffix}" for suffix in SCRIPTS)) if is_project(folder) else ()
    return [
        pin
        for path in paths
        for line in text_of(path).replace("\\\n", " ").splitlines()
        for pin in pins_from_commands(line.partition("#")[0], path)
    ]
