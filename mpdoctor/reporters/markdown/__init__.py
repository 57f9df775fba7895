"""A ticket: what is pasted into an issue, at TensorFlow's or anywhere. It fits, and holds nothing private.

The verdict, the environment in the order of TensorFlow's bug template, the findings, the layers, the training, the
command that shows it again, and the details folded.
"""

from __future__ import annotations

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.markdown.details import details
from mpdoctor.reporters.markdown.escaping import block, prose
from mpdoctor.reporters.markdown.sections import environment, findings, graphs, layers, trainings
from mpdoctor.reporters.privacy import Surroundings, without_private
from mpdoctor.reporters.visible import one_line, shortened
from mpdoctor.reporters.words.headline import headline_from_diagnosis
from mpdoctor.reporters.words.look import Look

MOST = 60_000  # GitHub takes 65 536 characters
NOBODY = Surroundings()


def render(diagnosis: Diagnosis, *, surroundings: Surroundings = NOBODY) -> str:
    shown = without_private(diagnosis, surroundings)
    look = Look()
    headline = headline_from_diagnosis(shown, look)
    told = [
        f"## {headline.mood.mark(look)} {prose(headline.whole)}",
        environment(shown, look),
        *findings(shown, look),
        *layers(shown, look),
        *graphs(shown, look),
        *trainings(shown, look),
        "### Run again",
        block([shortened(one_line(shown.command), 1000)], "sh"),
    ]
    return "\n\n".join(_that_fits([*told, *details(shown, look)])) + "\n"


def _that_fits(paragraphs: list[str]) -> list[str]:
    """The last ones are left out, whole, where it gets too long for an issue."""
    kept: list[str] = []
    room = MOST
    for paragraph in paragraphs:
        room -= len(paragraph) + 2
        if room < 0:
            return [*kept, "*The rest is left out, so that this fits into an issue: HTML and JSON hold it.*"]
        kept.append(paragraph)
    return kept
