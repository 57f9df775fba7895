"""[tool.mpdoctor] in pyproject.toml: the settings of a project."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Severity
from mpdoctor.project.files import PathPatterns
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.project.toml import table_from_toml
from mpdoctor.settings.options import keras_from_text

NAME = "pyproject.toml"
_SECTION = "[tool.mpdoctor]"
# without the signs that end a link in Markdown or an attribute in HTML
_ADDRESS = re.compile(r"https?://[\w.~:/?#@!$&*+,;=%-]+", re.ASCII)
LONGEST_NAME = 60  # characters of a wrong name that a message repeats


class ConfigurationError(Exception):
    """The file cannot be read, or is invalid. The text says so to the user, with the line."""


@dataclass(frozen=True)
class Configuration:
    """What the file says; None where it says nothing. `path` is None where there is no such file.

    per_file_ignores
        Patterns of paths, as .gitignore has them, and the rules that do not speak there.
    """

    path: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    per_file_ignores: tuple[tuple[PathPatterns, tuple[str, ...]], ...] = ()
    exclude: tuple[PathPatterns, ...] = ()
    fail_on: Severity | None = None
    keras: Keras | None = None
    assume_mixed: bool | None = None
    docs_url: str = ""
    text: str = ""

    def unknown_rules(self, is_rule: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """(selectors that name no rule, the setting in which each stands)."""
        groups = [("select", self.select or ()), ("ignore", self.ignore or ())]
        groups += [("per-file-ignores", selectors) for _, selectors in self.per_file_ignores]
        yield from (
            (selector[:LONGEST_NAME], key)
            for key, selectors in groups
            for selector in selectors
            if not is_rule(selector)
        )

    def place(self, key: str) -> str:
        """ "pyproject.toml:12: [tool.mpdoctor]", for messages."""
        return _place(self.text, key, self.path or Path(NAME))


def configuration_above(directory: Path) -> Configuration:
    """The configuration in the nearest pyproject.toml with a [tool.mpdoctor], in the directory or above it.

    Raises ConfigurationError."""
    here = Path(os.path.abspath(directory))  # noqa: PTH100 - where links are followed, the project is another
    for folder in (here, *here.parents):
        path = folder / NAME
        try:
            text = bytes_from_file(path).decode("utf-8")
        except (OSError, UnicodeDecodeError):  # no file; or one that holds no settings of ours
            continue
        # a file that never names mpdoctor, broken or not, is none of ours
        if "mpdoctor" in text and (table := _table_from_text(text, path)) is not None:
            return _configuration_from_table(table, text, path)
    return Configuration()


def configuration_from_file(path: Path) -> Configuration:
    """The configuration in a file. Raises ConfigurationError."""
    try:
        text = bytes_from_file(path).decode("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no TOML: byte {error.start} is not valid UTF-8.") from error
    table = _table_from_text(text, path)
    if table is None:
        raise ConfigurationError(f"{path} has no {_SECTION}.")
    return _configuration_from_table(table, text, path)


def _table_from_text(text: str, path: Path) -> Mapping[str, Any] | None:
    try:
        tool = table_from_toml(text).get("tool", {})
    except ValueError as error:
        raise ConfigurationError(f"{_shown_relative(path)} is no TOML: {error}.") from error
    except RecursionError as error:
        raise ConfigurationError(f"{_shown_relative(path)} is nested too deeply.") from error
    table = tool.get("mpdoctor") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(f"{_shown_relative(path)}: mpdoctor must be a table: {_SECTION}")
    return table


def _configuration_from_table(table: Mapping[str, Any], text: str, path: Path) -> Configuration:
    read = _Reader(table, text, path)
    for key in table:
        if key not in _KEYS:
            name = key[:LONGEST_NAME]
            import difflib  # of a mistake alone

            near = difflib.get_close_matches(name.replace("_", "-"), _KEYS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"It knows {', '.join(_KEYS)}."
            read.wrong(key, f"there is no setting {name!r}. {hint}")
    root = path.parent
    exclude = read.strings("exclude")
    return Configuration(
        path=path,
        select=read.strings("select"),
        ignore=read.strings("ignore"),
        per_file_ignores=tuple((PathPatterns(root, (pattern,)), codes) for pattern, codes in read.ignores().items()),
        exclude=() if exclude is None else (PathPatterns(root, exclude),),
        fail_on=read.severity("fail-on"),
        keras=read.keras("keras"),
        assume_mixed=read.truth("assume-mixed"),
        docs_url=read.address("docs-url"),
        text=text,
    )


class _Reader:
    """Takes values out of the table; each must be of its type."""

    def __init__(self, table: Mapping[str, Any], text: str, path: Path) -> None:
        self.table, self.text, self.path = table, text, path

    def strings(self, key: str) -> tuple[str, ...] | None:
        value = self.table.get(key)
        return None if value is None else self._strings(key, value)

    def ignores(self) -> dict[str, tuple[str, ...]]:
        key = "per-file-ignores"
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, f'{key} must be a table, such as {{ "tests/*" = ["MP302"] }}.')
        return {pattern: self._strings(f'"{pattern}"', codes) for pattern, codes in value.items()}

    def severity(self, key: str) -> Severity | None:
        value = self.table.get(key)
        if value is not None and value not in [severity.value for severity in Severity]:
            self.wrong(key, f'{key} must be "error", "warning" or "info", and not {value!r}.')
        return None if value is None else Severity(value)

    def keras(self, key: str) -> Keras | None:
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(key, f'{key} must be a string, such as {key} = "2.15".')
        try:
            return keras_from_text(value, because=f"{_shown_relative(self.path)} says keras = {value!r}")
        except ValueError as error:
            self.wrong(key, str(error))

    def truth(self, key: str) -> bool | None:
        value = self.table.get(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, f"{key} must be true or false.")
        return value

    def address(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str) or (value and not _ADDRESS.fullmatch(value)):
            self.wrong(key, f'{key} must be an address, such as {key} = "https://example.org/mpdoctor/".')
        return value

    def wrong(self, key: str, problem: str) -> NoReturn:
        raise ConfigurationError(f"{_place(self.text, key, self.path)} {problem}")

    def _strings(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.wrong(key, f'{key} must be a list of strings, such as {key} = ["MP3"].')
        return tuple(value)


def _place(text: str, key: str, path: Path) -> str:
    line = _line_of(text, key.strip('"'))
    return f"{_shown_relative(path)}:{line}: {_SECTION}" if line else f"{_shown_relative(path)}: {_SECTION}"


def _line_of(text: str, key: str) -> int | None:
    """The number of the line that holds a key of [tool.mpdoctor], for messages: the TOML parser keeps no lines."""
    lines = text.splitlines()
    ours = [number for number, line in enumerate(lines, 1) if line.lstrip().startswith("[tool.mpdoctor")]
    is_key: Callable[[str], object] = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""").match
    keys = [number for number, line in enumerate(lines, 1) if is_key(line)]
    after = [number for number in keys if ours and number > ours[0]]
    return next(iter([*after, *ours, *keys]), None)


_KEYS = ("select", "ignore", "per-file-ignores", "exclude", "fail-on", "keras", "assume-mixed", "docs-url")


def _shown_relative(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if Path(relative).parts[:1] == ("..",) else relative  # "..x" is a name
