"""Bytes → a syntax tree with places, or a `Problem` in plain words. Never an exception, whatever the bytes
are."""

from __future__ import annotations

import ast
import codecs
import io
import re
import sys
import tokenize
import warnings
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Cells, Location, lines_of
from mpdoctor.program.source_record import Problem
from mpdoctor.project.asked_of_system import bytes_of, is_link

# Type parameters, `class Box[T]:` and `def first[T](…)`, and `type Name = …`.
_OF_PYTHON_3_12 = re.compile(r"\s*(?:(?:async\s+)?(?:def|class)\s+\w+\s*\[\s*[\w*]|type\s+\w+\s*(?:=|\[\s*[\w*]))")
# f"{row["name"]}", f"{'\n'.join(rows)}": before, an f-string's own quotes, backslashes and comments ended or broke it
_FREE_F_STRING = re.compile(r"""\b[rR]?[fF][rR]?(["'])[^{}"']*\{[^{}]*\1[^{}]*\1[^{}]*\}""")
_FREED_IN_F_STRINGS = (
    "f-string expression part cannot include a backslash",
    "f-string expression part cannot include '#'",
)
_DECLARED_ENCODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+")  # as PEP 263 has it
# What source code is written in, by the names that Python has for them. Its other codecs turn bytes into other bytes,
# or take a time that grows with the square of the text (punycode: 30 s for 800 kB).
_ENCODINGS = re.compile(
    r"ascii|utf-(?:7|8|8-sig|(?:16|32)(?:-[bl]e)?)|iso8859-\d+|iso2022_\w+|cp\d+|mac-\w+|koi8-\w|kz1048|ptcp154|palmos"
    r"|hp-roman8|tis-620|big5(?:hkscs)?|euc_\w+|gb\w+|hz|johab|shift_jis\w*|mbcs|oem"
)
NULL_BYTES = "It contains null bytes: it is no text."
WITHOUT_ITS_DATA = "Move its data into a file of their own, or leave the file out with --exclude"
WITHOUT_NULL_BYTES = "Restore its text, or leave the file out with --exclude"
# Without a byte-order mark: how the first two characters of a program look, which are ASCII.
_WIDE = (
    ("UTF-32", "utf-32-le", re.compile(rb"\xff\xfe\0\0|[^\0]\0\0\0[^\0]\0\0\0", re.DOTALL)),
    ("UTF-32", "utf-32-be", re.compile(rb"\0\0\xfe\xff|\0\0\0[^\0]\0\0\0[^\0]", re.DOTALL)),
    ("UTF-16", "utf-16-le", re.compile(rb"\xff\xfe|[^\0]\0[^\0]\0", re.DOTALL)),
    ("UTF-16", "utf-16-be", re.compile(rb"\xfe\xff|\0[^\0]\0[^\0]", re.DOTALL)),
)
OTHER_ENCODING = "Save the file as UTF-8, or name its encoding in the first line, as in `# -*- coding: latin-1 -*-`"
# Of each name, number and sign Python makes up to 900 bytes while it parses. TensorFlow's largest module has 144,000.
MOST_PARTS = 1_000_000
_CALLED, _DEFINED = re.compile(r"\b(\w+)\("), re.compile(r"\bdef (\w+)\(")
_PART = re.compile(r"\w+|[^\w\s]")
TOO_MANY = f"It has more than {MOST_PARTS:,} names, numbers and signs, which is as many as mpdoctor reads."
TOO_DEEP = "It is nested too deeply for Python itself to read."


