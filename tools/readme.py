"""The tables of written pages that are made from the code: `python -m tools.readme` writes them between their marks.

The rules in README.md, and the rooms in docs/architecture.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.cli.texts.rule_texts import markdown_table_from_rules
from mpdoctor.rules.registry import all_rules
from tools.room_map import table_of_rooms

ROOT = Path(__file__).resolve().parents[1]
README, ARCHITECTURE = ROOT / "README.md", ROOT / "docs" / "architecture.md"
RULES, END = "mpdoctor rules --output-format markdown", "<!-- end -->"
ROOMS = re.compile(r"<!-- (rooms of ([\w.]+)) -->")


def with_tables(text: str) -> str:
    """A page with its tables as the code is now. Raises ValueError where the mark behind a table is missing."""
    if f"<!-- {RULES} -->" in text:
        text = _with_table(text, RULES, markdown_table_from_rules(all_rules()))
    for mark, package in ROOMS.findall(text):
        text = _with_table(text, mark, table_of_rooms(package))
    return text


def _with_table(text: str, mark: str, table: str) -> str:
    before, begin, rest = text.partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"nothing ends the table of {mark}: {END} is missing")
    return f"{before}{begin}{table.rstrip()}\n{end}{after}"


def main() -> None:
    for page in (README, ARCHITECTURE):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
