"""The program of a notebook, as the examiner runs it: the code of its cells in the place of its JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Cells
from mpdoctor.facts.machine.environment import RUN_AS
from mpdoctor.project.asked_of_system import bytes_of
from mpdoctor.project.targets import Target
from mpdoctor.source.notebooks import program_from_notebook

MOST_NAMED, LONGEST = 3, 60  # of the lines that were left out, and characters of one


class NoProgram(Exception):
    """A notebook whose source was read before holds no Python any more. The text says so to the user."""


@dataclass(frozen=True)
class GivenTexts:
    """What the examiner is given in the place of files.

    texts
        By real path.
    cells, left_out
        Of a notebook: where its cells begin, and the magics and shell commands that are not run.
    """

    texts: Mapping[str, bytes]
    cells: Cells = ()
    left_out: tuple[str, ...] = ()


def given_texts(target: Target, edited: Mapping[str, bytes]) -> GivenTexts:
    """The edited texts; for a notebook also its program, in the place of its JSON.

    Raises NoProgram."""
    if target.kind != "notebook" or target.path is None:
        return GivenTexts(edited)
    path = os.path.realpath(target.path)
    try:
        program = program_from_notebook(edited[path] if path in edited else bytes_of(path), path)
    except OSError as error:
        raise NoProgram(f"{target.id} can't be read any more: {error.strerror}.") from error
    if program is None:
        raise NoProgram(f"{target.id} was changed meanwhile: there is a cell in it that is no Python.")
    return GivenTexts({**edited, path: program.text.encode()}, program.cells, program.left_out)


def as_run(facts: ExaminationFacts, given: GivenTexts) -> ExaminationFacts:
    """The facts of a run; where a notebook ran, with the note that its cells ran as a script, and which of its lines
    did not."""
    if not given.cells:
        return facts
    shortened = (line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in given.left_out[:MOST_NAMED])
    named, more = [f"`{line}`" for line in shortened], len(given.left_out) - MOST_NAMED
    listed = ", ".join(named) + (f" and {more} more" if more > 0 else "")
    without = f", without {listed}" if listed else ""
    failure = facts.failure and replace(facts.failure, left_out=listed)
    return replace(
        facts, failure=failure, environment=(*facts.environment, (RUN_AS, f"a script of its cells{without}"))
    )
