"""Missing resources (working directory, temporary directory, open files): the sentence that a user reads, not a
traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable


def sentence_from_refusal(error: OSError) -> str:
    """What is missing, and what to do; "" for an error that says nothing of the surroundings."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"no more files can be opened{_limit()}, and examining, or reading on several cores, needs more. "
            "Allow more with `ulimit -n 256`."
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"there is no space left to write {error.filename or 'a temporary file'}. Make room, and run it again."
    if error.filename is not None or error.errno != errno.ENOENT:
        return ""
    if _is_refused(os.getcwd):
        return "the working directory does not exist any more. Change to one that does, with `cd`, and run it again."
    import tempfile

    if _is_refused(tempfile.gettempdir):
        return "no directory for temporary files can be written to. Make one and name it: TMPDIR=/path/to/it mpdoctor …"
    return ""


def _limit() -> str:
    try:
        import resource
    except (ImportError, OSError):  # there is none on Windows; or it, too, cannot be opened
        return ""
    return f" (this process may open {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"


def _is_refused(ask: Callable[[], str]) -> bool:
    try:
        ask()
    except OSError:
        return True
    return False
