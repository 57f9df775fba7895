"""A comparison as one page of HTML: the table, the losses of all policies on one plot, the reasons."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mpdoctor.compared import Compared
from mpdoctor.reporters.compared.reasons import headline, reasons_from_compared
from mpdoctor.reporters.compared.rows import rows_from_compared
from mpdoctor.reporters.compared.text import how_measured
from mpdoctor.reporters.html.plot import courses_of_losses
from mpdoctor.reporters.printable import visible
from mpdoctor.reporters.text.style import Style, parts_from_prose

TEMPLATES = Path(__file__).parents[1] / "html" / "templates"
MARKS = ("first", "second", "third")  # classes of lines in style.css


def render(compared: Compared) -> str:
    look = Style()
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=_shown,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    courses = courses_of_losses([run.losses for run in compared.runs])
    lines = [(run.policy, MARKS[place % len(MARKS)], course)
             for place, (run, course) in enumerate(zip(compared.runs, courses, strict=False))]  # fmt: skip
    return templates.get_template("compared.html").render(
        compared=compared,
        look=look,
        headline=headline(compared, look),
        rows=rows_from_compared(compared, look),
        reasons=[(policy, _prose(sentence)) for policy, sentence in reasons_from_compared(compared, look)],
        how=how_measured(compared),
        lines=[line for line in lines if line[2] is not None],
        steps=max((len(run.losses) for run in compared.runs), default=0),
        style=Markup(style),
        style_hash="sha256-" + base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii"),
    )


def _prose(text: str) -> Markup:
    parts = parts_from_prose(visible(text))
    return Markup("").join(Markup("<code>{}</code>").format(part) if is_code else part for is_code, part in parts)


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
