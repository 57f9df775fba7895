"""Examinations of a program whose files hold something else than what lies on the disk."""

from __future__ import annotations

import dataclasses

from mpdoctor.diagnosis import diagnose_with_sources
from mpdoctor.mending.rounds import Examine
from mpdoctor.progress import Progress
from mpdoctor.settings.options import Settings


def examining(settings: Settings, progress: Progress) -> Examine:
    """All of it, as `check` does."""
    return lambda contents: diagnose_with_sources(dataclasses.replace(settings, edited=contents), progress)


def reading(settings: Settings, progress: Progress) -> Examine:
    """The source alone."""
    return examining(dataclasses.replace(settings, static=True), progress)
