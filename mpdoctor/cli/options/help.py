"""Layout of `--help`: options grouped by topic, examples at the end."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TARGET = re.compile(r"\.(?:py|ipynb|keras|h5|hdf5)(?::\w+)?$")
OTHER = "Other"  # of options that name no group


class HelpInGroups(TyperCommand):
    """A command whose options stand under headings: typer's `rich_help_panel`, drawn without rich, which would have to
    be imported first."""

    examples: Sequence[tuple[str, str]] = ()  # a command line, and what it does
    groups: Sequence[str] = ()  # in the order in which they are shown

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records: dict[str, list[tuple[str, str]]] = {group: [] for group in (*self.groups, OTHER)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                records[getattr(param, "rich_help_panel", None) or OTHER].append(record)
        _write_lists(records.items(), formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.examples:
            _write_lists([("Examples", list(self.examples))], formatter)


class GroupHelp(TyperGroup):
    """A group of commands with examples at the end of its help."""

    examples: Sequence[tuple[str, str]] = ()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does it; who names a target in the place of a command is told the command."""
        first = args[0] if args else ""
        is_there = os.path.exists(first)  # noqa: PTH110 - Path's raises for a name that is too long
        if first not in self.commands and first.isprintable() and (is_there or _TARGET.search(first)):
            ctx.fail(f"No such command {first!r}. To examine it: mpdoctor check {shlex.join(args)}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_lists([("Examples", list(self.examples))], formatter)


def _write_lists(lists: Iterable[tuple[str, list[tuple[str, str]]]], formatter: Any) -> None:
    for heading, records in lists:
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)
