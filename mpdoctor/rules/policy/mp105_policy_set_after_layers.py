"""The global policy is set after layers of the trained model were built, so those layers stay float32.

## Why it matters
A layer reads the global policy once, when it is made. A model that was built before
`set_global_policy("mixed_float16")` computes in float32 to the end, with a plain Adam (measured in Keras 3.15,
tf_keras 2.21 and TensorFlow 2.15): no error, no speed-up, no memory saved. Only layers built after the line
follow the policy.

## Flagged
```python
import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
keras.mixed_precision.set_global_policy("mixed_float16")
model.compile(optimizer="adam", loss="mse")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer="adam", loss="mse")
```

## Versions
All. Preprocessing layers, normalization layers and layers without weights may come before the policy, and so
may a model that is not trained, such as a teacher.

## Where users met it
tensorflow/community#293, huggingface/transformers#2004.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import library_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import is_api
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.moved import ahead_of
from mpdoctor.semantics.source.edits.policies import set_at_top
from mpdoctor.semantics.source.layers.model_layers import (
    LIGHT,
    NESTS,
    half_policy_calls,
    has_own_dtype,
    holds_weights,
    layer_name,
    layers_of,
    policies_of_layer,
    policies_set,
    policies_written,
)
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.trainings.trained_models import trainings
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
EXPLAINS = {"MP209": "model", "MP309": "model"}
GRAPHS = ("Functional", "Sequential")  # in a class of the user's own a part may be a teacher that is not trained
HELP = "Set the policy before the first layer is made: move {it} to the top of the program, right after the imports."
HELP_FOR_OPTION = (
    "Set the policy before the first layer is made: move this line up, right behind where the option is read."
)
HELP_FOR_CONTEXT = "Set the policy before the first layer is made: make the model inside the `with` block as well."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for policy in half_policy_calls(facts):
        if any(name == "float32" for name in policies_set(policy)) and policy.context.loops:
            continue  # a comparison of policies
        layers = _built_early(facts, policy)
        early = list(dict.fromkeys(str(layer_name(layer)) for layer in layers))
        if early:
            yield Finding(
                f"The policy is set after layers of the model were built: {listed(early)} "
                f"{'stays' if len(early) == 1 else 'stay'} float32.",
                _help(policy),
                policy.location,
                fix=_fix(facts, policy, layers),
            )


def _help(policy: Call) -> str:
    function = policy.context.function
    decorators = function.decorators if function is not None else ()
    if any(is_api(decorator, "contextlib.contextmanager") for decorator in decorators):
        return HELP_FOR_CONTEXT
    return HELP.format(it="this line") if policies_written(policy) else HELP_FOR_OPTION


def _fix(facts: SourceFacts, policy: Call, early: list[Call]) -> Fix | None:
    early_models = [model for model in _trained_after(facts, policy) if model.order < policy.order]
    chains = [(made.location, *made.context.callers) for made in (*early, *early_models)]
    moved = ahead_of(facts, policy.location, chains) if policy.location.path == facts.path else None
    if moved is not None:
        return unsafe_fix("Set the policy before the layers are built", moved)
    named = policies_written(policy)
    return unsafe_fix("Set the policy at the top", *set_at_top(facts, named[0], policy)) if len(named) == 1 else None


def _built_early(facts: SourceFacts, policy: Call) -> list[Call]:
    """The layers with weights that were built before this policy, of the models trained after it."""
    built: list[Call] = []
    models = _trained_after(facts, policy)
    later = {id(model) for model in models if _is_built_later(facts, model, policy)}
    for model in models:
        deciding = _layers_by_policy(facts, model)
        early = [layer for layer in deciding if _is_early(facts, layer, policy)]
        is_whole = len(early) == len(deciding) > 0
        if is_whole and later - {id(model)}:
            return []  # the policy is meant for another model, built and trained after it
        if is_whole or not _is_part_on_purpose(facts, model, early):
            built += early
    return built


def _layers_by_policy(facts: SourceFacts, model: Call) -> list[Call]:
    """The layers with weights that take their dtype from the policy; the model itself where its layers are unknown."""
    of_models = _deciding_seen(facts)
    if model not in of_models:
        of_models[model] = _deciding_layers(facts, model)
    return of_models[model]


@lru_cache(maxsize=1)
def _deciding_seen(_facts: SourceFacts) -> dict[Call, list[Call]]:
    """Cache of one program: the deciding calls of each model that was asked about, since each policy asks about all of
    them."""
    return {}


def _deciding_layers(facts: SourceFacts, model: Call) -> list[Call]:
    weighty = [layer for layer in layers_of(facts, model) if holds_weights(layer) and not _is_nest(layer)]
    weighty = weighty or ([model] if _builds_unseen(model) else [])
    return [layer for layer in weighty if not has_own_dtype(layer)]


def _is_built_later(facts: SourceFacts, model: Call, policy: Call) -> bool:
    """Whether a model is made behind the policy, and not of layers alone that were there before."""
    deciding = _layers_by_policy(facts, model)
    is_of_old_layers = bool(deciding) and all(_is_early(facts, layer, policy) for layer in deciding)
    return model.order > policy.order and not is_of_old_layers


def _is_part_on_purpose(facts: SourceFacts, model: Call, early: list[Call]) -> bool:
    """Whether float32 was asked for, or the part is handed over ready-made (a teacher)."""
    return class_of(model) is not None or any("float32" in policies_of_layer(facts, layer) for layer in early)


def _trained_after(facts: SourceFacts, policy: Call) -> list[Call]:
    trained = {
        id(model): model
        for training, model in trainings(facts)
        if training.order > policy.order
        and training.context.run == policy.context.run
        and _is_of_one_run(facts, model, policy)
        and not exclude_each_other(training.context, policy.context)
        and not exclude_each_other(model.context, policy.context)
        and not _is_set_back(facts, policy, training)
    }
    return list(trained.values())


def _is_set_back(facts: SourceFacts, policy: Call, training: Call) -> bool:
    """Whether float32 is set again before this training: the policy was meant for what is built in between."""
    return any(
        policy.order < other.order < training.order and other.context.run == policy.context.run
        for other in _calls_that_set_float32(facts)
    )


@lru_cache(maxsize=1)
def _calls_that_set_float32(facts: SourceFacts) -> list[Call]:
    return [call for call in facts.policy_calls if policies_set(call) == ("float32",)]


def _is_of_one_run(facts: SourceFacts, made: Call, policy: Call) -> bool:
    """Whether the order of the two is known. In a class that the program never makes, `__init__` comes before a method
    that it never calls."""
    if made.context.run == policy.context.run:
        return True
    owner, maker = policy.context.owner, made.context.function
    if owner is None or maker is None or maker.name != "__init__" or made.context.owner is not owner:
        return False
    is_unseen = not (made.context.reached or policy.context.reached or facts.is_imported)
    return is_unseen and not facts.makings_of(owner)


def _is_early(facts: SourceFacts, layer: Call, policy: Call) -> bool:
    if layer.order > policy.order or has_own_dtype(layer) or not _is_of_one_run(facts, layer, policy):
        return False
    if exclude_each_other(layer.context, policy.context) or "load" in layer.method:
        return False
    libraries = {library_of(call.callee, facts.keras) for call in (layer, policy)} - {None}
    if len(libraries) > 1:
        return False  # the policy of another Keras reaches it neither early nor late (MP111)
    return not any(isinstance(name, str) and name != "float32" for name in policies_of_layer(facts, layer))


def _is_nest(layer: Call) -> bool:
    """Whether it is a model whose layers are known one by one."""
    own = class_of(layer)
    return layer_name(layer) in NESTS or (own is not None and own.kind == "model")


def _builds_unseen(model: Call) -> bool:
    """Whether it is a whole network whose layers are not in the source: keras.applications, or a class of the user's
    own that makes them elsewhere."""
    return layer_name(model) not in {None, *NESTS}


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or not _is_half_in_force(model):
        return
    if model.policy == "float32" and not model.computes_in_half:
        yield from _whole_model(model)
    elif model.computes_in_half and model.class_name in GRAPHS:
        yield from _parts(model)


def _whole_model(model: ModelFacts) -> Iterator[Finding]:
    """A model in which no layer follows the policy in force."""
    trained = [layer for layer in model.layers if layer.has_trainable_weights and layer.class_name not in LIGHT]
    if trained and all(map(_stayed_float32, trained)):
        yield Finding(
            f"The global policy is {model.global_policy}, but the model was built before it was set: "
            f"{listed([layer.path for layer in trained])} stay float32, and nothing is trained in 16 bits.",
            _live_help(model),
            model.global_policy_set_at,
            layer=trained[0].path,
            evidence=_evidence(model, trained),
        )


def _parts(model: ModelFacts) -> Iterator[Finding]:
    """Nested models that were built before any policy was set, frozen ones among them; a file's come under MP702."""
    outermost = _outermost_early_parts(model)
    if outermost:
        count = sum(size for part in outermost for layer in model.inside(part) for _, size, _ in layer.variables)
        names = listed([part.path for part in outermost])
        yield Finding(
            f"The global policy is {model.global_policy}, but {names} ({count:,} weights) "
            f"{'was' if len(outermost) == 1 else 'were'} built before it was set: "
            f"{'it keeps' if len(outermost) == 1 else 'they keep'} computing in float32, at float32's speed and "
            "memory, inside a model that computes in 16 bits.",
            _live_help(model),
            model.global_policy_set_at,
            layer=outermost[0].path,
            evidence=_evidence(model, outermost),
        )