@dataclass(frozen=False, eq=False, slots=False)
class Source:
    """One file's text and tree. Turns the tree's byte offsets into lines and columns of characters. The last four
    are for notebooks: see `SourceFacts`."""

    path: str
    text: str
    tree: ast.Module
    cells: Cells = ()
    broken_cells: tuple[Problem, ...] = ()
    passed_over: str = ""
    program_text: str | None = None

    def __post_init__(self) -> None:
        self._is_ascii = self.text.isascii()  # then bytes are characters
        self.may_yield = "yield" in self.text

    @cached_property
    def names_called(self) -> frozenset[str]:
        """The names that a parenthesis follows more often than a `def` comes before them."""
        calls, definitions = Counter(_CALLED.findall(self.text)), Counter(_DEFINED.findall(self.text))
        return frozenset(name for name, count in calls.items() if count > definitions[name])

    def location(self, node: ast.expr | ast.stmt | ast.alias | ast.arg | ast.ExceptHandler) -> Location:
        """The place of the whole node. It is remembered on the node, because one function is often followed many
        times."""
        place: Location | None = getattr(node, "place", None)
        return place if place is not None else self.located(node)

    def located(self, node: ast.expr | ast.stmt | ast.alias | ast.arg | ast.ExceptHandler) -> Location:
        """The location of a node that was not asked for before; it is cached on the node."""
        place = self.span(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
        node.place = place  # type: ignore[union-attr]
        return place

    def span(self, line: int, start: int, end_line: int, end: int) -> Location:
        """The location between two places, each given by its line and an offset in UTF-8 bytes."""
        if not self._is_ascii:
            start, end = self._characters(line, start), self._characters(end_line, end)
        return Location(self.path, line, start + 1, end_line, end + 1)

    def name_after(self, node: ast.stmt, keyword: str, name: str) -> Location:
        """The name in `def name` or `class name`; `async def` and decorators included in what the node
        spans."""
        line = self.line(node.lineno)
        start = line.find(name, len(line) - len(line.lstrip()) + len(keyword))
        if start < 0:
            return self.location(node)
        return Location(self.path, node.lineno, start + 1, node.lineno, start + 1 + len(name))

    def attribute_name(self, node: ast.Attribute) -> Location:
        """The place of the name behind the dot. It is remembered, too."""
        place: Location | None = getattr(node, "name_place", None)
        if place is None:
            end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
            place = self.span(end_line, max(0, end - len(node.attr.encode())), end_line, end)
            node.name_place = place  # type: ignore[attr-defined]
        return place

    def line(self, number: int) -> str:
        lines = _lines_of_recent(self.text)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def _characters(self, line: int, offset: int) -> int:
        text = self.line(line)
        return offset if text.isascii() else len(text.encode(errors="surrogatepass")[:offset].decode(errors="replace"))


@lru_cache(maxsize=64)
def _lines_of_recent(text: str) -> list[str]:
    """Lines of one text of those asked about last: kept for all files of a large run they take twice the room of the
    texts."""
    return lines_of(text)


def text_from_file(path: str, edited: Mapping[Path, bytes] = MappingProxyType({})) -> str | None:
    """What may be quoted of a file; None where it can't be read, is no text, or is a link to what is no Python.
    `edited`: texts that stand in for files."""
    place = Path(path)
    try:
        text = text_from_bytes(edited[place] if place in edited else bytes_of(path), path)
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        return None
    if isinstance(text, Problem) or "\0" in text:
        return None
    if is_link(path) and (path.endswith(".ipynb") or isinstance(tree_from_text(text, path), Problem)):
        return None
    return text


def source_from_text(text: str | bytes, path: str) -> Source | Problem:
    """Parse one file. A text may start with a byte-order mark; bytes may declare their encoding (PEP 263)."""
    decoded = text_from_bytes(text, path) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    if isinstance(decoded, Problem):
        return decoded
    tree = tree_from_text(decoded, path)
    return tree if isinstance(tree, Problem) else Source(path, decoded, tree)


def tree_from_text(text: str, path: str) -> ast.Module | Problem:
    """The syntax tree of a text, or the reason why Python cannot parse it."""
    null = text.find("\0")
    if null >= 0:
        return Problem(NULL_BYTES, _place_of(text, null, path), WITHOUT_NULL_BYTES)
    too_many = problem_of_many_parts(text, path)
    if too_many is not None:
        return too_many
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return _problem_from_syntax_error(error, path)
    except (RecursionError, MemoryError):
        return Problem(TOO_DEEP, Location(path, 1))
    except ValueError as error:  # lone surrogates; integers of more digits than Python reads
        return Problem(f"Python {_version()} cannot read it: {error}.", Location(path, 1))


def problem_of_many_parts(text: str, path: str) -> Problem | None:
    if len(text) <= MOST_PARTS or next(islice(_PART.finditer(text), MOST_PARTS, None), None) is None:
        return None
    return Problem(TOO_MANY, Location(path, 1), WITHOUT_ITS_DATA)


def text_from_bytes(data: bytes, path: str) -> str | Problem:
    """The text in the encoding that the bytes declare, without a byte-order mark, or the reason why it cannot be
    read."""
    if b"\0" in data and (wide := _wide_encoding(data)):
        why = f"It is written in {wide}, which Python does not read."
        return Problem(why, Location(path, 1), "Save the file as UTF-8")
    try:
        return data.decode(declared_encoding(data)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return _problem_from_byte(error, path)
    except (SyntaxError, LookupError, ValueError) as error:
        if b"\0" in data:
            return Problem(NULL_BYTES, Location(path, 1), WITHOUT_NULL_BYTES)
        return _problem_from_encoding(error, data, path)


def _wide_encoding(data: bytes) -> str:
    """The encoding with two or four bytes a character that this is a text in; "" where it is none."""
    for name, codec, beginning in _WIDE:
        if beginning.match(data):
            try:
                return "" if "\0" in data.decode(codec) else name
            except UnicodeDecodeError:
                continue
    return ""


def declared_encoding(data: bytes) -> str:
    """The encoding that the first lines of a source declare, UTF-8 where they declare none.

    Raises SyntaxError for an unknown encoding, or one that source code cannot be written in."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    if not _ENCODINGS.fullmatch(codecs.lookup(encoding).name):
        raise SyntaxError(f"{encoding} is none that source code is written in")
    return encoding


def _problem_from_byte(error: UnicodeDecodeError, path: str) -> Problem:
    line = error.object.count(b"\n", 0, error.start) + 1
    return Problem(f"Byte {error.start} is not valid {error.encoding}.", Location(path, line), OTHER_ENCODING)


def _problem_from_encoding(error: Exception, data: bytes, path: str) -> Problem:
    """A declared encoding that Python does not have; or none, and one of the first two lines is not UTF-8."""
    if not any(_DECLARED_ENCODING.match(line) for line in data.splitlines()[:2]):
        try:
            data.decode()
        except UnicodeDecodeError as undecodable:
            return _problem_from_byte(undecodable, path)
    return Problem(f"Its encoding cannot be read: {_sentence(str(error))}", Location(path, 1), OTHER_ENCODING)


def _problem_from_syntax_error(error: SyntaxError, path: str) -> Problem:
    line = max(error.lineno or 1, 1)
    column = max(error.offset or 0, 0)
    end_line, end_column = error.end_lineno or 0, max(error.end_offset or 0, 0)
    if end_line < line or (end_line == line and end_column <= column):
        end_line, end_column = (line, column + 1) if column else (0, 0)
    place = Location(path, line, column, end_line, end_column)
    if error.msg.startswith("Missing parentheses in call to 'print'"):
        return Problem("It is written for Python 2 (print without parentheses).", place, "Port it to Python 3")
    newer = _syntax_of_python_3_12(error) if sys.version_info < (3, 12) else ""
    if newer:
        return Problem(
            f"It is written for Python 3.12 ({newer}), and mpdoctor runs in Python {_version()}.",
            place,
            "Install mpdoctor in a Python that reads the file",
        )
    return Problem(f"Python {_version()} cannot read it: {_sentence(error.msg)}", place)


def _syntax_of_python_3_12(error: SyntaxError) -> str:
    """What the line has that only Python 3.12 reads."""
    line = error.text or ""
    if _OF_PYTHON_3_12.match(line):
        return "type parameters"
    if error.msg.startswith(_FREED_IN_F_STRINGS):
        return "an f-string with a backslash or a comment in its braces"
    return "an f-string with its own quotes in its braces" if _FREE_F_STRING.search(line) else ""


def _sentence(message: str) -> str:
    """The message of Python as a sentence: with a full stop unless it ends in a question mark."""
    return message if message.endswith("?") else message.rstrip(".") + "."


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _place_of(text: str, index: int, path: str) -> Location:
    before = lines_of(text[:index])
    return Location(path, len(before), len(before[-1]) + 1, len(before), len(before[-1]) + 2)
