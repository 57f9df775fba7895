"""What a project tells its readers to install: the commands in its README and in its page on the installation.

A command alone counts. A sentence about a release, a table, or a list of changes tells what was once tried, and a
command that is said to be for that release "or newer" tells where it begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.project.declared_versions.images import pins_from_image
from mpdoctor.project.declared_versions.install_commands import pins_from_commands
from mpdoctor.project.declared_versions.pins import Pin, files_named, text_of

_SUFFIXES = ("", ".md", ".rst", ".txt", ".markdown")
_README, _INSTALL = "[Rr][Ee][Aa][Dd][Mm][Ee]*", "[Ii][Nn][Ss][Tt][Aa][Ll][Ll]*"
_DOCS = ("docs", "doc")
_MOST_PAGES = 10  # a README in each of many languages
_LARGEST = 2**20
# Of a line, or of the heading above it
_FOR_OTHERS = re.compile(
    r"\b(?:not|never|avoid|instead|don't|cannot|fails?|legacy|old(?:er)?|previous(?:ly)?|deprecated|unsupported)\b",
    re.IGNORECASE,
)
_FROM_THERE_ON = re.compile(
    r"\b(?:or|and)\s{1,9}(?:any\s{1,9})?(?:newer|later|higher|above|greater|up)\b|\bat\s{1,9}least\b|\bminimum\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_OF_ITS_HISTORY = re.compile(
    r"change.?log|\bchanges\b|\bnews\b|what's new|\bupdates?\b|release notes|\bhistory\b|troubleshoot|\bfaq\b",
    re.IGNORECASE,
)
# "TensorFlow 2.5", "tensorflow-gpu==2.5.0", "TensorFlow 2.2-2.15"
_RELEASE = re.compile(
    r"\btensorflow(?:[-_ ]gpu)?[\s:=<>~`*v-]{1,6}[12]\.\d{1,2}(?:\.\d{1,2})?(?:\s?[-–]\s?[12]\.\d{1,2})?(?![\w.]*\w)",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"\bdocker\s+(?:pull|run)\s(.*)")
_IMAGE_NAME = re.compile(r"([\w./-]{0,99}tensorflow[\w-]{0,50}):([\w.-]{1,99})")


def pins_from_prose(folder: Path) -> list[Pin]:
    """The pins of install commands in a project's pages that hold for every reader; none of a page where one command
    allows any release."""
    return [pin for page in _pages(folder) for pin in _pins_from_page(page)]


def release_in_prose(folder: Path) -> tuple[str, str] | None:
    """The page that first names a release of TensorFlow, and its words: no installer reads them, and whether that is
    the one to install is for a reader to say."""
    for page in _pages(folder):
        lines = _lines_for_all(text_of(page, _LARGEST))
        named = next(filter(None, map(_RELEASE.search, lines)), None)
        if named is not None:
            return page.name, " ".join(named[0].replace("`", "").replace("*", "").split())
    return None


def _pages(folder: Path) -> list[Path]:
    pages = files_named(folder, _README, _INSTALL)
    pages += [page for place in _DOCS for page in files_named(folder / place, _INSTALL)]
    return [page for page in pages if page.suffix.lower() in _SUFFIXES][:_MOST_PAGES]


def _pins_from_page(path: Path) -> Iterator[Pin]:
    text = text_of(path, _LARGEST)
    for line in _lines_for_all(text) if "tensorflow" in text or "keras" in text else ():
        is_open = _FROM_THERE_ON.search(line) is not None
        for pin in _pins_from_line(line, path):
            yield pin.allowing_all() if is_open else pin


def _pins_from_line(line: str, path: Path) -> Iterator[Pin]:
    yield from pins_from_commands(line, path, "says to install")
    image = _IMAGE.search(line)
    for word in image[1].split() if image else ():
        named = _IMAGE_NAME.match(word)
        if named is not None:
            yield from pins_from_image(named[1], named[2], path, "says to run")


def _lines_for_all(text: str) -> Iterator[str]:
    """The lines of a page, without those for old releases and the sections about them."""
    is_code = is_left_out = False
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        start = line.lstrip()
        if start.startswith(("```", "~~~")):
            is_code = not is_code
        heading = None if is_code else _HEADING.match(start)
        if heading is not None:
            is_left_out = bool(_OF_ITS_HISTORY.search(heading[1]))
        elif not (is_left_out or start.startswith("#") or _FOR_OTHERS.search(line)):
            yield line
