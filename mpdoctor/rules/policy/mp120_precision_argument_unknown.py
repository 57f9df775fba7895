"""Keras is given an argument about precision that it does not have, such as `Dense(4, dtype_policy=…)`.

## Why it matters
The line raises: `Keyword argument not understood`, `Unrecognized keyword arguments passed to Dense`,
`Invalid keyword argument(s) in compile()`. A layer takes a policy as its `dtype`, and no `compute_dtype` or
`variable_dtype` beside it. An optimizer and compile() know nothing of precision: under the policy mixed_float16
compile() makes the LossScaleOptimizer by itself. In Keras 3 alone an optimizer has a `loss_scale_factor`, compile()
has `auto_scale_loss`, and losses and `Model(inputs, outputs)` have a `dtype`.

## Flagged
```python
from tensorflow import keras

body = keras.layers.Dense(64, activation="relu", dtype_policy="mixed_float16")
model = keras.Sequential([body, keras.layers.Dense(1, dtype="float32")])
model.compile(keras.optimizers.Adam(1e-3, loss_scale="dynamic"), "mse", mixed_precision=True)
```

## Fixed
```python
from tensorflow import keras

keras.mixed_precision.set_global_policy("mixed_float16")
body = keras.layers.Dense(64, activation="relu", dtype="mixed_float16")
model = keras.Sequential([body, keras.layers.Dense(1, dtype="float32")])
model.compile(keras.optimizers.Adam(1e-3), "mse")
```

## Versions
All. Each tried in TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21 and Keras 3.15.

## Where users met it
Arguments that other frameworks have, and those of Keras 3 in programs for Keras 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import POLICY, is_network, kind_of_class, public_name
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, is_api, options
from mpdoctor.semantics.source.edits.expressions import keyword_renamed, safe_fix, without_keyword
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER
from mpdoctor.semantics.source.programs.branches import is_ruled_out
from mpdoctor.semantics.source.programs.models import is_model

SEVERITY = Severity.ERROR
FIXES = ("safe",)
OF_LAYERS = ("dtype_policy", "policy")  # in the place of `dtype`
OF_POLICIES = ("compute_dtype", "variable_dtype")
NOWHERE = {
    "layer": (*OF_LAYERS, *OF_POLICIES),
    "optimizer": ("loss_scale", "dtype"),
    "compile": ("loss_scale", "mixed_precision"),
    "network": ("dtype", *OF_LAYERS),
    "keras.Sequential": ("dtype", *OF_LAYERS),
    POLICY: OF_POLICIES,
}
IN_KERAS3 = {
    "optimizer": ("loss_scale_factor",),
    "compile": ("auto_scale_loss",),
    "loss": ("dtype",),
    "keras.Model": ("dtype",),
}
ARGUMENTS = frozenset(name for table in (NOWHERE, IN_KERAS3) for names in table.values() for name in names)
SET_POLICY = 'Set the policy before the model is made, `set_global_policy("mixed_float16")`'
HELP = {
    "layer": "Call it `dtype`: a layer takes a policy as its dtype.",
    "part of a policy": 'Leave it out: a layer takes a policy as its dtype, and `dtype="mixed_float16"` computes in '
    "float16 and keeps float32 weights.",
    "loss_scale": "Leave it out: under the policy mixed_float16 compile() makes a LossScaleOptimizer around the "
    "optimizer. In a loop of your own make it yourself: `LossScaleOptimizer(optimizer)`.",
    "optimizer": "Leave it out: an optimizer keeps its variables in the dtype of the weights.",
    "loss_scale_factor": "Make a LossScaleOptimizer of that scale around the optimizer: `LossScaleOptimizer(optimizer, "
    "dynamic=False, initial_scale=…)`.",
    "auto_scale_loss": "Leave it out: under the policy mixed_float16 compile() makes a LossScaleOptimizer around an "
    "optimizer that is none.",
    "compile": f"{SET_POLICY}; compile() then makes the LossScaleOptimizer.",
    "network": f"{SET_POLICY}, or make the network from layers of your own.",
    "model": "Leave it out: each layer computes by its own policy, or by the global one.",
    "loss": "Leave it out: the loss is computed in the dtype of the predictions. Cast these where that is 16-bit.",
    POLICY: 'Name the policy, `Policy("mixed_float16")`, which computes in float16 and keeps float32 weights.',
}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.calls:
        if ARGUMENTS.isdisjoint(name for name, _ in call.keywords):
            continue
        if call.context.guarded or is_ruled_out(call.context):
            continue
        kind = _kind(call)
        for name in _unknown(kind, facts.keras):
            if call.keyword(name) is not None:
                yield Finding(
                    f"`{call.method}` takes no `{name}` in {facts.keras}: this line raises.",
                    _help(kind, name),
                    call.location,
                    fix=_fix(facts, call, kind, name),
                )


def _unknown(kind: str, keras: Keras) -> tuple[str, ...]:
    """The arguments about precision that this kind of call does not take there."""
    return (*NOWHERE.get(kind, ()), *(() if keras.is_keras3 else IN_KERAS3.get(kind, ())))


def _kind(call: Call) -> str:
    """What a call of the library is: a key of the tables above, "" for all others."""
    if not isinstance(call.callee, Api):
        return "compile" if call.method == "compile" and _are_models_of_keras(call.receiver) else ""
    name = public_name(call.callee.name)
    if is_network(name):
        return "network"
    if name == "keras.Model":
        return name if len(call.args) > 1 or call.keyword("outputs") is not None else ""
    if is_api(call.callee, WRAPPER):
        return ""  # MP310 knows what it takes
    if name in NOWHERE:
        return name
    if name == "keras.layers.InputLayer":
        return ""  # in Keras 3 it takes whatever it is given
    kind = kind_of_class(name) or ""
    return kind if kind != "layer" or name.startswith("keras.layers.") else ""


def _are_models_of_keras(receiver: Value | None) -> bool:
    """Whether Keras' own compile() is called: of a model whose class has none of its own."""
    models = options(receiver)
    owners = [class_of(model) for model in models]
    return bool(models) and all(map(is_model, models)) and not any(own and own.find_method("compile") for own in owners)


def _help(kind: str, name: str) -> str:
    if name in ("loss_scale_factor", "auto_scale_loss"):
        return HELP[name]
    if kind == "optimizer" and name == "loss_scale":
        return HELP["loss_scale"]
    if kind == "layer" and name in OF_POLICIES:
        return HELP["part of a policy"]
    return HELP["model" if kind in ("keras.Sequential", "keras.Model") else kind]


def _fix(facts: SourceFacts, call: Call, kind: str, name: str) -> Fix | None:
    if kind == "layer" and name in OF_LAYERS:
        taken = call.keyword("dtype") is not None
        return (
            None if taken else safe_fix("Call the argument dtype", keyword_renamed(facts, call.location, name, "dtype"))
        )
    if kind in ("keras.Sequential", "keras.Model", "loss") or (kind, name) == ("optimizer", "dtype"):
        return safe_fix("Leave the argument out", without_keyword(facts, call.location, name))
    return None
