"""Fixes as unified diffs for `git apply` and `patch -p1`; for a notebook one diff per cell, for reading."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from mpdoctor.fixes.notebooks import cell_texts
from mpdoctor.fixes.rounds import NOTEBOOK, EditedFile
from mpdoctor.fixes.texts import decoded

_ENDS_A_NAME = re.compile(r'[\x00-\x1f\x7f"\\]')  # or would begin a line of its own in the patch
NO_NEWLINE = "\\ No newline at end of file\n"


def diff_from_files(files: Iterable[EditedFile]) -> str:
    return "".join(line for file in files for line in _lines(file))


def _lines(file: EditedFile) -> Iterator[str]:
    if file.shown_as.endswith(NOTEBOOK):
        before, after = (cell_texts(data.decode("utf-8-sig")) for data in (file.before, file.after))
        for number, both in enumerate(zip(before, after, strict=True), 1):
            yield from _diff(*both, f"{file.shown_as}:cell {number}")
    else:
        texts = [read[0] if (read := decoded(data)) is not None else "" for data in (file.before, file.after)]
        yield from _diff(texts[0], texts[1], file.shown_as)


def _diff(before: str, after: str, name: str) -> Iterator[str]:
    is_absolute = PurePath(name).is_absolute()
    old, new = (name, name) if is_absolute else (f"a/{name}", f"b/{name}")
    for line in difflib.unified_diff(_split(before), _split(after), _quoted(old), _quoted(new)):
        yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"


def _quoted(name: str) -> str:
    """The name of a file as git reads it in a patch."""
    quoted = _ENDS_A_NAME.sub(lambda found: f"\\{ord(found[0]):03o}", name)
    return name if quoted == name else f'"{quoted}"'


def _split(text: str) -> list[str]:
    """The lines of a text, split as git does: only at line feeds, so a carriage return belongs to its line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
