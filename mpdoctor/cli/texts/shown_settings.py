"""`--show-settings` and `--show-files`: the settings in force as TOML, and the files that a check would read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mpdoctor.project.shown_paths import shown_path

if TYPE_CHECKING:
    from mpdoctor.facts.versions import Keras
    from mpdoctor.project.targets import Target
    from mpdoctor.settings.options import Settings
    from mpdoctor.settings.pyproject import Configuration


def text_from_settings(settings: Settings, configured: Configuration) -> str:
    """`[tool.mpdoctor]` as it would have to stand in a pyproject.toml for this check."""
    origin = shown_path(str(configured.path)) if configured.path else "no pyproject.toml has [tool.mpdoctor]"
    ignores = {
        patterns.patterns[0]: list(selectors) for patterns, selectors in settings.per_file_ignores if patterns.patterns
    }
    lines = [
        f"# {origin}; the command line overrides it",
        "[tool.mpdoctor]",
        _setting_line("select", list(settings.select), "" if settings.select else "all rules"),
        _setting_line("ignore", list(settings.ignore)),
        _table("per-file-ignores", ignores),
        _setting_line("exclude", list(dict.fromkeys(_excluded_patterns(configured)))),
        _setting_line("fail-on", settings.fail_on.value),
        _keras(settings.keras),
        _setting_line("assume-mixed", settings.assume_mixed),
        _setting_line("docs-url", settings.docs_url),
    ]
    return "".join(f"{line}\n" for line in lines)


def files_of_targets(targets: Iterable[Target]) -> Iterator[str]:
    """The paths of what would be read, each once."""
    paths = (path for target in targets for path in (target.files or ([target.path] if target.path else [])))
    yield from dict.fromkeys(shown_path(str(path)) for path in paths)


def _excluded_patterns(configured: Configuration) -> Iterator[str]:
    for patterns in configured.exclude:
        yield from patterns.patterns


def _keras(keras: Keras | None) -> str:
    if keras is None:
        return "# keras: what the project asks for, else what the code is plainly written for, else what is installed"
    generation = "3" if keras.is_keras3 else keras.package
    return _setting_line("keras", keras.version or generation, keras.because)


def _setting_line(key: str, value: object, comment: str = "") -> str:
    return f"{key} = {json.dumps(value, ensure_ascii=False)}" + (f"  # {comment}" if comment else "")


def _table(key: str, table: dict[str, list[str]]) -> str:
    pairs = (f"{json.dumps(pattern, ensure_ascii=False)} = {json.dumps(codes)}" for pattern, codes in table.items())
    return f"{key} = {{ {', '.join(pairs)} }}" if table else f"{key} = {{}}"
