"""The README's table of rules, made from the rules: `python -m tools.readme` writes it between its two marks."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.cli.texts.rule_texts import markdown_table_from_rules
from mpdoctor.rules.registry import all_rules

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- mpdoctor rules --output-format markdown -->\n", "<!-- end -->"


def with_table(text: str) -> str:
    """A README with the table as the rules are now. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no {(BEGIN if not begin else END).strip()}")
    return f"{before}{begin}{markdown_table_from_rules(all_rules()).rstrip()}\n{end}{after}"


def main() -> None:
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
