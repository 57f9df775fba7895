"""What a file of settings holds: JSON, TOML or YAML, by its ending. Only plain values are made of it: no tag of YAML
names a class, and nothing is imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpdoctor.facts.frozen import dataclass
from mpdoctor.project.asked_of_system import bytes_of, digest_of, is_file_of_at_most

JSON, TOML = ".json", ".toml"
ENDINGS = (JSON, TOML, ".yaml", ".yml")
UNREAD: Any = object()  # in place of what is not read
LARGEST = 100_000  # bytes
_PLACED_ELSEWHERE = "@package"  # Hydra's, in a comment


@dataclass(frozen=True)
class SettingsFile:
    """A file as it was read.

    held
        Its content as Python's own values; UNREAD if the file is missing or not read.
    digest
        Of its bytes, "" if they were not read: results that depend on a missing file change when it appears.
    """

    held: Any = UNREAD
    digest: str = ""


NO_SETTINGS = SettingsFile()


def settings_file(path: Path, read: Callable[[Path], bytes]) -> SettingsFile:
    """The file with its content, or NO_SETTINGS."""
    data = _bytes_of(path, read)
    if data is None:
        return NO_SETTINGS
    try:
        return SettingsFile(settings_in(data.decode("utf-8-sig"), path.suffix.lower()), digest_of(data))
    except UnicodeDecodeError:
        return SettingsFile(digest=digest_of(data))


def settings_digest(path: Path) -> str:
    """The digest of the file as it is now; see `SettingsFile.digest`."""
    data = _bytes_of(path, bytes_of)
    return "" if data is None else digest_of(data)


def _bytes_of(path: Path, read: Callable[[Path], bytes]) -> bytes | None:
    try:
        return read(path) if is_file_of_at_most(LARGEST, path) else None
    except OSError:
        return None


def settings_in(text: str, ending: str) -> Any:
    """What a text of settings holds: dicts, lists, texts, numbers. UNREAD if it is damaged, or is YAML with aliases."""
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
    """What PyYAML's safe loader makes of it. A text with aliases (`*base`) is not read: a few lines of them can stand
    for more values than fit into memory."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if _PLACED_ELSEWHERE in text or any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, Loader=loader)):
            return UNREAD
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ArithmeticError, LookupError, AttributeError):
        return UNREAD  # `!!bool maybe` is a KeyError, `!!timestamp never` an AttributeError
