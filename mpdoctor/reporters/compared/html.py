"""A comparison as one page of HTML: the table, the losses of all policies on one plot, the reasons."""

from __future__ import annotations

from markupsafe import Markup

from mpdoctor.compared import Compared
from mpdoctor.reporters.compared.reasons import headline, reasons_from_compared
from mpdoctor.reporters.compared.rows import rows_from_compared
from mpdoctor.reporters.compared.text import how_measured
from mpdoctor.reporters.html.page_parts import hash_of, prose, source, templates
from mpdoctor.reporters.html.plot import courses_of_losses
from mpdoctor.reporters.text.style import Style

MARKS = ("first", "second", "third")  # classes of lines in style.css


def render(compared: Compared) -> str:
    look = Style()
    style = source("style.css")
    courses = courses_of_losses([run.losses for run in compared.runs])
    lines = [(run.policy, MARKS[place % len(MARKS)], course)
             for place, (run, course) in enumerate(zip(compared.runs, courses, strict=False))]  # fmt: skip
    return (
        templates()
        .get_template("compared.html")
        .render(
            compared=compared,
            look=look,
            headline=headline(compared, look),
            rows=rows_from_compared(compared, look),
            reasons=[(policy, prose(sentence)) for policy, sentence in reasons_from_compared(compared, look)],
            how=how_measured(compared),
            lines=[line for line in lines if line[2] is not None],
            steps=max((len(run.losses) for run in compared.runs), default=0),
            style=Markup(style),
            style_hash=hash_of(style),
        )
    )
