"""The process that ran the program died: killed by a signal, aborted, out of memory, or ended by os._exit.

## Why it matters

The program ended without an exception, so there is no line to show. The report shows its last output, and
whatever was seen until then is still judged. The program runs in a process of its own, so nothing else was
harmed.

## Flagged

```python
import os

os._exit(1)
```

## Fixed

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.random.uniform((64, 4)), tf.random.uniform((64, 1)))
```

A SIGKILL usually means that the process took too much memory: try a smaller batch or `--device cpu`.

## Versions

All.

## Where users met it

tensorflow/tensorflow#31536 (a segmentation fault in an initializer).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Severity

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")
SAYS_THAT_NO_MODEL_CAME = True


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if failure.kind != "died":
        return
    where = "while it trained" if failure.in_training else "before its training call"
    yield Finding(
        f"The process that ran the program died {where}: {_how(failure)}." + _last_words(failure),
        _remedy(failure),
        evidence={"last_words": failure.last_words, "signal": failure.signal, "exit_code": failure.exit_code},
    )


def _how(failure: FailureFacts) -> str:
    """How the process ended, as a clause."""
    if failure.signal is None:
        return f"it called os._exit with exit code {failure.exit_code}"
    name = next((s.name for s in signal.Signals if s == failure.signal), f"signal {failure.signal}")
    meaning = {
        "SIGKILL": ", as the system does to a process that takes too much memory",
        "SIGSEGV": ", a crash in native code",
    }
    return name + meaning.get(name, "")


def _last_words(failure: FailureFacts) -> str:
    last = failure.last_words.strip().splitlines()
    return f" Its last output: {last[-1][:200]}" if last else ""


def _remedy(failure: FailureFacts) -> str:
    if failure.signal == signal.SIGKILL:
        return "Try a smaller batch or --device cpu, and check whether the script survives without mpdoctor."
    return "Check whether the script also dies without mpdoctor. --static judges the source meanwhile."
