"""Which layers compute in float16, and which of them a loss comes from."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from itertools import chain

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.knowledge.layer_kinds import PREPROCESSING, WEIGHTLESS
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.policy_settings import is_policy_of_command_line, policy_given
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Api, Attribute, Collection, Value, known, options, walk
from mpdoctor.semantics.source.layers.model_layers import (
    NESTS,
    half_policy_calls,
    layer_name,
    layers_of,
    policies_of_layer,
    policies_shown,
)
from mpdoctor.semantics.source.numbers.differentiated_values import leads_back_to
from mpdoctor.semantics.source.programs.branches import exclude_each_other

INPUTS = ("keras.Input", "keras.layers.InputLayer")
WITHOUT_FLOAT16 = ("float32", "float64", "bfloat16", "mixed_bfloat16")


def is_float16(facts: SourceFacts, layer: Call) -> bool:
    """Whether a layer certainly has the policy mixed_float16, and something to compute."""
    if layer_name(layer) in WEIGHTLESS | PREPROCESSING | NESTS:
        return False
    return policies_of_layer(facts, layer) == ("mixed_float16",)


def is_float16_in_name(facts: SourceFacts, layer: Call) -> bool:
    """Whether no gradient that trains a weight comes through a layer of the user's own in float16, whatever its policy:
    the layers that it holds are a library's and in float32 (MP208), it computes nothing itself, and it is given nothing
    but the model's inputs. What is trained before it would get gradients that are rounded on their way out of it."""
    own = class_of(layer)
    call = own.find_method("call") if own is not None and own.kind == "layer" else None
    if own is None or call is None or not _takes_inputs_alone(facts, layer):
        return False
    held = layers_of(facts, layer)
    if not held or any(class_of(part) or not set(policies_of_layer(facts, part)) <= {None, "float32"} for part in held):
        return False
    makes_weights = any(made.context.owner in own.lineage() for made in facts.method_calls("add_weight"))
    events: tuple[Call | Operation, ...] = (*facts.calls, *facts.operations)
    inside = [event for event in events if event.context.function is call]
    places = {part.location for part in held}  # of this object, and of others of its class
    return not makes_weights and bool(inside) and all(_calls_layer_made_at(places, event) for event in inside)


def _calls_layer_made_at(places: Container[Location], event: Call | Operation) -> bool:
    return isinstance(event, Call) and isinstance(event.callee, Call) and event.callee.location in places


def _takes_inputs_alone(facts: SourceFacts, layer: Call) -> bool:
    """Whether a layer is called with `keras.Input(…)` wherever it is called, or stands first in a Sequential."""
    given = [call.argument(0) for call in facts.object_calls if call.callee is layer]
    if given:
        of_inputs = all(is_call_of(option, *INPUTS) for value in given for option in options(value))
        return of_inputs and not any(_holds_and_comes_later(call, layer) for call in facts.object_calls)
    stacks = [call.argument(0, "layers") for call in facts.calls_of("keras.Sequential")]
    holding = [stack for stack in stacks if stack is not None and layer in walk(stack)]
    return bool(holding) and all(isinstance(stack, Collection) and _is_first(stack, layer) for stack in holding)


def _holds_and_comes_later(call: Call, layer: Call) -> bool:
    """Whether a model that holds the layer is called with what other layers give."""
    is_later = any(isinstance(part, Call) and isinstance(part.callee, Call) for part in walk(call.argument(0)))
    return is_later and is_call_of(call.callee, "keras.Model") and layer in walk(call.callee)


def _is_first(stack: Collection, layer: Call) -> bool:
    behind_inputs = [item for item in stack.items if not is_call_of(item, *INPUTS)]
    return not stack.open and behind_inputs[:1] == [layer]


def is_assumed_float16(facts: SourceFacts, layer: Call) -> bool:
    """Whether a layer would compute in float16 under the policy that is assumed (`--assume-mixed`): the program sets
    none, and gives the layer none."""
    if not facts.assume_mixed or layer_name(layer) in WEIGHTLESS | PREPROCESSING | NESTS:
        return False
    return policies_of_layer(facts, layer) == (None,)


