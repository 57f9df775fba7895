"""`--from-run`: trains a script on the failing batch that a recorded run has stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.cli.streams import fail
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.recorded.kept_batch import batch_of_run
from mpdoctor.recorded.run_reader import NotARunFile

if TYPE_CHECKING:
    from mpdoctor.project.targets import Target


def recorded_batch(run: Path, examined: Sequence[Target], static: bool) -> Path:
    """The file of it. Ends with a usage error where there is none, or nothing that it can be trained in."""
    if static or [target.kind for target in examined] != ["script"]:
        fail("--from-run trains a script on the recorded batch: name one script, and leave out what only reads source.")
    try:
        return batch_of_run(run, bytes_from_file)
    except OSError as error:
        fail(f"--from-run: {run} cannot be read: {error.strerror}.")
    except NotARunFile as reason:
        fail(f"--from-run: {run} {reason}")
