"""The policy is set in one Keras, and the model is built in another.

## Why it matters
`keras` and `tf_keras` are two libraries, each with its own global policy. After
`keras.mixed_precision.set_global_policy("mixed_float16")` a `tf_keras` layer computes in float32, and the other
way round (measured in Keras 3.15 beside tf_keras 2.21). `tf.keras` is `keras` unless TF_USE_LEGACY_KERAS=1
makes it `tf_keras`. No error is raised; the whole training runs in float32. The TensorFlow models of
`transformers` are built in `tf_keras`. `tensorflow.python.keras` is a third library since TensorFlow 2.6, with a policy
of its own (measured in 2.10, 2.15 and 2.21; in 2.4 it is `tf.keras`).

## Flagged
```python
import keras
import tf_keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = tf_keras.Sequential([tf_keras.layers.InputLayer((4,)), tf_keras.layers.Dense(1)])
model.compile("adam", "mse")
```

## Fixed
```python
import tf_keras

tf_keras.mixed_precision.set_global_policy("mixed_float16")
model = tf_keras.Sequential([tf_keras.layers.InputLayer((4,)), tf_keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
```

## Versions
All that can have two Kerases installed: Keras 3 or TensorFlow's own Keras beside tf_keras, and TensorFlow 2.6 and
later with its private copy.

## Where users met it
huggingface/transformers needs tf_keras beside Keras 3; projects that import both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import PRIVATE_KERAS, SET_POLICY, library_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, agreed, is_api
from mpdoctor.semantics.source.edits.expressions import replaced, unsafe_fix
from mpdoctor.semantics.source.edits.names import name_of
from mpdoctor.semantics.source.layers.model_layers import LIGHT, NESTS, half_policy_calls, has_own_dtype, layer_name
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
EXPLAINS = {"MP209": "model"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    settings = [(call, library_of(call.callee, facts.keras)) for call in half_policy_calls(facts)]
    here = _only_library(settings)
    built = _layers_built(facts) if here is not None else []
    there = _only_library(built)
    if there is None or there == here:
        return
    first = built[0][0]
    building = _as_spelled(there, first)
    for call, _ in settings:
        if not call.context.guarded:
            setting = _as_spelled(str(here), call)
            yield Finding(
                f"The policy is set in {setting}, but the model is built in {building} "
                f"({_built_at(facts, first, call)}), which has a policy of its own: the model stays float32.",
                _advice(setting, building),
                call.location,
                fix=_fix(facts, call, there),
            )


def _as_spelled(library: str, call: Call) -> str:
    """The library's name, `tf.keras` for keras where the call spells it so; tf_keras stays tf_keras, because behind
    TF_USE_LEGACY_KERAS that is what matters."""
    is_tensorflows = isinstance(call.callee, Api) and call.callee.root == "tensorflow"
    return "tf.keras" if library == "keras" and is_tensorflows else library


def _advice(setting: str, building: str) -> str:
    if building == PRIVATE_KERAS:
        return f"Build the model with `{setting}`, too: `{building}` is private, and another package than `tf.keras`."
    also = f"`{setting}` is private, and another package than `tf.keras`."
    return (
        f"Set the policy in the Keras that builds the model: `{building}.mixed_precision.set_global_policy(…)`. "
        f"{also if setting == PRIVATE_KERAS else 'Or import only one Keras.'}"
    )


def _fix(facts: SourceFacts, call: Call, there: str) -> Fix | None:
    """The edit that makes the same call of the other Keras, if the file has a name for that package; none for
    TensorFlow's private one."""
    keras = None if there == PRIVATE_KERAS else name_of(facts, there)
    name = call.callee.location if isinstance(call.callee, Api) else None
    if keras is None or name is None or not is_api(call.callee, SET_POLICY):
        return None
    return unsafe_fix(f"Set the policy of {there}", replaced(facts, name, f"{keras}.mixed_precision.set_global_policy"))


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or model.computes_in_half or not any(layer.variables for layer in model.layers):
        return
    for other in model.other_policies:
        # where both Kerases have models, float32 may be meant for this one
        if other.policy in HALF_POLICIES and model.global_policy not in HALF_POLICIES and not other.has_models:
            yield Finding(
                f"{other.policy} is set in {other.keras}, but {model.name} is built in {model.keras.package}, which "
                f"has a policy of its own, {model.global_policy}: the model stays float32.",
                "Set the policy in the Keras that builds the model: "
                f"`{model.keras.package}.mixed_precision.set_global_policy(…)`. Or import only one Keras.",
                other.set_at,
                evidence={other.keras: other.policy, model.keras.package: model.global_policy},
            )


def _layers_built(facts: SourceFacts) -> list[tuple[Call, str | None]]:
    """The calls that make layers with weights, each with its library, where that is known."""
    built = ((call, _built_in(call, facts.keras)) for call in facts.calls)
    return [(call, library) for call, library in built if library]


def _only_library(calls: Iterable[tuple[Call, str | None]]) -> str | None:
    """The one library; None where there is none, where there are several, or where one of them is unknown."""
    return agreed(library for _, library in calls)


def _built_in(call: Call, keras: Keras) -> str | None:
    """The library in which a call makes a layer with weights; None if it makes none, or if the library is unknown."""
    name = layer_name(call)
    if name is not None and name not in LIGHT | NESTS:
        if has_own_dtype(call):
            return None
        return library_of(call.callee, keras)
    callee = call.callee
    if isinstance(callee, Api) and callee.name.startswith("transformers.TF") and keras.is_keras3:
        return "tf_keras" if callee.name.endswith(".from_pretrained") else None
    return None


def _built_at(facts: SourceFacts, built: Call, policy: Call) -> str:
    name = built.method if built.method != "from_pretrained" else "transformers"
    return f"{name}, {place_of(facts, built.location, policy.location)}"
