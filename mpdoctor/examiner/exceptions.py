"""Exceptions with which the examiner gives up on a target, and the chain of causes of any error."""

from __future__ import annotations

import re
from typing import Iterator


class Unusable(Exception):
    """The target cannot be examined, and the message says why and what to do, in one line: a name of a file's that it
    quotes may hold ends of lines and escape sequences, which are spelt out."""

    def __init__(self, message: str) -> None:
        super().__init__(spelt_out(message))


class OtherBackend(Unusable):
    """Keras 3 runs on another backend than TensorFlow; there is no loss scaling of TensorFlow's to examine."""


def spelt_out(text: str, kept: str = "") -> str:
    """The text with what cannot be seen written as an escape; `kept` are signs that stay."""
    return "".join(
        sign if sign.isprintable() or sign in kept else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


_KERNEL = re.compile(r"^\{\{function_node [^}]*\}\} *| *\[Op:\w+\].*$")
_BEHIND_USER_CODE = re.compile(r"^    \w+: *(\S.*)$", re.M)  # "    TypeError: what it says", below a traceback


def first_line(error: BaseException) -> str:
    """The exception in one short line, without the kernel that TensorFlow names before its words and behind them, and
    without what autograph writes before the words of an error in traced code."""
    text = text_of_error(error).strip()
    in_traced_code = _BEHIND_USER_CODE.search(text) if text.startswith("in user code:") else None
    lines = (in_traced_code.group(1) if in_traced_code else text).splitlines() or [""]
    return f"{type(error).__name__}: {_KERNEL.sub('', lines[0]).strip()}"[:200]


def text_of_error(error: BaseException) -> str:
    """What the exception says. A user's may raise when it is asked, and an exception of any kind."""
    try:
        return str(error)
    except BaseException as broken:
        return f"(its text cannot be shown: {type(broken).__name__})"


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was made from, the first of them last: by `raise … from`, or by autograph. Errors
    that the program was only handling meanwhile are no part of it."""
    seen = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or (cause.__context__ if hasattr(cause.__context__, "ag_error_metadata") else None)
