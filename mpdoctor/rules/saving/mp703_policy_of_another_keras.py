"""A saved model names its dtype policies by a class that the installed Keras does not know.

## Why it matters
Keras 2 writes the policy of a mixed-precision layer as `Policy`, Keras 3 as `DTypePolicy`, and neither knows
the other's class. Keras 3 loads a float32 model of Keras 2, but a mixed one ends with errors about something
else: `'str' object has no attribute 'quantization_mode'` (Keras 3.15), `… 'convert_input'` (Keras 3.3), or
`Could not locate class 'Policy'`. The weights are float32 and the same in both; only the configuration cannot
be read.

## Flagged
```python
# keras: 3
import subprocess
import sys

import keras

OLD = '''
import tf_keras

tf_keras.mixed_precision.set_global_policy("mixed_float16")
tf_keras.Sequential([tf_keras.Input((4,)), tf_keras.layers.Dense(1)]).save("old.h5")
'''
subprocess.run([sys.executable, "-c", OLD], check=True)
model = keras.models.load_model("old.h5")
```

## Fixed
```python
# keras: 3
import subprocess
import sys

import keras

OLD = '''
import tf_keras

tf_keras.mixed_precision.set_global_policy("mixed_float16")
model = tf_keras.Sequential([tf_keras.Input((4,)), tf_keras.layers.Dense(1, dtype="float32")])
model.save_weights("old.weights.h5")
'''
subprocess.run([sys.executable, "-c", OLD], check=True)
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.load_weights("old.weights.h5")
```

## Versions
All: Keras 2 with files of Keras 3 (every file fails, mixed or not), Keras 3 with mixed-precision files of Keras 2.
Measured in Keras 3.15, 3.3, tf_keras 2.21 and TensorFlow 2.15, 2.10 and 2.4.

## Where users met it
HamadYA/GhostFaceNets#52, leondgarse/Keras_insightface#132, keras-team/keras#19089, keras-team/keras#19752.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.saved.file import SavedFileFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.errors.saved_model_errors import headline_from_loading_error
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.ERROR
OF_KERAS2 = ("Policy", "PolicyV1")


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    saved, keras = failure.saved_file, failure.keras
    if saved is None or keras is None:
        return
    unknown = [name for name in saved.policy_classes if (name in OF_KERAS2) == keras.is_keras3]
    if not unknown or not _is_the_reason(failure, keras):
        return
    named = listed([f"`{name}`" for name in unknown])
    error = f": {headline_from_loading_error(failure)}" if failure.exception and failure.kind == "raised" else ""
    yield Finding(
        f"`{saved.name}` was saved by {_writer(saved, keras)}{_under(saved)}. "
        f"It names its policies by {named}, {'a class' if len(unknown) == 1 else 'classes'} that {keras} does not "
        f"know, and cannot be loaded here{error}.",
        _remedy(keras),
        failure.location,
        evidence={"file": saved.name, "saved by": saved.keras_version, "policies": list(unknown)},
    )


def _is_the_reason(failure: FailureFacts, keras: Keras) -> bool:
    """Whether the error is about the policy: Keras 2 reads no file of Keras 3, and Keras 3 takes Keras 2's policy for a
    string or a dictionary."""
    if failure.kind == "unusable":
        return True
    if not keras.is_keras3:
        return "Unknown" not in failure.message
    return re.search(r"'(str|dict)' object has no attribute|class_?(name)?'?:? '?Policy", failure.message) is not None


def _under(saved: SavedFileFacts) -> str:
    policies = [name for name in saved.policies if name in HALF_POLICIES]
    return f" under {listed(policies)}" if policies else ""


def _writer(saved: SavedFileFacts, keras: Keras) -> str:
    return f"Keras {saved.keras_version}" if saved.keras_version else f"Keras {'2' if keras.is_keras3 else '3'}"


def _remedy(keras: Keras) -> str:
    move = "build the model there with the same code and copy the weights: `old.save_weights(…)`, `new.load_weights(…)`"
    if keras.is_keras3:
        return f"Load it with Keras 2: `pip install tf_keras`, `TF_USE_LEGACY_KERAS=1`. To move it to Keras 3, {move}."
    return f"Load it with Keras 3 (TensorFlow 2.16 and later; here: --python). To move it to Keras 2, {move}."