def applied_in_float16(
    facts: SourceFacts, loss: Value | None, apply: Call, sources: Value | None = None
) -> Iterator[Call]:
    """The models and layers that computed this loss, and that compute in float16 on some path that leads here; of these
    the ones through which its gradient comes back to the sources, where they are given."""
    is_on_the_way: Callable[[Value], bool] | None = None
    for call in walk(loss):
        half = list(_called_in_float16(facts, call, apply)) if isinstance(call, Call) else []
        if half and is_on_the_way is None:  # seldom
            is_on_the_way = leads_back_to(sources, loss)
        if half and is_on_the_way is not None and is_on_the_way(call):
            yield from half


def _called_in_float16(facts: SourceFacts, call: Call, apply: Call) -> Iterator[Call]:
    """The layer that is called, and those that it or a model holds, where they compute in float16."""
    for made in _made(facts, call.callee):
        for layer in (made, *layers_of(facts, made)):
            is_half = is_float16(facts, layer) or is_assumed_float16(facts, layer)
            if not is_half and not may_be_float16(facts, layer, apply):
                continue
            if not is_float16_in_name(facts, layer) and not _is_nest(facts, layer):
                yield layer


def is_differentiated_in_float32(facts: SourceFacts, value: Value | None, sources: Value | None) -> bool:
    """Whether layers are seen through which the value's gradient comes back to the sources, and each of them was given
    float32, activations between them too."""
    is_on_the_way = leads_back_to(sources, value)
    called = [part.callee for part in walk(value) if isinstance(part, Call) and is_on_the_way(part)]
    made = list(chain.from_iterable(_made(facts, callee) for callee in called))
    layers = [layer for model in made for layer in (model, *layers_of(facts, model)) if not _is_nest(facts, layer)]
    return bool(layers) and all(set(policies_of_layer(facts, layer)) == {"float32"} for layer in layers)


def _is_nest(facts: SourceFacts, layer: Call) -> bool:
    """Whether a layer computes nothing besides what the layers in it compute."""
    own = class_of(layer)
    return layer_name(layer) in NESTS or (own is not None and own.kind == "model" and bool(layers_of(facts, layer)))


def _made(facts: SourceFacts, called: Value) -> list[Call]:
    """The model or layer that is called, where it is made; for a model that calls itself, `self(x)` in its
    `train_step`, each that the program makes of its class. `model.stateless_call(…)` is a call of the model, too."""
    if isinstance(called, Attribute) and called.name == "stateless_call":
        called = called.of
    if isinstance(called, Instance) and called.of.kind == "model":
        return facts.makings_of(called.of)
    return [called] if isinstance(called, Call) and layer_name(called) is not None else []


def may_be_float16(facts: SourceFacts, layer: Call, training: Call) -> bool:
    """Whether the global policy may be mixed_float16 where a layer is made, as behind `if args.amp:`, on a path that
    leads to the call that trains it."""
    if layer_name(layer) in WEIGHTLESS | PREPROCESSING | NESTS or "mixed_float16" not in policies_of_layer(
        facts, layer
    ):
        return False
    here = [call for call in half_policy_calls(facts) if "mixed_float16" in policies_shown(facts, call)]
    return any(call.order < layer.order and not exclude_each_other(call.context, training.context) for call in here)


def nothing_is_float16(facts: SourceFacts) -> bool:
    """Whether the program sets policies, none of which computes in float16, and gives none to a layer."""
    here, elsewhere = policy_without_float16(facts), facts.policies_elsewhere
    if here is None or not set(elsewhere) <= set(WITHOUT_FLOAT16):
        return False
    return bool(here or elsewhere) and not any(map(may_give_float16, facts.calls))


def policy_without_float16(facts: SourceFacts) -> str | None:
    """The policy that the program sets; "" if it sets none, None if the policy may compute in float16."""
    named: list[str] = []
    for call in facts.policy_calls:
        policies = policies_named(policy_given(call) or call.keyword("dtype"))
        if not policies or is_policy_of_command_line(call) or not set(policies) <= set(WITHOUT_FLOAT16):
            return None
        named.extend(policies)
    return named[-1] if named else ""


def may_give_float16(call: Call) -> bool:
    """Whether a layer or a model is given a dtype that may be float16, or gives one to its base class, as in
    `super().__init__(dtype="mixed_float16")`."""
    own = call.context.owner if call.method == "__init__" else class_of(call)
    kind = own.kind if own is not None else kind_of_class(call.callee.name) if isinstance(call.callee, Api) else None
    given = call.keyword("dtype")
    if kind not in ("layer", "model") or given is None or known(given) is None:
        return False
    return not set(policies_named(given) or ("?",)) <= set(WITHOUT_FLOAT16)
