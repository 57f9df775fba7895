"""Escapes any text so that GitHub's Markdown shows just that text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from mpdoctor.reporters.printable import one_line, shortened, visible
from mpdoctor.reporters.text.style import parts_from_prose

LONGEST_CELL = 120
LONGEST_PROSE = 1500
_MEANING = re.compile(r"[\\`*_\[\]<>|~&$]")
# Behind blanks alone these begin a list or a heading, or underline one.
_BEGINNING = re.compile(r"^( *)(?:([-+=#])|(\d+)(?=[.)]))")
# In prose these would call somebody, refer to an issue, become a link or a picture: as code they do not.
_CALLING = re.compile(
    r"(?:https?://|ftp://|mailto:|www\.)\S+|(?<!\S)[^\s@]*@\S+|(?<!\w)[\w./-]*#\d+|(?<!\w)GH-\d+|(?<!\w):[\w+-]+:"
)
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")


def prose(text: str, longest: int = LONGEST_PROSE) -> str:
    """Sentences on one line; what stands between backticks is code."""
    parts = parts_from_prose(one_line(shortened(text, longest)))
    return _joined(code(part, longest) if is_code else _plain(part) for is_code, part in parts).strip()


def code(text: str, longest: int = LONGEST_CELL) -> str:
    shown = shortened(one_line(text), longest)
    if not shown.strip():
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown[0] in " `" or shown[-1] in " `" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def block(lines: Iterable[str], language: str = "text") -> str:
    """A fenced block; the fence is longer than any in it."""
    shown = "\n".join(visible(line) for line in lines)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; headings and cells are Markdown already."""
    all_rows = [tuple(headings), *(tuple(row) for row in rows)]
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in all_rows]
    lines.insert(1, "|" + " --- |" * len(all_rows[0]))
    return "\n".join(lines)


def folded(summary: str, *content: str) -> str:
    inner = "\n\n".join(content)
    return f"<details>\n<summary>{html.escape(one_line(summary))}</summary>\n\n{inner}\n\n</details>"


def _cell(text: str) -> str:
    return _UNESCAPED_PIPE.sub(r"\\|", text)


def _plain(text: str) -> str:
    parts = []
    end = 0
    for match in _CALLING.finditer(text):
        parts += [_escaped(text[end : match.start()]), code(match.group(), LONGEST_PROSE)]
        end = match.end()
    return _joined([*parts, _escaped(text[end:])])


def _joined(parts: Iterable[str]) -> str:
    """Two pieces of code must not touch: their backticks would be one fence."""
    joined = ""
    for part in parts:
        joined += " " + part if joined.endswith("`") and part.startswith("`") else part
    return joined


def _escaped(text: str) -> str:
    shown = _MEANING.sub(r"\\\g<0>", text)
    return _BEGINNING.sub(lambda found: f"{found[1]}{found[3]}\\" if found[3] else f"{found[1]}\\{found[2]}", shown)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
