"""Keras 3's `clear_session()` forgets the global policy, and the layers made after it compute in float32.

## Why it matters
After `set_global_policy("mixed_float16")` and `clear_session()` the global policy is float32 again: a model that is
built then computes in float32 to the end, with a plain Adam, and nothing says so (measured in Keras 3.15; the code of
Keras 3.0 does the same). In a loop over folds that ends with `clear_session()` only the first model is mixed. Code
that was written for Keras 2, where the policy stays, changes its precision this way when TensorFlow is updated.
KerasTuner calls `clear_session()` itself before it builds the model of a trial: with a policy that is set at the top of
the program all trials are in float32 (KerasTuner 1.4.8).

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
keras.backend.clear_session()
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer="adam", loss="mse")
```

## Fixed
```python
import keras

keras.backend.clear_session()
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer="adam", loss="mse")
```

## Versions
Keras 3. In Keras 2 and tf_keras `clear_session()` leaves the policy as it is (TensorFlow 2.4, 2.10 and 2.15, tf_keras
2.21). A policy that `keras.config.set_floatx("float16")` has made comes back by itself.

## Where users met it
thushv89/manning_tf2_in_action, which asks for TensorFlow 2.9, is right there and in float32 in Keras 3.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.statements import line_behind, statement_at_top
from mpdoctor.semantics.source.layers.model_layers import (
    global_policies_inside,
    half_policy_before,
    half_policy_calls,
    layer_name,
    policies_inside,
)
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.programs.running_functions import functions_of_call
from mpdoctor.semantics.source.texts.syntax_trees import tree_of
from mpdoctor.semantics.source.trainings.trained_models import trainings
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.WARNING
EXPLAINS = {"MP309": "model"}
KERAS = ("3",)
FIXES = ("unsafe",)
TUNERS = ("keras_tuner", "kerastuner")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _cleared_by_the_program(facts)
    yield from _cleared_by_a_tuner(facts)


def _cleared_by_the_program(facts: SourceFacts) -> Iterator[Finding]:
    for clearing in facts.clearing_calls:
        setting = half_policy_before(facts, clearing)
        if setting is None:
            continue
        if any(_is_built_after(facts, model, clearing) for model in _trained(facts, clearing)):
            since = "what is trained here is built after it, and computes in float32"
        elif any(_is_built_again(facts, model, clearing, setting) for model in _trained(facts, clearing)):
            since = "from the second time round this loop the model computes in float32"
        else:
            continue
        named, where = _named(facts, clearing), place_of(facts, setting.location, clearing.location)
        again = statement_at_top(facts, setting)
        setter = again or f'set_global_policy("{named}")'
        yield Finding(
            f'In Keras 3 `clear_session()` forgets the global policy "{named}" ({where}): {since}.',
            f"Set the policy again after it, `{setter}`.",
            clearing.location,
            fix=unsafe_fix("Set the policy again", line_behind(facts, clearing.location, again)) if again else None,
        )


def _cleared_by_a_tuner(facts: SourceFacts) -> Iterator[Finding]:
    """Searches of KerasTuner, whose models are built in functions that set no policy."""
    for search in facts.method_calls("search"):
        setting = half_policy_before(facts, search) if _is_of_a_tuner(search) else None
        if setting is None or _is_set_where_layers_are_made(facts):
            continue
        named, where = _named(facts, search), place_of(facts, setting.location, search.location)
        setter = statement_at_top(facts, setting) or f'set_global_policy("{named}")'
        yield Finding(
            "KerasTuner calls `clear_session()` before it builds each model, and in Keras 3 that forgets the global "
            f'policy "{named}" ({where}): all trials compute in float32.',
            f"Set the policy again where the model is built, as the first line of that function: `{setter}`.",
            search.location,
        )


def _is_of_a_tuner(search: Call) -> bool:
    makers = [option.callee for option in options(search.receiver) if isinstance(option, Call)]
    return bool(makers) and all(isinstance(maker, Api) and maker.root in TUNERS for maker in makers)


def _is_set_where_layers_are_made(facts: SourceFacts) -> bool:
    """Whether a function that sets a policy, perhaps through another one, makes layers too."""
    setting = set().union(*(functions_of_call(facts, call) for call in facts.policy_calls))
    made = (call for call in facts.calls if setting and layer_name(call) is not None)
    return any(setting & functions_of_call(facts, call) for call in made)


def _named(facts: SourceFacts, clearing: Call) -> str:
    return str(facts.policies_at(clearing)[0])


def _trained(facts: SourceFacts, clearing: Call) -> list[Call]:
    """The models that the same run trains, and does not load from a file, which says the policies of its layers."""
    return [
        model
        for training, model in trainings(facts)
        if model.context.run == clearing.context.run == training.context.run
        and "load" not in model.method
        and not exclude_each_other(model.context, clearing.context)
    ]


def _is_built_after(facts: SourceFacts, model: Call, clearing: Call) -> bool:
    """Whether it is built after the session was cleared, in the float32 that this leaves: between the two no policy is
    set, as for the float32 half of a comparison."""
    is_set_again = any(clearing.order < call.order < model.order for call in facts.policy_calls)
    return model.order > clearing.order and not is_set_again and policies_inside(facts, model) == {"float32"}


def _is_built_again(facts: SourceFacts, model: Call, clearing: Call, setting: Call) -> bool:
    """Whether a loop builds it and clears the session afterwards, and the policy was set before the loop."""
    policies = global_policies_inside(facts, model) - {"float32"}
    if not setting.order < model.order < clearing.order or not policies or not policies <= set(HALF_POLICIES):
        return False
    places = [_places_in(facts, call) for call in (setting, model, clearing)]
    later = [_places_in(facts, call) for call in half_policy_calls(facts) if call.order > clearing.order]
    tree = tree_of(facts)
    if tree is None or not all(places):
        return False
    loops = (node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While)))
    return any(
        [_is_in(loop, around) for around in places] == [False, True, True]
        and not any(_is_in(loop, around) for around in later)
        for loop in loops
    )


def _places_in(facts: SourceFacts, call: Call) -> list[Location]:
    """The places in this file of a call, and of the calls whose functions make it."""
    return [place for place in (*call.context.callers, call.location) if place.path == facts.path]


def _is_in(loop: ast.For | ast.While, places: list[Location]) -> bool:
    return any(loop.lineno < place.line <= (loop.end_lineno or loop.lineno) for place in places)
