"""A model is cloned, or made from a configuration, under a different policy than the original's.

## Why it matters
The configuration of every layer contains its policy, so `clone_model`, `from_config` and `model_from_json`
restore the old one. In Keras 3.15, tf_keras 2.21 and TensorFlow 2.15 the clone of a float32 model under
mixed_float16 has float32 layers, while the clone itself says mixed_float16: compile() even adds a
LossScaleOptimizer. The other way round, the layers stay float16 and nothing scales the loss.

## Flagged
```python
import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
keras.mixed_precision.set_global_policy("mixed_float16")
faster = keras.models.clone_model(model)
```

## Fixed
```python
import keras


def build():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])


model = build()
keras.mixed_precision.set_global_policy("mixed_float16")
faster = build()
faster.set_weights(model.get_weights())
```

## Versions
All. A `clone_function` that gives the layers another dtype does convert the model, and is not reported.

## Where users met it
larq/larq#631, tensorflow/tensorflow#46380, keras-team/keras#19752.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

from mpdoctor.facts.half_dtypes import HALF, HALF_POLICIES
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Attribute, Item, Value, known, options
from mpdoctor.semantics.source.edits.expressions import replaced, unsafe_fix
from mpdoctor.semantics.source.edits.made.models import build_call_written
from mpdoctor.semantics.source.layers.model_layers import (
    half_policy_calls,
    policies_inside,
    policies_set,
    takes_the_global_policy,
)
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.programs.branches import happen_together
from mpdoctor.semantics.source.trainings.saved_files import holds_layers_without_dtype, text_written
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
EXPLAINS = {"MP209": "model"}
HELP = "Build the model again under the new policy and copy the weights: `new.set_weights(old.get_weights())`."
FOR_CLONES = " Or pass `clone_model` a `clone_function` that sets the dtype."
COPYING = ("clone_model", "model_from_json", "model_from_config", "model_from_yaml", "from_config")
CLONING = "keras.models.clone_model"
FROM_TEXT = ("keras.models.model_from_json", "keras.models.model_from_config", "keras.models.model_from_yaml")
INPUTS = ("keras.Input", "keras.layers.InputLayer")  # which `layers` leaves out
CONFIGS = ("get_config", "to_json", "to_yaml")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    originals: dict[int, tuple[Call, list[Call]]] = {}
    if holds_layers_without_dtype(facts):
        return  # a clone of such a layer takes the new policy (MP213)
    for call, model in _clones(facts):
        if takes_the_global_policy(facts, model):
            originals.setdefault(id(call), (call, []))[1].append(model)
    for call, models in originals.values():
        before = [policies_inside(facts, model) for model in models]
        was_made_under_them = all(facts.policies_at(model) == facts.policies_at(call) for model in models)
        now = [] if was_made_under_them else _policies_that_differ(facts, call, before)
        if not call.context.guarded and now:
            yield Finding(
                f"The global policy {'is' if len(facts.policies_at(call)) == 1 else 'can be'} {now[0] or 'float32'} "
                f"here, but the layers of this clone keep the policy of the original: "
                f"{_half_policy(before[0]) or 'float32'}.",
                _help(call.method),
                call.location,
                fix=_fix(facts, call, models),
            )


def _policies_that_differ(facts: SourceFacts, clone: Call, before: list[frozenset[PolicyName]]) -> list[PolicyName]:
    """The policies at a clone that are not the original's: the only one, or one that an option decides about after the
    original was built without it."""
    now = facts.policies_at(clone)
    if len(now) == 1:
        return list(now) if all(_differs(inside, now) for inside in before) else []
    halves: set[PolicyName] = {UNSURE, *HALF_POLICIES}
    if UNSURE in now or not all(inside and halves.isdisjoint(inside) for inside in before):
        return []
    return [name for name in now if name in _half_policies_set_before(facts, clone)]


def _half_policies_set_before(facts: SourceFacts, clone: Call) -> set[PolicyName]:
    """The 16-bit policies that are set on a path to the clone."""
    earlier = (call for call in half_policy_calls(facts) if call.order < clone.order)
    policies = (policies_set(call) for call in earlier if happen_together(call.context, clone.context))
    return {name for names in policies for name in names if name in HALF_POLICIES}


def _fix(facts: SourceFacts, clone: Call, models: list[Call]) -> Fix | None:
    """The edit that calls the function which built the original once more: a clone has weights of its own, too."""
    is_plain = clone.method == "clone_model" and len(clone.given) == len(models) == 1
    built = build_call_written(facts, models[0]) if is_plain else None
    return unsafe_fix("Build the model anew", replaced(facts, clone.location, built)) if built else None


def _differs(inside: Collection[PolicyName], now: Collection[PolicyName]) -> bool:
    """Whether one of these certainly computes in 16 bits, and the other in float32."""
    if not inside or UNSURE in inside or UNSURE in now:
        return False
    return (_half_policy(inside) is None) != (_half_policy(now) is None)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or not model.policy_set:
        return
    is_half = model.global_policy.removeprefix("mixed_") in HALF
    copied = _copied_layers(model, beside_float32=is_half)
    if {layer.compute_dtype in HALF for layer in copied} == {not is_half}:
        policies = sorted({layer.policy for layer in copied})
        yield Finding(
            f"The global policy is {model.global_policy}, but the layers that `{copied[0].made_by}` made keep the "
            f"policy of the original: {listed(policies)}.",
            _help(copied[0].made_by),
            copied[0].made_at,
            layer=copied[0].path,
            evidence={"global_policy": model.global_policy, "policies": {layer.path: layer.policy for layer in copied}},
        )


def _help(made_by: str) -> str:
    return HELP + (FOR_CLONES if made_by == "clone_model" else "")


def _copied_layers(model: ModelFacts, beside_float32: bool) -> list[LayerFacts]:
    """The layers with weights that a copy of a model's configuration made; [] where there are others, but for a new
    float32 head where `beside_float32`."""
    weighty = [layer for layer in model.layers if layer.variables and layer.floating and not layer.is_model]
    copied = [layer for layer in weighty if layer.made_by in COPYING]
    others = [layer for layer in weighty if layer.made_by not in COPYING]
    are_float32 = beside_float32 and all(layer.compute_dtype not in HALF for layer in others)
    return copied if are_float32 or not others else []


def _clones(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """Each call that copies a model through its unchanged configuration, with the original."""
    for call in facts.calls_of(CLONING):
        if call.argument(2, "clone_function") is None and not call.open:
            yield from ((call, model) for model in _models(_taken_out(facts, call.argument(0, "model"))))
    for call in (*facts.calls_of(*FROM_TEXT), *filter(_is_given_a_config, facts.calls_named("from_config"))):
        yield from ((call, described) for described in _described(facts, call.argument(0)))


def _is_given_a_config(call: Call) -> bool:
    return len(call.args) == 1 and not call.keywords


def _half_policy(policies: Iterable[object]) -> object:
    """The first policy that computes in 16 bits; None where none does."""
    return next((policy for policy in policies if policy in HALF_POLICIES), None)


def _described(facts: SourceFacts, config: Value | None) -> Iterator[Call]:
    """The model whose unchanged `get_config()` or `to_json()` this is, if read from a file, and can be nothing else: a
    function that rewrites configurations gives back some values as they are."""
    written = [text_written(facts, option) or option for option in options(config)]
    given = [option for option in written if isinstance(option, Call) and option.method in CONFIGS]
    if len(given) < len(options(config)) or any(id(option) in _changed(facts) for option in given):
        return
    for option in given:
        yield from _models(option.receiver)


@lru_cache(maxsize=1)
def _changed(facts: SourceFacts) -> frozenset[int]:
    """Ids of the values that the program changes in place, or that hold something it changes."""
    changes = [write.of for write in facts.writes]
    changes += [call.receiver for call in facts.method_calls("pop", "update", "setdefault", "replace") if call.receiver]
    return frozenset(id(value) for change in changes for of in options(change) for value in _down_to_the_start(of))


def _down_to_the_start(value: Any) -> Iterator[Any]:
    """`a.b[c]`, `a.b` and `a`."""
    yield value
    while hasattr(value, "of"):
        value = value.of
        yield value


def _taken_out(facts: SourceFacts, value: Value | None) -> Value | None:
    """The part that `model.layers[0]` is, where that is certain; any other value itself."""
    if not isinstance(value, Item) or not isinstance(value.of, Attribute) or value.of.name != "layers":
        return value
    models, number = options(value.of.of), known(value.index)
    model = models[0] if len(models) == 1 else None
    if not is_call_of(model, "keras.Sequential") or not isinstance(model, Call):
        return value
    parts = [part for part in layers_of_sequential(facts, model) if not is_call_of(part, *INPUTS)]
    return parts[number] if isinstance(number, int) and -len(parts) <= number < len(parts) else value


def _models(value: Value | None) -> list[Call]:
    calls = [option for option in options(value) if isinstance(option, Call)]
    return calls if len(calls) == len(options(value)) == 1 else []
