"""One finding for all names in a program that Keras 3 has removed, where nothing says that it is for an older Keras."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpdoctor.facts.location import Location, location_in_cell
from mpdoctor.finding import AlsoSeen, Finding
from mpdoctor.judging.keras_version import JudgedBy
from mpdoctor.judging.older_keras_code import LAST_KERAS_2, last_release
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.wording import listed

_PLACES_NAMED = 3


def in_one_finding(gone: Sequence[Finding], facts: Mapping[str, SourceFacts], guessed: JudgedBy) -> Finding:
    """One finding for all lines that Keras 3 no longer runs, at the first of them; the others are seen beside it.
    `guessed.usual`: the Keras 3 that nothing asks for."""
    gone = sorted(gone, key=lambda finding: finding.location or Location("", 0))
    named = [f"{_quoted_name(finding)} ({_place_in_words(finding, facts)})" for finding in gone[:_PLACES_NAMED]]
    named += [f"{len(gone) - len(named)} more"] if len(gone) > len(named) else []
    speaker = next((finding for finding in gone if finding.code == "MP102"), gone[0])
    release = min(map(last_release, gone))
    return dataclasses.replace(
        gone[0],
        code=speaker.code,
        name=speaker.name,
        message=f"{_what_is_gone(len(gone), listed(named))}. {_why_guessed(gone, guessed)}.",
        help=_help(release),
        evidence={"lines": len(gone), "written_for": f"tensorflow<{_next_release(release)}"},
        fix=None,  # of one line of many, and for the Keras that the help keeps away from
        also_seen=(
            *gone[0].also_seen,
            *(also for finding in gone[1:] for also in (_sight_from_finding(finding), *finding.also_seen)),
        ),
    )


def _what_is_gone(count: int, named: str) -> str:
    if count == 1:
        return f"This line does not work in Keras 3, which has removed {named}"
    return f"{count} lines use names that Keras 3 has removed, and do not work there: {named}"


def _why_guessed(gone: Sequence[Finding], guessed: JudgedBy) -> str:
    """A sentence: what the project says of its TensorFlow, which is not enough, and by which Keras the files were
    judged therefore."""
    from mpdoctor.project.keras_of_project import ranges_around, release_in_prose_around

    files = list(dict.fromkeys(finding.location.path for finding in gone if finding.location is not None))
    folders = dict.fromkeys(Path(path).parent for path in files)
    ranges = list(dict.fromkeys(sentence for folder in folders for sentence in ranges_around(folder)))
    in_prose = None if ranges else next(filter(None, map(release_in_prose_around, folders)), None)
    said = "The project does not say which TensorFlow it needs"
    if ranges:
        said = f"{listed(ranges)}, which {'allows' if len(ranges) == 1 else 'allow'} Keras 3 as well"
    elif in_prose is not None:
        said = f"{in_prose[0]} speaks of `{in_prose[1]}`, which no installer reads"
    elif guessed.others:  # the project says it of those
        these = "this file needs" if len(files) == 1 else f"these {len(files)} files need"
        said = f"Nothing says which TensorFlow {these}"
    keras = guessed.usual
    return f"{said}, and " + (
        f"{keras} is {keras.because}" if keras.version else "TensorFlow 2.16 and later bring Keras 3"
    )


def _next_release(release: tuple[int, ...]) -> str:
    return "2" if release[0] == 1 else f"{release[0]}.{release[1] + 1}"


def _help(release: tuple[int, ...]) -> str:
    """The help text. tf_keras still has what Keras 3 removed, but not what was removed earlier (2.21)."""
    pin = f"Pin the TensorFlow that it was written for: `tensorflow<{_next_release(release)}` in requirements.txt"
    legacy = ", or install tf_keras and set TF_USE_LEGACY_KERAS=1" if release == LAST_KERAS_2 else ""
    return f"{pin}{legacy}. To move it to Keras 3, check with `--keras 3`: it reports each line, with its replacement."


def _quoted_name(finding: Finding) -> str:
    name = re.search(r"`[^`]+`", finding.message)
    return name[0] if name else finding.name


def _place_in_words(finding: Finding, facts: Mapping[str, SourceFacts]) -> str:
    if finding.location is None:
        return finding.target
    here = location_in_cell(finding.location, facts[finding.location.path].cells)
    cell = [f"cell {here.cell}"] if here.cell else []
    return ", ".join((here.path, *cell, f"line {here.line}"))


def _sight_from_finding(finding: Finding) -> AlsoSeen:
    place = finding.location
    text = f"{finding.message} {finding.help}"
    return AlsoSeen(finding.code, finding.stage, text, place.path if place else None, place.line if place else None)
