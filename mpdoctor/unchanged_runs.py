"""Checks of source that say again what an earlier one said: its questions to the system all have the same answers.

What is kept of a run is one file in the user's cache directory: the answers, and the diagnosis. It is signed, as the
cache of the source stage is, and what this user's mpdoctor has not written itself is never looked at.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import (
    AlsoSeen,
    Diagnosis,
    Edit,
    Excerpt,
    Finding,
    Fix,
    RuleSummary,
    Severity,
    Skipped,
    Stage,
    TargetReport,
)
from mpdoctor.project.asked_of_system import Record, are_answered_as, recorded
from mpdoctor.project.json_rows import Rows
from mpdoctor.project.signed_files import Key, signed_bytes, write_signed
from mpdoctor.project.users_cache import made_by, name_from_texts, remove_oldest, users_cache_place
from mpdoctor.settings.options import Settings

SUFFIX = ".run"  # of one choice of settings in one working directory
_ROWS = Rows(
    *(AlsoSeen, Diagnosis, Edit, Excerpt, Finding, Fix, Keras, Location, RuleSummary, Severity, Skipped, Stage),
    TargetReport,
)


def diagnosis_of_files(settings: Settings, diagnose: Callable[[], Diagnosis]) -> Diagnosis:
    """What `diagnose` says, or said of the same files, and of all else that it asked for.

    settings
        See `Settings.is_of_files`."""
    place = users_cache_place() if settings.cache and settings.is_of_files else None
    if place is None:
        return diagnose()
    kept = KeptRun(place.directory, place.key_file, settings)
    return kept.diagnosis() or kept.of(diagnose)


class KeptRun:
    """What is kept of the last run with these settings in this working directory."""

    def __init__(self, directory: Path, key: Path, settings: Settings) -> None:
        """`key`: the file that holds it, outside of the directory."""
        files = [(target.files, target.denied, target.passed_over) for target in settings.targets]
        targets = tuple(dataclasses.replace(target, files=(), denied=(), passed_over=()) for target in settings.targets)
        asked = repr((str(Path.cwd()), sys.path, dataclasses.replace(settings, targets=targets)))
        self._files = name_from_texts(repr(files))
        self._file = directory / f"{name_from_texts(asked)}{SUFFIX}"
        self._key, self._purpose = Key(key), made_by()

    def diagnosis(self) -> Diagnosis | None:
        """None where any answer has changed, or nothing is kept."""
        key = self._key.find()
        kept = signed_bytes(self._file, key, self._purpose) if key is not None else None
        if kept is None:
            return None
        files, answers, diagnosis = json.loads(kept)
        is_same = files == self._files and are_answered_as(answers)
        return _ROWS.value(diagnosis) if is_same else None

    def of(self, diagnose: Callable[[], Diagnosis]) -> Diagnosis:
        with recorded() as record:
            diagnosis = diagnose()
        self._keep(record, diagnosis)
        return diagnosis

    def _keep(self, record: Record, diagnosis: Diagnosis) -> None:
        """A run that was not the same all the time, or that broke, is not kept; nor is one whose file can't be written:
        the next one takes longer, and says the same."""
        if not record.is_steady or diagnosis.crashed:
            return
        try:
            rows = [self._files, record.answers, _ROWS.from_value(diagnosis)]
            key = self._key.find_or_make()
            if key is not None:
                write_signed(self._file, key, self._purpose, json.dumps(rows, separators=(",", ":")).encode())
                remove_oldest(self._file.parent, SUFFIX)
        except (OSError, TypeError):  # TypeError: what JSON has no form for
            return
