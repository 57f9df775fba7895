"""Targets and outputs for which no new file can be written, and why."""

from __future__ import annotations

import os
from pathlib import Path

from mpdoctor.project.targets import Target


class Refused(Exception):
    """No new file can be made of this one. The text says why, to the user."""


def path_to_read(target: Target, output: Path) -> Path:
    """The path of the saved model to mend. Raises Refused where no new file can be written to `output`."""
    if target.kind == "saved-model":
        raise Refused(
            f"{target.id} is a SavedModel directory: the dtypes of its functions were fixed when they were traced, so "
            "that another policy in its configuration would change nothing that is served. Save the model as .keras, "
            "mend that, and export it again."
        )
    if target.path is None or not target.is_saved:
        raise Refused(f"{target.id} is no saved model: --output is for a .keras or .h5 file.")
    if os.path.lexists(output):
        raise Refused(refusal_to_overwrite(output))
    if not output.parent.is_dir():
        raise Refused(f"--output {output}: there is no directory {output.parent}.")
    if output.suffix.lower() != target.path.suffix.lower():
        raise Refused(
            f"--output {output}: the new file has the format of the old one, so its name must end in "
            f"{target.path.suffix}."
        )
    return target.path


def refusal_to_overwrite(output: Path) -> str:
    return f"--output {output} exists, and nothing is overwritten: name another file."
