"""Examines a program with edited text in the place of files on disk."""

from __future__ import annotations

import dataclasses
import os

from mpdoctor.diagnosis import diagnose_with_sources
from mpdoctor.mending.rounds import Contents, Examine, Seen
from mpdoctor.progress import Progress
from mpdoctor.project.targets import SOURCE_ONLY
from mpdoctor.settings.options import Settings


def examiner_of_edits(settings: Settings, progress: Progress) -> Examine:
    """A function that examines the program with edited text, through all stages that `check` has."""
    is_run = not any(target.kind in SOURCE_ONLY for target in settings.targets)

    def examine(contents: Contents) -> Seen:
        if is_run:
            by_real_path = {os.path.realpath(path): content for path, content in contents.items()}
            edited = dataclasses.replace(settings, edited=by_real_path)
        else:
            edited = dataclasses.replace(settings, unsaved={**settings.unsaved, **contents})
        return diagnose_with_sources(edited, progress)

    return examine


def reader_of_edits(settings: Settings, progress: Progress) -> Examine:
    """Like `examiner_of_edits`, with the source stage alone."""
    return examiner_of_edits(dataclasses.replace(settings, static=True), progress)
