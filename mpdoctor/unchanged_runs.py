"""Checks of source files that have not changed: the diagnosis of an earlier run, if all its questions to the system
(`project/asked_of_system.py`) still have the same answers.

A run is kept as one file in the user's cache directory, with its answers and its diagnosis. It is signed, as the cache
of the source stage is: what this user's mpdoctor has not written itself is never read.
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
    """The kept diagnosis of an unchanged run, else that of `diagnose`, which is then kept. Only runs are kept of which
    `Settings.is_of_files` is true."""
    place = users_cache_place() if settings.cache and settings.is_of_files else None
    if place is None:
        return diagnose()
    kept = KeptRun(place.directory, place.key_file, settings)
    return kept.diagnosis() or kept.record(diagnose)


class KeptRun:
    """The file of the last run with these settings in this working directory."""

    def __init__(self, directory: Path, key: Path, settings: Settings) -> None:
        """`key`: the file that holds it, outside of the directory."""
        files = [(target.files, target.denied, target.passed_over) for target in settings.targets]
        targets = tuple(dataclasses.replace(target, files=(), denied=(), passed_over=()) for target in settings.targets)
        asked = repr((str(Path.cwd()), sys.path, dataclasses.replace(settings, targets=targets)))
        self._files = name_from_texts(repr(files))
        self._file = directory / f"{name_from_texts(asked)}{SUFFIX}"
        self._key, self._purpose = Key(key), made_by()

    def diagnosis(self) -> Diagnosis | None:
        """The kept diagnosis; None if any answer has changed, or nothing is kept."""
        key = self._key.find()
        kept = signed_bytes(self._file, key, self._purpose) if key is not None else None
        if kept is None:
            return None
        files, answers, diagnosis = json.loads(kept)
        is_same = files == self._files and are_answered_as(answers)
        return _ROWS.value(diagnosis) if is_same else None

    def record(self, diagnose: Callable[[], Diagnosis]) -> Diagnosis:
        """The diagnosis that `diagnose` returns, which is kept."""
        with recorded() as record:
            diagnosis = diagnose()
        self._keep(record, diagnosis)
        return diagnosis

    def _keep(self, record: Record, diagnosis: Diagnosis) -> None:
        """Write the file, unless a file changed during the run, a rule broke, or the file can't be written: the next
        run then takes longer, with the same result."""
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
