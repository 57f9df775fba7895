"""The script, factory or saved model stopped before any training step, and no other rule explains why.

## Why it matters

A training that was never reached cannot be examined. The report shows your line that raised and the error in
its own words, even if the script caught the error itself and carried on. Whatever was seen until then (the
source, perhaps a model) is still judged.

## Flagged

```python
import numpy as np
import tensorflow as tf

features = np.load("features.npy")  # FileNotFoundError: the script stops here
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(features, features[:, :1])
```

## Fixed

```python
import numpy as np
import tensorflow as tf

features = np.random.rand(64, 4)
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(features, features[:, :1])
```

Put the arguments of your script after `--`: `mpdoctor check train.py -- --data features.npy`. If argparse,
click or absl says which arguments are missing, the report shows the command with them. `--static` judges the
source without running it.

## Versions

All.

## Where users met it

keras-team/keras#21366. In tf_keras a `.keras` file that was compiled and never trained does not load.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import CaughtFacts, FailureFacts
from mpdoctor.facts.location import line_in_words, shown_location
from mpdoctor.facts.processes import StartedProgram, remedy, started_evidence, what_was_started
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.errors.error_remedies import remedy_from_failure
from mpdoctor.semantics.live.errors.error_texts import headline_from_failure, place_of_failure, problem_and_remedy
from mpdoctor.semantics.live.errors.failing_parts import place_of_part, subject_from_failure
from mpdoctor.semantics.live.errors.missing_arguments import MissingArgument, command_with, missing_arguments
from mpdoctor.semantics.live.errors.saved_model_errors import headline_from_loading_error, remedy_from_loading_error

SEVERITY = Severity.ERROR
SAYS_THAT_IT_RAISED = True
OPTIONAL = ("ImportError", "ModuleNotFoundError")
SAYS_THAT_NO_MODEL_CAME = True


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if failure.in_training or failure.kind not in ("raised", "exited", "unusable"):
        return
    if failure.kind == "unusable":
        problem, advice = problem_and_remedy(failure.message)
        yield Finding(problem, advice or "Fix that and run the check again.")
    elif failure.kind == "exited":
        yield _exited(failure)
    else:
        stopped = _loading(failure) if failure.during == "loading" else _stopped(failure)
        is_file = failure.during == "loading" or failure.saved_file is not None
        error = headline_from_loading_error(failure) if is_file else headline_from_failure(failure)
        yield Finding(
            f"{stopped}: {error}",
            _remedy(failure),
            place_of_part(failure),
            layer=failure.layer,
            evidence={"exception": failure.exception, "error": failure.message},
        )


def _loading(failure: FailureFacts) -> str:
    return f"The saved model cannot be loaded{_in(failure)}"


def _stopped(failure: FailureFacts) -> str:
    stopped = "The program stops here" if failure.mended else "The program stopped here"
    return f"{subject_from_failure(failure) or f'{stopped}{_in(failure)},'} before any training step"


def _exited(failure: FailureFacts) -> Finding:
    caught = _telling(failure.caught)
    if caught is not None:
        return _caught(failure, caught)
    missing = missing_arguments(failure)
    if missing:
        return _wanting(failure, missing)
    became = next((program for program in failure.processes if program.how == "replaced"), None)
    if became is not None:
        return _became_another(failure, became)
    if failure.exit_code:
        said = f", saying {failure.message!r}," if failure.message and not failure.message.isdigit() else ""
        script = failure.location.path if failure.location else "train.py"
        return Finding(
            f"The script ended itself with exit code {failure.exit_code}{said} before any training call."
            f"{_last_line(failure)}",
            f"If it needs arguments, give them after `--`: mpdoctor check {script} -- --epochs 2. "
            "`--show-output` shows everything that it prints.",
            failure.location,
            evidence={"last_words": failure.last_words, "exit_code": failure.exit_code},
        )
    return Finding(
        "The script ended without a Keras model and without a training call, so there was nothing to examine."
        f"{what_was_started(failure.processes)}",
        remedy(failure.processes)
        or "Name the file that calls fit(), or a function that returns the model: model.py:build_model",
        failure.location,
        evidence=started_evidence(failure.processes),
    )


def _became_another(failure: FailureFacts, became: StartedProgram) -> Finding:
    """The finding for a program that os.exec put another one in the place of."""
    is_itself = failure.command_line and became.examine.split(" -- ")[0] == failure.command_line[0]
    changed = f" What it had changed before: {', '.join(became.changed[:3])}." if became.changed else ""
    return Finding(
        f"Before any training call the script made way for `{became.command}` (os.exec), which is not "
        f"examined.{changed}",
        "Set these environment variables for the check, so that the script does not start itself anew."
        if is_itself and became.changed
        else remedy((became,)) or "Name the file that calls fit().",
        evidence={**started_evidence(failure.processes), "changed": list(became.changed)},
    )


def _wanting(failure: FailureFacts, missing: tuple[MissingArgument, ...]) -> Finding:
    names = [f"`{argument.name}`" for argument in missing]
    listed_names = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return Finding(
        f"The script ended itself with exit code {failure.exit_code} before any training call, because it was not "
        f"given {listed_names}.",
        f"Give it after `--`: `{command_with(missing, failure)}`"
        if len(missing) == 1
        else f"Give them after `--`: `{command_with(missing, failure)}`",
        failure.location,
        evidence={"last_words": failure.last_words, "exit_code": failure.exit_code},
    )


def _last_line(failure: FailureFacts) -> str:
    printed = failure.last_words.splitlines()
    return f" The last line it printed was {printed[-1].strip()!r}." if printed else ""


def _telling(caught: tuple[CaughtFacts, ...]) -> CaughtFacts | None:
    """The last error that may have ended the program; an optional import that failed counts least."""
    for needed in (True, False):
        for error in reversed(caught):
            if error.before_training == needed and (needed or error.exception not in OPTIONAL):
                return error
    return None


def _caught(failure: FailureFacts, caught: CaughtFacts) -> Finding:
    """The finding for a program that caught an error and carried on."""
    error = FailureFacts("raised", "script", caught.exception, caught.message)
    end = f"ended itself with exit code {failure.exit_code}" if failure.exit_code else "ended"
    return Finding(
        f"The script {end} without a training call: it caught {headline_from_failure(error)}, in the `except` on "
        f"{line_in_words(caught.caught_at)}, and carried on.",
        remedy_from_failure(error) or "Fix the line that raised: the rest of the `try` did not run.",
        caught.location or caught.caught_at,
        evidence={
            "exception": caught.exception,
            "error": caught.message,
            "caught_at": shown_location(caught.caught_at).line,
        },
    )


def _in(failure: FailureFacts) -> str:
    place = place_of_failure(failure)
    return f" in {place}" if place else ""


def _remedy(failure: FailureFacts) -> str:
    if failure.during == "loading" or failure.saved_file is not None:
        return remedy_from_loading_error(failure)
    missing = missing_arguments(failure)
    if missing:
        return f"The script needs arguments, which go after `--`: `{command_with(missing, failure)}`"
    remedy = remedy_from_failure(failure)
    if remedy is None:
        return f"Fix this line first: {failure.how_it_ran}. --static judges the source meanwhile."
    return f"{remedy} The cells ran without {failure.left_out}." if failure.left_out else remedy
