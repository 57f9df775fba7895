"""The targets that the command line names: those that can be examined, and why the others cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mpdoctor.project.targets import Target


Given = TypeVar("Given")


def target_named(text: str, stdin_filename: str, source_only: bool) -> Target:
    """The target that the text names, or standard input for "-". Raises TargetError, with `source_only` also of a saved
    model."""
    import sys
    from shlex import quote

    from mpdoctor.project.targets import STDIN, TargetError, target_from_content, target_from_text

    if text == STDIN:
        return target_from_content(sys.stdin.buffer.read(), stdin_filename)
    target = target_from_text(text)
    if source_only and target.is_saved:
        raise TargetError(
            f"{text} is a saved model, which holds no source to read: `mpdoctor check {quote(text)}` examines it."
        )
    return target


def usable_targets(
    given: Collection[Given], target_from: Callable[[Given], Target]
) -> tuple[tuple[Target, ...], list[str]]:
    """The targets that can be examined, and of the others why not.

    Raises TargetError where none is left."""
    from mpdoctor.project.targets import TargetError

    usable, refused = [], []
    for asked in given:
        try:
            usable.append(target_from(asked))
        except TargetError as error:
            refused.append(error)
    if refused and not usable:
        raise refused[0]
    return tuple(usable), [str(error) for error in refused]
