"""A comparison for people: the table, followed by the reasons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby

from mpdoctor.compared import Compared
from mpdoctor.facts.written_numbers import count
from mpdoctor.reporters.compared.reasons import headline, reasons_from_compared
from mpdoctor.reporters.compared.rows import rows_from_compared
from mpdoctor.reporters.text.style import READABLE, Style

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def render(compared: Compared, *, width: int = 80, color: bool = False, blocks: bool = True) -> str:
    look = Style(width, blocks)
    first = textwrap.wrap(headline(compared, look), look.width)
    paragraphs = [
        [f"{BOLD}{line}{PLAIN}" if color else line for line in first],
        list(_table(compared, look)),
        list(_reasons(compared, look)),
        textwrap.wrap(how_measured(compared), min(look.width, READABLE)),
    ]
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in paragraphs if lines)


def how_measured(compared: Compared) -> str:
    """What a time is, in how many processes it was measured, and what was not looked at."""
    timed = [timing for run in compared.runs for timing in run.known]
    runs = len(compared.runs) + sum(len(run.known) for run in compared.runs)
    ran = f"The program was run {runs} times up to its training, and did as often whatever it does before that."
    if not timed:
        return ran
    blocks = sum(len(timing.blocks) for timing in timed)
    on_gpu = any(timing.device == "GPU" for timing in timed)
    where = "Measured on a GPU, where no test of mpdoctor has run." if on_gpu else "Measured on a CPU."
    return (
        f"Times are medians of {count(blocks, 'block')} of steps in {count(compared.rounds, 'round')} that alternate "
        f"between the policies, {timed[0].warm_up} steps of warm-up left out: the compiled step, the next batch and "
        f"what Keras does between two steps. Losses are of another short training, which is watched. {ran} {where}"
    )


def _table(compared: Compared, look: Style) -> Iterator[str]:
    """Columns side by side, or below each other where the terminal is too narrow."""
    measured = rows_from_compared(compared, look)
    if not measured:
        return
    rows = [("", [run.policy for run in compared.runs]), *measured]
    wide = [max(len(label) for label, _ in rows)]
    wide += [max(len(texts[place]) for _, texts in rows) for place in range(len(compared.runs))]
    if sum(wide) + 2 * len(wide) + 2 <= look.width:
        for label, texts in rows:
            cells = [f"{text or look.dash:<{wide[place]}}" for place, text in enumerate(texts, 1)]
            yield f"  {label:<{wide[0]}}  {'  '.join(cells)}".rstrip()
        return
    for place, run in enumerate(compared.runs):
        yield f"  {run.policy}"
        for label, texts in rows[1:]:
            yield f"    {label:<{wide[0]}}  {texts[place] or look.dash}"


def _reasons(compared: Compared, look: Style) -> Iterator[str]:
    """Policies with the same sentences together; further lines of a sentence are indented."""
    of_policy: dict[str, list[str]] = {}
    for policy, sentence in reasons_from_compared(compared, look):
        of_policy.setdefault(policy, []).append(sentence)
    for sentences, policies in groupby(of_policy, lambda policy: of_policy[policy]):
        yield f"{', '.join(policies)}:"
        for sentence in sentences:
            yield from textwrap.wrap(
                sentence,
                min(look.width, READABLE),
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
