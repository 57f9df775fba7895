"""Rules as text: the documentation of one, tables of all, and suggestions for a misspelled code or name."""

from __future__ import annotations

import difflib
import io
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mpdoctor.finding import Severity
from mpdoctor.rules.registry import Rule, codes_and_names

if TYPE_CHECKING:
    from rich.console import RenderableType

COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def markdown_from_rule(rule: Rule) -> str:
    title = f"# {rule.code} {rule.name}"
    fix = f" · {fix_of(rule)}" if rule.fixes else ""
    about = f"*{rule.severity.value} · {_generations(rule)} · seen in: {', '.join(rule.stages)}{fix}*"
    loops = "\n\nCorrect custom loops for your Keras: `mpdoctor explain loop`." if rule.family == "loops" else ""
    return f"{title}\n\n{about}\n\n{rule.docs}{loops}\n"


def markdown_table_from_rules(rules: Iterable[Rule]) -> str:
    """The table in the README."""
    lines = ["| Code | Name | Severity | Seen in | What it finds |", "|---|---|---|---|---|"]
    for rule in rules:
        summary = rule.summary.replace("|", r"\|")
        cells = (rule.code, rule.name, rule.severity.value, ", ".join(rule.stages), summary)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def json_from_rules(rules: Iterable[Rule]) -> str:
    sections = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity.value,
            "family": rule.family,
            "keras": list(rule.keras),
            "stages": list(rule.stages),
            "fixes": list(rule.fixes),
            "summary": rule.summary,
            "url": rule.url,
            "help_markdown": rule.docs,
        }
        for rule in rules
    ]
    return json.dumps(sections, indent=2) + "\n"


def terminal_table_from_rules(rules: Iterable[Rule], width: int, color: bool) -> str:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for rule in rules:
        entry = Text(rule.name, style="bold").append(f"  {', '.join(_stages_and_fix(rule))}\n", style="not bold dim")
        table.add_row(
            Text(rule.code, style="bold"),
            Text(rule.severity.value, style=COLORS[rule.severity]),
            entry.append(rule.summary, style="not bold"),
        )
    return _text_from_renderable(table, width, color)


def colored_markdown(markdown: str, width: int, color: bool) -> str:
    from rich.markdown import Markdown

    return _text_from_renderable(Markdown(markdown, code_theme="ansi_dark"), width, color)


def near_match(text: str) -> str:
    """ " Did you mean MP302 (attribute-shadowed-by-wrapper)?", or nothing."""
    wanted = text.strip().lower().replace("_", "-").replace(" ", "-")
    if _is_code_of_another_tool(wanted):
        return " mpdoctor's codes begin with MP, as in MP302."
    if wanted.startswith("mp") and len(wanted) == len("mp101"):  # letters that are taken for digits
        wanted = "mp" + wanted[2:].translate(str.maketrans("oli", "011"))
    by_word = {word: rule for rule in codes_and_names() for word in (rule[0].lower(), rule[1])}
    near = difflib.get_close_matches(wanted, by_word, n=3, cutoff=0.6)
    # a code is mistyped in place: MP1O1 is nearer to MP101 than to MP911
    near.sort(key=lambda word: -sum(letter == other for letter, other in zip(word, wanted, strict=False)))
    if not near and len(wanted) > 3:
        near = [word for word in by_word if wanted in word][:3]
    meant = dict.fromkeys("{} ({})".format(*by_word[word]) for word in near)
    return f" Did you mean {' or '.join(meant)}?" if meant else ""


def _is_code_of_another_tool(text: str) -> bool:
    """Whether the text looks like another linter's code (E501, PLW0603): then no rule of ours is suggested for it."""
    match = re.fullmatch(r"([a-z]{1,4})\d{1,4}", text)
    return match is not None and not set(match.group(1)) <= set("mp")


def fix_of(rule: Rule) -> str:
    """ "safe fix", "unsafe fix", "safe or unsafe fix"; "" for a rule without one."""
    return f"{' or '.join(rule.fixes)} fix" if rule.fixes else ""


def _stages_and_fix(rule: Rule) -> list[str]:
    return [*rule.stages, *filter(None, [fix_of(rule)])]


def _generations(rule: Rule) -> str:
    names: dict[tuple[str, ...], str] = {("2",): "Keras 2 and tf_keras", ("3",): "Keras 3"}
    return names.get(rule.keras, "every Keras")


def _text_from_renderable(renderable: RenderableType, width: int, color: bool) -> str:
    from rich.console import Console

    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
    )
    console.print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")) if not color else out.getvalue()
