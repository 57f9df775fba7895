"""Which files and which rules a check is about: the command line on top of [tool.mpdoctor]."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.cli.streams import fail

if TYPE_CHECKING:
    from mpdoctor.facts.versions import Keras
    from mpdoctor.project.files import PathPatterns
    from mpdoctor.project.targets import Target
    from mpdoctor.settings.pyproject import Configuration


def configuration_for(file: Path | None, targets: Sequence[Target], isolated: bool) -> Configuration:
    """The configuration in the file of --config, else in the nearest pyproject.toml above all targets; an empty one
    with --isolated.

    Raises ConfigurationError."""
    import os

    from mpdoctor.settings.pyproject import (
        Configuration,
        ConfigurationError,
        configuration_above,
        configuration_from_file,
    )

    if isolated:
        if file is not None:
            fail("--isolated reads no configuration, and --config names one: give one of them.")
        return Configuration()
    if file is not None:
        configured = configuration_from_file(file)
    else:
        places = [str(_folder_of(target).absolute()) for target in targets if target.path is not None]
        configured = configuration_above(Path(os.path.commonpath(places) if places else "."))
    for wrong, setting in configured.unknown_rules(_is_rule):
        raise ConfigurationError(f"{configured.place(setting)} {setting}: {_no_rule(wrong)}")
    return configured


def chosen_rules(
    configured: Configuration,
    select: list[str] | None,
    extend_select: list[str] | None,
    ignore: list[str] | None,
    extend_ignore: list[str] | None,
    per_file_ignores: list[str] | None,
) -> Configuration:
    """The configuration with the rules that the command line chooses. Each must mean one."""
    selected = _selectors(select, "--select") or configured.select or ()
    further = _selectors(extend_select, "--extend-select")
    ignored = _selectors(ignore, "--ignore") or configured.ignore or ()
    return dataclasses.replace(
        configured,
        select=(*selected, *further) if selected else (),  # all rules are more than all and some
        ignore=(*ignored, *_selectors(extend_ignore, "--extend-ignore")),
        per_file_ignores=tuple(_ignores_of_files(per_file_ignores)) or configured.per_file_ignores,
    )


def chosen_files(
    configured: Configuration, targets: Sequence[Target], exclude: list[str] | None, extend_exclude: list[str] | None
) -> Configuration:
    """The configuration with what the command line leaves out: by patterns relative to the working directory, and for
    a target that lies elsewhere, to the target."""
    from mpdoctor.project.files import PathPatterns

    here = Path.cwd()
    places = {_folder_of(target).absolute() for target in targets}
    roots = [here, *sorted(place for place in places if not place.is_relative_to(here))]
    given, further = tuple(_parts(exclude)), tuple(_parts(extend_exclude))
    kept = tuple(PathPatterns(root, given) for root in roots) if given else configured.exclude
    return dataclasses.replace(configured, exclude=(*kept, *(PathPatterns(root, further) for root in roots if further)))


def not_excluded(targets: Sequence[Target], configured: Configuration) -> tuple[Target, ...]:
    """The targets without those that the configuration excludes. A target without a path is never excluded."""
    return tuple(
        target
        for target in targets
        if target.path is None or not any(patterns.match(target.path) for patterns in configured.exclude)
    )


def keras_chosen(named: str | None, configured: Configuration) -> Keras | None:
    """The Keras that --keras names, else the configured one.

    Raises ValueError."""
    from mpdoctor.settings.options import keras_from_text

    return keras_from_text(named) if named is not None else configured.keras


def _folder_of(target: Target) -> Path:
    if target.path is None:
        return Path()
    return target.path if target.kind == "directory" else target.path.parent


def _ignores_of_files(given: list[str] | None) -> Iterator[tuple[PathPatterns, tuple[str, ...]]]:
    """`tests/*:MP304,MP5` is one pattern and two rules; after a comma a further pattern may stand as well."""
    from mpdoctor.project.files import PathPatterns

    option = "--per-file-ignores"
    by_pattern: dict[str, list[str]] = {}
    for text in given or ():
        pattern = ""
        for part in _parts([text]):
            before, colon, selector = part.rpartition(":")
            pattern = before if colon else pattern
            if not pattern or not selector:
                fail(f"{option} {text}: give a pattern, a colon and rules, such as 'tests/*:MP304,MP5'.")
            by_pattern.setdefault(pattern, []).append(_selector_of_a_rule(selector, option))
    for pattern, selectors in by_pattern.items():
        yield PathPatterns(Path(), (pattern,)), tuple(selectors)


def _selectors(given: list[str] | None, option: str) -> tuple[str, ...]:
    return tuple(_selector_of_a_rule(selector, option) for selector in _parts(given))


def _selector_of_a_rule(selector: str, option: str) -> str:
    if not _is_rule(selector):
        fail(f"{option} {selector}: {_no_rule(selector)}")
    return selector


def _no_rule(selector: str) -> str:
    from mpdoctor.cli.texts.rule_texts import near_match

    if Path(selector).exists():
        return "this is a path, and the option takes codes or names of rules, such as MP302."
    return f"there is no rule {selector!r}.{near_match(selector)}"


def _parts(given: list[str] | None) -> Iterator[str]:
    """What was given to an option that takes several: commas and repetition alike."""
    for text in given or ():
        yield from (part.strip() for part in text.split(",") if part.strip())


def _is_rule(selector: str) -> bool:
    from mpdoctor.rules.registry import codes_and_names
    from mpdoctor.settings.options import names_rule

    return any(names_rule(selector, code, name) for code, name in codes_and_names())
