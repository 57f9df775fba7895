"""How a program that was examined came to a bad end."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.facts.location import Location
from mpdoctor.facts.saved_file import SavedFileFacts
from mpdoctor.facts.versions import Keras


@dataclass(frozen=True)
class Frame:
    """One line of a traceback, innermost last. `own` is True for the user's files, False for libraries."""

    path: str
    line: int
    function: str
    text: str
    own: bool


@dataclass(frozen=True)
class FailureFacts:
    """What ended the examination before it had seen everything.

    kind
        "raised" an exception; "exited" through sys.exit or the end of the script before a model was seen;
        "timed-out"; "died" by a signal or os._exit; "unusable" where the target could not even be started
        (no TensorFlow in the interpreter, a broken file, a missing factory).
    during
        "start", "script" (or factory), "loading" (a saved file), "training".
    location
        The innermost line in a file of the user's, where there is one.
    layer
        Path and class of the Keras layer whose call was on the stack, where there was one.
    own_layer_location
        Where that layer's class stands, if it is the user's own.
    saved_file
        What the file says of itself whose loading raised.
    saw_model
        Whether a model had been seen before.
    last_words
        The tail of what the process printed to stderr, for a process that died or timed out.
    """

    kind: str
    during: str
    exception: str = ""
    message: str = ""
    location: Location | None = None
    frames: tuple[Frame, ...] = ()
    layer: str | None = None
    layer_class: str | None = None
    own_layer_location: Location | None = None
    signal: int | None = None
    exit_code: int | None = None
    saw_model: bool = False
    seconds: float = 0.0
    last_words: str = ""
    keras: Keras | None = None
    saved_file: SavedFileFacts | None = None