def _outermost_early_parts(model: ModelFacts) -> list[LayerFacts]:
    """The nested float32 models that no other of them holds."""
    parts = [layer for layer in model.layers if layer.is_model and layer.before_policy and not layer.given_dtype]
    early = [part for part in parts if _holds_only_float32(model, part) and not _is_loaded(model, part)]
    return [part for part in early if not any(part.path.startswith(f"{other.path}/") for other in early)]


def _holds_only_float32(model: ModelFacts, part: LayerFacts) -> bool:
    """Whether it has layers whose dtype is the policy's, and all of them took float32 from a policy not yet set."""
    deciding = [layer for layer in model.inside(part) if layer.variables and layer.class_name not in LIGHT]
    return bool(deciding) and all(
        _stayed_float32(layer) and layer.before_policy and not layer.given_dtype for layer in deciding
    )


def _is_loaded(model: ModelFacts, part: LayerFacts) -> bool:
    return any(f"{part.path}/".startswith(f"{load.part}/" if load.part else "") for load in model.loads)


def _is_half_in_force(model: ModelFacts) -> bool:
    return model.policy_set and model.global_policy.removeprefix("mixed_") in HALF


def _live_help(model: ModelFacts) -> str:
    return HELP.format(it=f'`set_global_policy("{model.global_policy}")`')


def _evidence(model: ModelFacts, layers: list[LayerFacts]) -> dict[str, object]:
    return {"global_policy": model.global_policy, "policies": {layer.path: layer.policy for layer in layers}}


def _stayed_float32(layer: LayerFacts) -> bool:
    is_layer = layer.floating and not layer.is_model and layer.class_name not in LIGHT
    return is_layer and layer.policy == "float32"
