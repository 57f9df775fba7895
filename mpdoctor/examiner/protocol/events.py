"""Sends events to the parent process: JSON lines appended to a file in a private directory.

The names used here are bound at import, so a script that patches `json` or `os` cannot bend it. The file stays open, so
a script that removes its directory cannot cut it; one that closes all descriptors has it opened anew.

Where a script forks, one process speaks: the first one, until another begins to train.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, replace
from itertools import count
from json import JSONEncoder
from os import O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY
from os import close as _close
from os import fstat as _fstat
from os import getpid as _getpid
from os import kill as _kill
from os import open as _open
from os import read as _read
from os import waitpid as _waitpid
from os import write as _write
from time import sleep as _sleep

from mpdoctor.examiner.protocol.event_kinds import (
    NO_MODEL,
    Ended,
    Event,
    Exited,
    Model,
    ModelBuilt,
    ModelSeen,
    ProcessStarted,
    Stage,
    Steps,
    Training,
)
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.processes import StartedProcess
from mpdoctor.facts.training import TrainingFacts

MODELS_KEPT = 50  # of those that were sent: a program may make thousands


class _Encoder(JSONEncoder):
    encode = JSONEncoder.encode  # of its own: a script may patch the class
    iterencode = JSONEncoder.iterencode


_dumps = _Encoder().encode


class Events:
    """Events in the order in which they happened; `path` is the file that the parent reads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._first = _getpid()
        self._file = _open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        self._identity = _identity_of(self._file)
        self._numbers = count(1)
        self._models: deque[tuple[int, ModelFacts]] = deque(maxlen=MODELS_KEPT)

    def send(self, event: Event) -> None:
        """Append the event to the file, if this is the process that sends them."""
        if self.speaks:
            self._write(event)

    def stage(self, text: str) -> None:
        """Send what happens now, in words for the progress bar."""
        self.send(Stage(text))

    def steps(self, done: int, total: int) -> None:
        """Training steps seen so far."""
        self.send(Steps(done, total))

    def end(self) -> None:
        """The examiner has sent all that it has to send."""
        self.send(Ended())

    def exited(self, status: int) -> None:
        """How the process ended, as wait() returns it; from whichever process supervises it."""
        number = status & 0x7F
        self._write(Exited(number or None, None if number else status >> 8))

    def process_started(self, facts: StartedProcess) -> None:
        """From whichever process starts it: a program may fork, and become another one there."""
        self._write(ProcessStarted(facts))

    def raised(self, error: BaseException) -> None:
        """An error of the program's, before it becomes facts. Where the examiner runs in the foreground it is printed
        whole."""

    # --- models -------------------------------------------------------------------------------------------------
    def model_built(self, facts: ModelFacts) -> None:
        self.send(ModelBuilt(self._number_of(facts)))

    def model_seen(self, facts: ModelFacts) -> None:
        self.send(ModelSeen(self._number_of(facts)))

    def training(self, facts: TrainingFacts) -> None:
        self.send(Training(self._number_of(facts.model), replace(facts, model=NO_MODEL)))

    def _number_of(self, facts: ModelFacts) -> int:
        """The number under which these very facts were sent; else they are sent now. The reader has them before any
        event that names the number, whenever this process ends."""
        if not self.speaks:
            return 0  # nobody reads it
        known = next((number for number, sent in self._models if sent == facts), None)
        if known is None:
            known = next(self._numbers)
            before = next((number for number, sent in self._models if sent.layers == facts.layers), None)
            if before is None or not facts.layers:
                self._write(Model(known, facts))
            else:
                self._write(Model(known, replace(facts, layers=()), layers_of=before))
            self._models.append((known, facts))
        return known

    # --- which process speaks ---------------------------------------------------------------------------------
    def begin_to_train(self) -> None:
        """From now on this process sends the events, unless another process began to train before."""
        try:
            mark = _open(self._path + ".trains", O_WRONLY | O_CREAT | O_EXCL, 0o600)
        except OSError:  # another one did, or the directory is gone
            return
        _write(mark, str(_getpid()).encode())
        _close(mark)

    @property
    def speaks(self) -> bool:
        return _getpid() == (self._trains() or self._first)

    def wait_for_training(self) -> None:
        """In the first process, at its end: wait until the process that trains has ended."""
        other = self._trains()
        while _getpid() == self._first and other is not None and other != self._first and _is_alive(other):
            _sleep(0.05)

    def _trains(self) -> int | None:
        try:
            mark = _open(self._path + ".trains", O_RDONLY)
        except OSError:
            return None
        try:
            return int(_read(mark, 20) or 0) or None
        except ValueError:  # the script wrote it
            return None
        finally:
            _close(mark)

    # --- the file -----------------------------------------------------------------------------------------------
    def _write(self, event: Event) -> None:
        line = (_dumps({"event": type(event).__name__, **asdict(event)}) + "\n").encode("utf-8", "backslashreplace")
        if _identity_of(self._file) != self._identity:  # closed, and perhaps another file by now
            self._file = _open(self._path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
            self._identity = _identity_of(self._file)
        while line:
            line = line[_write(self._file, line) :]


def _identity_of(descriptor: int) -> tuple[int, int] | None:
    try:
        known = _fstat(descriptor)
    except OSError:
        return None
    return known.st_dev, known.st_ino


def _is_alive(process: int) -> bool:
    try:
        return _waitpid(process, 1)[0] == 0  # 1: WNOHANG
    except ChildProcessError:  # somebody else's child, or waited for by the program itself
        pass
    try:
        _kill(process, 0)
    except ProcessLookupError:
        return False
    return True
