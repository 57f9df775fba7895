"""Sentences in which what stands between backticks is code."""

from __future__ import annotations

import re

_CODE = re.compile(r"`([^`\n]+)`")


def parts_from_prose(text: str) -> list[tuple[bool, str]]:
    """(whether it is code, text), in order, the backticks left out."""
    parts = []
    end = 0
    for found in _CODE.finditer(text):
        parts += [(False, text[end : found.start()]), (True, found.group(1))]
        end = found.end()
    parts.append((False, text[end:]))
    return [part for part in parts if part[1]]
