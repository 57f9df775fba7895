"""Standard output and error: is it a terminal, does it take colours and Unicode, what if its reader is gone."""

from __future__ import annotations

import os
import stat
import sys
from enum import Enum
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from mpdoctor.progress import Progress
    from mpdoctor.reporters.rendering import TerminalLook

USUAL_WIDTH = 80  # of a file and of a pipe, whose reader's width nobody knows
NARROWEST = 40
CI = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")  # variables that are set where output is a CI's log


class Color(str, Enum):
    auto = "auto"
    always = "always"
    never = "never"


def fail(message: str, status: int = 2) -> NoReturn:
    """One line on standard error, and the end."""
    say(message)
    sys.exit(status)


def say(message: str) -> None:
    """One line on standard error. It may name a file, whose name may hold anything."""
    from mpdoctor.reporters.rendering import lines_for_a_log

    write(lines_for_a_log([f"mpdoctor: {message}"]), sys.stderr)


def write(text: str, stream: TextIO | None = None) -> None:
    """Write a report. A character that the stream can't encode is written as an escape; a reader that went
    away (`mpdoctor … | head`) ends the output and nothing else; a full disk ends with status 2."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # Python flushes once more at exit and would complain there
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            fail(f"the report could not be written: {error.strerror}.")


def patch_for_output(patch: str) -> str:
    """The patch as standard output gets it: as it is in a file and for another program, such as `git apply`; harmless
    on a terminal and in the log of a CI."""
    from mpdoctor.reporters.rendering import patch_to_show

    try:
        is_file = stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        is_file = False
    in_log = not is_file and any(map(os.environ.get, CI))
    return patch_to_show(patch) if sys.stdout.isatty() or in_log else patch


def has_color(wanted: Color) -> bool:
    if wanted is not Color.auto:
        return wanted is Color.always
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def has_blocks() -> bool:
    """Whether marks, lines and block characters can be written to standard output."""
    try:
        "✓✗│▁█░…→".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def progress_for(quiet: bool) -> Progress:
    """Shown to people alone, on standard error."""
    if quiet or not sys.stderr.isatty():
        from mpdoctor.progress import SilentProgress

        return SilentProgress()
    from mpdoctor.cli.progress import TerminalProgress

    return TerminalProgress()


def width() -> int:
    """Columns of a report: those of the terminal, 80 where it goes into a file or a pipe."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    import shutil  # it brings every compression that Python has

    return max(NARROWEST, shutil.get_terminal_size().columns)


def look_of_terminal(columns: int | None, color: Color) -> TerminalLook:
    """How a text report is to look on standard output, with the user's `--width` and `--color`."""
    return {"width": columns or width(), "color": has_color(color), "blocks": has_blocks()}


def prose_width() -> int:
    """Columns of a text that is sentences throughout: no more than are read well."""
    from mpdoctor.reporters.text.style import READABLE

    return min(width(), READABLE)
