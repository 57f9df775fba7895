"""What the cells of a notebook install: `!pip install tensorflow==2.9.*`, `%pip install …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.project.declared_versions.install_commands import pins_from_commands
from mpdoctor.project.declared_versions.pins import Pin, text_of

_LARGEST = 2**26  # bytes of JSON, of each of which Python makes up to 25
_COMMAND = re.compile(r"\s*(?P<comment>#[#\s]{0,9})?[!%]\s*(?P<command>\S.*)")  # a line that starts a program


def pins_from_notebook(path: Path) -> tuple[list[Pin], list[Pin]]:
    """(pins of the install commands that the notebook runs, pins of those that are commented out)."""
    run: list[Pin] = []
    commented: list[Pin] = []
    for line in _lines(path):
        command = _COMMAND.match(line)
        if command is not None:
            pins = commented if command["comment"] else run
            pins += pins_from_commands(
                command["command"], path, "has in a comment" if command["comment"] else "installs"
            )
    return run, commented


def _lines(path: Path) -> Iterator[str]:
    text = text_of(path, _LARGEST)
    if not ("tensorflow" in text and "install" in text):
        return
    import json  # as few install it

    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # it is told elsewhere that it is no notebook
        return
    cells = data.get("cells") if isinstance(data, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        source = cell.get("source", "") if isinstance(cell, dict) and cell.get("cell_type") == "code" else ""
        written = source if isinstance(source, list) else [source]
        yield from "".join(text for text in written if isinstance(text, str)).splitlines()
