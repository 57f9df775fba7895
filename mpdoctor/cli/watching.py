"""`check --watch`: runs the check again whenever a file changes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from mpdoctor.cli.signals import EndedBySignal
from mpdoctor.cli.streams import fail, say, write
from mpdoctor.source.prefilter import outlines_from_files
from mpdoctor.source_stage.file_texts import FileTexts

if TYPE_CHECKING:
    import typer

CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what was scrolled away, and the cursor to the top
SUFFIXES = (".py", ".ipynb")
SETTINGS = ("pyproject.toml", ".gitignore")
TICK = 100  # milliseconds between two looks at whether a signal has come
TOGETHER = 200  # milliseconds in which changes are one: an editor writes a file in several steps
# By directory to watch: the one that is watched for it, and its identity.
_Places = dict[Path, tuple[Path, tuple[int, int]]]
INTERRUPTED = 128 + signal.SIGINT


def watch_command(context: typer.Context, targets: Sequence[str], static: bool) -> int:
    """Run the command of this context, without --watch, again and again."""
    if not static:
        fail("--watch needs --static: it does not run your code again and again.")
    if any(context.params[name] for name in ("fix", "add_ignores", "write_baseline")):
        fail("--watch changes no files: leave --fix, --add-ignores and --write-baseline out.")

    context.params["watch"] = False

    def look() -> None:
        try:
            context.command.invoke(context)
        except SystemExit:  # its status is that of one look
            return

    return watch(targets, look)


def watch(targets: Sequence[str], look: Callable[[], object]) -> int:
    """Look now, and whenever what a target brings has changed; the exit status, after Ctrl-C."""
    if find_spec("watchfiles") is None:
        fail("--watch needs watchfiles: pip install 'mpdoctor[watch]'.")
    if "-" in targets:
        fail("--watch checks files again, but standard input can only be read once.")
    try:
        for _ in _changes([Path(target) for target in targets]):
            _clear()
            look()
            say(f"watching {', '.join(targets)}; Ctrl-C ends.")
    except EndedBySignal as end:
        if end.number != signal.SIGINT:
            raise
    return INTERRUPTED


def _changes(paths: Sequence[Path]) -> Iterator[None]:
    """Yield once at the beginning and again after each change; changes that come during a run count too.

    Raises EndedBySignal."""
    changed = True  # nothing was looked at yet
    while True:
        places = _watched_directories(paths)
        changes = _changes_in(places, recursive=any(path.is_dir() for path in paths))
        while True:
            changed = _wait_for_change(changes) or changed
            if changed:
                changed = False
                yield
                now = _watched_directories(paths)
                if now != places:
                    # what came into a new directory before it is watched is seen by one look more
                    is_another = any(places[folder] != now[folder] for folder in places.keys() & now)
                    changed = _wait_for_change(changes) or is_another
                    break


def _wait_for_change(changes: Iterator[bool]) -> bool:
    """The next value of `changes`. Raises EndedBySignal."""
    with _noted_signals() as noted:
        changed = next(changes)
    if noted:
        raise EndedBySignal(noted[0])
    return changed


def _changes_in(places: _Places, recursive: bool) -> Iterator[bool]:
    """Whether something has changed since it was asked last, again and again."""
    from watchfiles import Change, DefaultFilter, watch

    usual = DefaultFilter()
    folders = {folder for place in places for folder in (place, *place.parents)}

    def counts(change: Change, path: str) -> bool:
        is_of_folder = change is not Change.modified and Path(path) in folders
        return usual(change, path) and (_is_read(Path(path)) or is_of_folder)

    changes = watch(
        *{folder for folder, _ in places.values()},
        watch_filter=counts,
        recursive=recursive,
        debounce=TOGETHER,
        rust_timeout=TICK,
        yield_on_timeout=True,
    )
    return map(bool, changes)


def _watched_directories(paths: Sequence[Path]) -> _Places:
    """The directories to watch: the named ones, and those of all named and imported files. A file's directory is
    watched because many editors replace a file instead of writing into it; in the place of a directory that is gone, as
    after a change of branch, the nearest one above it."""
    files = [path.absolute() for path in paths if not path.is_dir()]
    read = outlines_from_files(files, FileTexts({}).of)
    folders = {path.absolute() for path in paths if not path.is_file()} | {path.parent for path in (*files, *read)}
    return {folder: _there(folder) for folder in folders}


def _there(folder: Path) -> tuple[Path, tuple[int, int]]:
    """The directory, or the nearest existing one above it, with the device and inode that tell it from another
    directory of its name."""
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    status = there.stat()
    return there, (status.st_dev, status.st_ino)


def _is_read(path: Path) -> bool:
    return path.suffix in SUFFIXES or path.name in SETTINGS


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """Signals that would raise are noted meanwhile: watchfiles takes every exception of a handler for Ctrl-C."""
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    replaced = {number: handler for number, handler in before.items() if callable(handler)}
    for number in replaced:
        signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


def _clear() -> None:
    if sys.stdout.isatty():
        write(CLEAR)
