"""The pages that nobody writes: one for each rule, the list of rules, the options, the schema of the JSON; and the maps
on the architecture page.

They are made from the code whenever the documentation is built, as a hook of mkdocs, and are committed nowhere.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import typer

import mpdoctor
from mpdoctor.cli.app import app_for
from mpdoctor.cli.argument_split import RUNNING
from mpdoctor.cli.texts.loop_page import markdown_of_loops
from mpdoctor.cli.texts.rule_texts import markdown_from_rule
from mpdoctor.examiner.protocol.event_kinds import Event
from mpdoctor.facts.versions import Keras
from mpdoctor.rules.registry import Rule, all_rules

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.room_map import map_of_rooms

FAMILIES = {
    "examination": "The examination itself",
    "policy": "Policies and API",
    "layers": "Layers",
    "optimizers": "Optimizers and the wrapper around them",
    "loops": "Custom training loops",
    "numbers": "Numbers, losses and metrics",
    "data": "Data",
    "saving": "Saving and loading",
    "devices": "Devices and speed",
    "training": "The short training",
}
LOOPS = {"keras3": Keras("keras"), "tf_keras": Keras("tf_keras"), "keras2": Keras("tf.keras", "2.4 to 2.15")}
TABLE = ("| Code | Name | Severity | Seen in | Fix | What it finds |", "|---|---|---|---|---|---|")
SCHEMAS = ("schema/diagnosis-1.json", "schema/mended-1.json", "schema/mended-file-1.json", "schema/compared-1.json")


def pages() -> dict[str, str]:
    """Every generated file, by its path in the documentation."""
    told = {f"rules/{rule.name}.md": rule_page(rule) for rule in all_rules()}
    told["rules/index.md"] = rules_page()
    told["options.md"] = options_page()
    told |= {f"loops/{name}.md": markdown_of_loops(keras) for name, keras in LOOPS.items()}
    for schema in SCHEMAS:
        told[schema] = (Path(mpdoctor.__file__).parent / "reporters" / "json" / schema).read_text(encoding="utf-8")
    return told


# --- rules ----------------------------------------------------------------------------------------------------------
def rule_page(rule: Rule) -> str:
    """What `mpdoctor explain` shows, with a link wherever it names another rule."""
    return linked(markdown_from_rule(rule), lambda other: f"{other.name}.md", but=rule)


def rules_page() -> str:
    lines = ["# Rules", "", "`mpdoctor explain CODE` shows the page of a rule in the terminal. What a fix is, and when"]
    lines += ["it is safe, is told under [Fixes](../fixes.md).", ""]
    for family, rules in rules_by_family():
        lines += [f"## {FAMILIES[family]}", "", *TABLE]
        for rule in rules:
            name, summary = f"[{rule.name}]({rule.name}.md)", rule.summary.replace("|", r"\|")
            cells = (rule.code, name, rule.severity.value, ", ".join(rule.stages), ", ".join(rule.fixes), summary)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def rules_by_family() -> Iterator[tuple[str, list[Rule]]]:
    for family in dict.fromkeys(rule.family for rule in all_rules()):
        yield family, [rule for rule in all_rules() if rule.family == family]


def linked(markdown: str, target_of: Callable[[Rule], str], but: Rule | None = None) -> str:
    """Links codes of rules and issues on GitHub in prose; code, headings and the rule `but` stay as they are."""
    by_code = {rule.code: rule for rule in all_rules() if rule is not but}
    parts = re.split(r"(^```.*?^```|`[^`\n]*`|\[[^\]]*\]\([^)]*\)|^#.*?$)", markdown, flags=re.S | re.M)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(
            r"\bMP\d{3}\b",
            lambda match: f"[{match[0]}]({target_of(by_code[match[0]])})" if match[0] in by_code else match[0],
            re.sub(r"\b([\w.-]+/[\w.-]+)#(\d+)", r"[\g<0>](https://github.com/\1/issues/\2)", parts[number]),
        )
    return "".join(parts)


# --- the protocol ---------------------------------------------------------------------------------------------------
def table_of_events() -> str:
    """Every event of the examiner with its fields, and the first sentence of its docstring where it has one."""
    lines = ["| Event | Fields | |", "|---|---|---|"]
    for event in get_args(Event):
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(event))
        own = "" if (event.__doc__ or "").startswith(f"{event.__name__}(") else event.__doc__ or ""
        sentence = re.split(r"(?<=[.!?])\s", " ".join(own.split()))[0].replace("|", r"\|")
        lines.append(f"| `{event.__name__}` | {fields} | {sentence} |")
    return "\n".join(lines)


# --- options --------------------------------------------------------------------------------------------------------
def options_page() -> str:
    lines = ["# Options", "", "What `--help` shows, of every command. What a project keeps in its `pyproject.toml` is"]
    lines += ["described under [In CI](ci.md#settings-of-a-project).", ""]
    for name, command in sorted(typer.main.get_command(app_for(())).commands.items()):  # type: ignore[attr-defined]
        lines += [f"## mpdoctor {name}", "", f"```text\n{usage(name, command)}\n```", "", help_of(command), ""]
        rows = [option_row(option) for option in command.params if option.param_type_name == "option"]
        if rows:
            lines += ["| Option | Default | |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def usage(name: str, command: Any) -> str:
    places = [argument.metavar for argument in command.params if argument.param_type_name == "argument"]
    return " ".join(["mpdoctor", name, "[OPTIONS]", *places, *(["[-- SCRIPT ARGS]"] if name in RUNNING else [])])


def help_of(command: Any) -> str:
    return (command.help or "").strip()


def option_row(option: Any) -> str:
    names = "<br>".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.metavar or option.type.name.upper()}`"
    shown = getattr(option.default, "value", option.default)
    default = "" if shown in (None, False, [], ()) else f"`{shown}`"
    help_text = (option.help or "").replace("|", r"\|")
    return f"| {names}{value} | {default} | {help_text} |"


# --- the hook -------------------------------------------------------------------------------------------------------
def on_config(config: Any) -> Any:
    sections = [
        {FAMILIES[family]: [{f"{r.code} {r.name}": f"rules/{r.name}.md"} for r in rules]}
        for family, rules in rules_by_family()
    ]
    config.nav.append({"Custom loops": [{str(keras): f"loops/{name}.md"} for name, keras in LOOPS.items()]})
    config.nav.append({"Rules": ["rules/index.md", *sections]})
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Written pages may name rules by their codes too."""
    if page.file.generated_by is not None:
        return markdown
    depth = page.file.src_uri.count("/")
    markdown = re.sub(r"<!-- map of ([\w.]+) -->", lambda match: map_of_rooms(match[1]), markdown)
    markdown = markdown.replace("<!-- events -->", table_of_events())
    return linked(markdown, lambda rule: f"{'../' * depth}rules/{rule.name}.md")
