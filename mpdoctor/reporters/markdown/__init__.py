"""The Markdown report, to paste into an issue: it stays within GitHub's length limit.

The verdict, the findings, the layers, the training, the environment in the order of TensorFlow's bug template, the
command that shows it again, and the details folded.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.markdown.details import details
from mpdoctor.reporters.markdown.escaping import block, prose
from mpdoctor.reporters.markdown.sections import environment, findings, graphs, layers, recorded_runs, trainings
from mpdoctor.reporters.printable import one_line, shortened
from mpdoctor.reporters.reading_order import weightiest_first
from mpdoctor.reporters.text.headline import headline_from_diagnosis
from mpdoctor.reporters.text.style import Style

MOST = 60_000  # GitHub takes 65 536 characters


def render(diagnosis: Diagnosis) -> str:
    look = Style()
    diagnosis = weightiest_first(diagnosis)
    headline = headline_from_diagnosis(diagnosis, look)
    parts = chain(
        [f"## {headline.mood.mark(look)} {prose(headline.whole)}"],
        findings(diagnosis, look),
        layers(diagnosis, look),
        graphs(diagnosis, look),
        trainings(diagnosis, look),
        recorded_runs(diagnosis, look),
        ["### Environment", environment(diagnosis, look)],
        ["### Run again", block([shortened(one_line(diagnosis.command), 1000)], "sh")],
        details(diagnosis, look),
    )
    return "\n\n".join(_that_fits(parts)) + "\n"


def _that_fits(paragraphs: Iterable[str]) -> list[str]:
    """The paragraphs that fit into an issue, from the first on, and a note in the place of the others."""
    kept: list[str] = []
    room = MOST
    for paragraph in paragraphs:
        room -= len(paragraph) + 2
        if room < 0:
            return [*kept, "*The rest is left out, so that this fits into an issue: HTML and JSON hold it.*"]
        kept.append(paragraph)
    return kept
