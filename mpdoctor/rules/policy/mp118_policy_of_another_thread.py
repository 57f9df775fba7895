"""In Keras 3 another thread does not know the global policy, and the layers that it makes compute in float32.

## Why it matters
Keras 3 keeps the global policy for each thread. What `set_global_policy("mixed_float16")` sets at the top of a program
holds in its main thread; in a `threading.Thread`, in the threads of a ThreadPoolExecutor or a ThreadPool and behind
`asyncio.to_thread` and `run_in_executor` the policy is float32 (measured in Keras 3.15). A model that is built there
computes in float32 to the end, with a plain Adam, and nothing says so. A model that was built before keeps its policy
wherever it is trained. A forked process keeps the policy as well, and a pool's `initializer` may set it in each thread.

## Flagged
```python
import threading

import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")


def train():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
    model.compile(optimizer="adam", loss="mse")
    model.fit(np.ones((32, 4)), np.ones((32, 1)))


worker = threading.Thread(target=train)
worker.start()
worker.join()
```

## Fixed
```python
import threading

import keras
import numpy as np


def train():
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
    model.compile(optimizer="adam", loss="mse")
    model.fit(np.ones((32, 4)), np.ones((32, 1)))


worker = threading.Thread(target=train)
worker.start()
worker.join()
```

## Versions
Keras 3. In Keras 2 and tf_keras all threads share one policy (TensorFlow 2.10 and 2.15, tf_keras 2.21).

## Where users met it
tensorflow/tensorflow#40475 asked for a policy of each thread in Keras 2, which did not get one.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.statements import first_in_function, statement_at_top
from mpdoctor.semantics.source.layers.model_layers import global_policies_inside, half_policy_before
from mpdoctor.semantics.source.programs.running_functions import functions_of_call
from mpdoctor.semantics.source.programs.threads import functions_in_threads
from mpdoctor.semantics.source.trainings.trained_models import trainings
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.WARNING
EXPLAINS = {"MP309": "model"}
KERAS = ("3",)
FIXES = ("unsafe",)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for start, function in functions_in_threads(facts):
        setting = half_policy_before(facts, start)
        if setting is None or _sets_a_policy(facts, function) or not _trains_a_model_of_its_own(facts, function):
            continue
        named, where = str(facts.policies_at(start)[0]), place_of(facts, setting.location, start.location)
        again = statement_at_top(facts, setting)
        setter = again or f'set_global_policy("{named}")'
        first = first_in_function(facts, function.location, again) if again else None
        yield Finding(
            f'In Keras 3 the global policy "{named}" ({where}) holds in the thread that has set it: `{function.name}` '
            "runs in another one, and the model that it builds computes in float32.",
            f"Set the policy there as well: `{setter}` as the first line of `{function.name}`.",
            start.location,
            fix=unsafe_fix("Set the policy in this thread", first),
        )


def _sets_a_policy(facts: SourceFacts, function: FunctionFacts) -> bool:
    """Whether the function sets a global policy, or calls what does."""
    return any(id(function) in functions_of_call(facts, call) for call in facts.policy_calls)


def _trains_a_model_of_its_own(facts: SourceFacts, function: FunctionFacts) -> bool:
    """Whether the program trains a model that this function builds, from layers under the global policy. A model from a
    file has the policies that the file says."""
    return any(
        id(function) in functions_of_call(facts, model) and not global_policies_inside(facts, model) <= {"float32"}
        for _, model in trainings(facts)
    )
