"""What a file of settings holds, by its ending: JSON, TOML, and of YAML what settings are written in. Nothing is
imported that a file names, and no tag is followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mpdoctor.facts.frozen import dataclass

JSON, TOML = ".json", ".toml"
ENDINGS = (JSON, TOML, ".yaml", ".yml")
UNREAD: Any = object()  # a part that is written in a way which is not read here
LARGEST = 100_000  # bytes
_MOST_LINES = 2000
_DEEPEST = 20

# As YAML 1.1 has them, which PyYAML reads: `1e-3` is a text.
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(([0-9][0-9_]*)?\.[0-9_]+|[0-9][0-9_]*\.)([eE][-+][0-9]+)?")
_ENTRY = re.compile(
    r"""(?P<key>"[^"\\]*"|'[^']*'|[^\s\-?:,\[\]{}#&*!|>'"%@`][^:#]*?|-[\w-]+)\s*:(?:\s+(?P<rest>.*))?"""
)
_NESTED = re.compile(r"""[\[\]{}'"&*!|>:#]""")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_PLACED_ELSEWHERE = "@package"  # Hydra's, in a comment
_MERGING = "<<"
_REFERENCE = "${"  # to another setting
_STARTS_NO_PLAIN_TEXT = tuple("&*!|>%@`[]{},?#")


@dataclass(frozen=True)
class SettingsFile:
    """held
        What the file says, UNREAD where it is not there, or not read.
    digest
        Of its bytes, "" where they were not read: what hangs on a file that is not there changes when it comes.
    """

    held: Any = UNREAD
    digest: str = ""


NO_SETTINGS = SettingsFile()


def settings_file(path: Path, read: Callable[[Path], bytes]) -> SettingsFile:
    data = _bytes_of(path, read)
    if data is None:
        return NO_SETTINGS
    digest = blake2b(data, digest_size=16).hexdigest()
    try:
        return SettingsFile(settings_in(data.decode("utf-8-sig"), path.suffix.lower()), digest)
    except UnicodeDecodeError:
        return SettingsFile(digest=digest)


def digest_of_settings(path: Path, read: Callable[[Path], bytes]) -> str:
    data = _bytes_of(path, read)
    return "" if data is None else blake2b(data, digest_size=16).hexdigest()


def _bytes_of(path: Path, read: Callable[[Path], bytes]) -> bytes | None:
    try:
        return read(path) if path.is_file() and path.stat().st_size <= LARGEST else None
    except OSError:
        return None


def settings_in(text: str, ending: str) -> Any:
    """Dicts, lists, texts, numbers; UNREAD in place of what is not read, or of everything."""
    try:
        if ending == JSON:
            import json  # of which few programs read a file, and every check would wait for

            return json.loads(text)
        if ending == TOML:
            from mpdoctor.project.toml import table_from_toml

            return table_from_toml(text)
        return _from_yaml(text)
    except (ValueError, RecursionError):
        return UNREAD


def _from_yaml(text: str) -> Any:
    written = text.splitlines()
    if len(written) > _MOST_LINES or "\t" in text or _PLACED_ELSEWHERE in text:
        return UNREAD
    lines = [(len(line) - len(line.lstrip(" ")), line.strip()) for line in map(_without_comment, written)]
    lines = [(indent, line) for indent, line in lines if line]
    if lines and lines[0][1] == "---":
        lines = lines[1:]
    if not lines or any(line in ("---", "...") or line.startswith("%") for _, line in lines):
        return UNREAD
    held, end = _block(lines, 0, 0)
    return held if end == len(lines) else UNREAD


def _without_comment(line: str) -> str:
    """A `#` in quotes begins none; a line that holds both is left as it is, and is not read."""
    return line if "'" in line or '"' in line else _COMMENT.sub("", line)


def _block(lines: list[tuple[int, str]], start: int, depth: int) -> tuple[Any, int]:
    """The mapping or the list that begins on a line, and the line behind it."""
    indent, first = lines[start]
    if depth > _DEEPEST:
        return UNREAD, _behind(lines, start, indent)
    if _is_item(first):
        return _list(lines, start, indent)
    held: dict[Any, Any] = {}
    at = start
    while at < len(lines) and lines[at][0] == indent:
        entry = _ENTRY.fullmatch(lines[at][1])
        if entry is None or entry["key"] == _MERGING:
            return UNREAD, _behind(lines, start, indent)
        key, rest = _scalar(entry["key"]), entry["rest"] or ""
        at += 1
        if not rest and at < len(lines) and _is_below(lines[at], indent):
            held[key], at = _block(lines, at, depth + 1)
        else:
            held[key] = _scalar(rest)
            if at < len(lines) and lines[at][0] > indent:  # a text of several lines
                held[key], at = UNREAD, _behind(lines, at, lines[at][0])
    return held, at


def _is_below(line: tuple[int, str], indent: int) -> bool:
    """A list may stand as far to the left as the key that holds it."""
    return line[0] > indent or (line[0] == indent and _is_item(line[1]))


def _is_item(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _list(lines: list[tuple[int, str]], start: int, indent: int) -> tuple[Any, int]:
    """A list of plain values, and of mappings with one key on a line of their own; of others nothing is read."""
    items, at = [], start
    while at < len(lines) and lines[at][0] == indent and _is_item(lines[at][1]):
        text = lines[at][1][1:].strip()
        at += 1
        items.append(_item(text))
        while at < len(lines) and lines[at][0] > indent:
            items[-1], at = UNREAD, at + 1
    return items, at


def _item(text: str) -> Any:
    entry = _ENTRY.fullmatch(text)
    if entry is not None:
        return {_scalar(entry["key"]): _scalar(entry["rest"])} if entry["rest"] else UNREAD
    return UNREAD if not text or _is_item(text) else _scalar(text)


def _behind(lines: list[tuple[int, str]], start: int, indent: int) -> int:
    at = start + 1
    while at < len(lines) and lines[at][0] >= indent:
        at += 1
    return at


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _REFERENCE in text:
        return UNREAD
    if text[0] in "'\"":
        return _quoted(text)
    if text.startswith("[") and text.endswith("]"):
        return _flow_list(text[1:-1])
    if text.startswith(_STARTS_NO_PLAIN_TEXT) or ": " in text or text.endswith(":") or " #" in text:
        return UNREAD
    return _number_or_text(text)


def _quoted(text: str) -> Any:
    inside = text[1:-1]
    is_simple = len(text) > 1 and text[-1] == text[0] and text[0] not in inside and "\\" not in inside
    return inside if is_simple else UNREAD


def _flow_list(inside: str) -> Any:
    if _NESTED.search(inside):
        return UNREAD
    return [_scalar(part.strip()) for part in inside.split(",") if part.strip()]


def _number_or_text(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return UNREAD if _could_be_another_number(text) else text


def _could_be_another_number(text: str) -> bool:
    """`0x10`, `0o7`, `012`, `1:30`, `.inf`, `2026-11-28`"""
    return bool(re.fullmatch(r"[-+]?[0-9][0-9a-fA-FxobXOB_:.\-]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", text)) and not (
        re.fullmatch(r"[-+]?[0-9]+[eE][-+]?[0-9]+", text)
    )
