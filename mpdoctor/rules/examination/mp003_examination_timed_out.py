"""No training step was reached within `--timeout` seconds.

## Why it matters

The script was still loading data, building the model or waiting when its time was over, and it was stopped.
Whatever was seen until then is still reported. A `--budget` that runs out is no finding: the steps seen by then
are judged.

## Flagged

```python
import time

time.sleep(3600)  # no training step within --timeout
```

## Fixed

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.random.uniform((64, 4)), tf.random.uniform((64, 1)))
```

Give a slow start more time with `--timeout 1800`, or examine only the model, through a function that returns it:
`mpdoctor check train.py:build_model`.

## Versions

All.

## Where users met it

A limit of mpdoctor itself; no user has reported it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.processes import remedy, started_evidence, what_was_started
from mpdoctor.finding import Finding, Severity

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")
SAYS_THAT_NO_MODEL_CAME = True


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if failure.kind != "timed-out":
        return
    doing = "A training step did not return" if failure.in_training else "No training step was reached"
    started = failure.processes
    yield Finding(
        f"{doing} within {failure.seconds:.0f} seconds, so the program was stopped.{what_was_started(started)}",
        remedy(started)
        or "Give it more time with --timeout, or examine only the model: mpdoctor check model.py:build_model",
        evidence={"last_words": failure.last_words, "seconds": round(failure.seconds, 1), **started_evidence(started)},
    )
