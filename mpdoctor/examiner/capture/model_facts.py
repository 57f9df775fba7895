"""From a live model to ModelFacts: every layer and function in it, nested ones included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple

from mpdoctor.examiner.capture.graph_rewrites import rewrites_graphs
from mpdoctor.examiner.capture.layer_calls import dtype_name
from mpdoctor.examiner.capture.layer_settings import config_from_layer, names_dtype, settings_from_layer
from mpdoctor.examiner.capture.optimizers.optimizer_chain import chain_from_optimizer, is_inside
from mpdoctor.examiner.capture.origins import policy_name
from mpdoctor.examiner.capture.raw_variables import raw_variables_from_layer
from mpdoctor.examiner.keras.compiled_losses import (
    casts_prediction,
    compute_in_predictions_dtype,
    loss_name,
    take_probabilities,
)
from mpdoctor.examiner.keras.private_state import casts_its_input
from mpdoctor.examiner.process.user_code import class_location
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ArrayFacts, CallFacts, ModelFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer, KerasModel, KerasOptimizer, KerasVariable
    from mpdoctor.examiner.session import Session


# Layers that handle no floating-point numbers of their own; a policy says nothing about them.
NOT_FLOATING = frozenset(
    {"InputLayer", "StringLookup", "IntegerLookup", "Hashing", "HashedCrossing", "TextVectorization", "Masking"}
)


def model_from_live(
    session: Session,
    keras: KerasAdapter,
    model: KerasModel | None,
    optimizer: KerasOptimizer | None,
    call: CallFacts,
    data: tuple[ArrayFacts, ...] = (),
    running: bool = True,
) -> ModelFacts:
    """`model` is None for a loop over variables that belong to no model. `running`: False while the program is still
    about to choose its devices."""
    loop = ModelFacts(
        id="variables",
        name="variables",
        class_name="",
        policy="",
        keras=keras.facts,
        optimizer=chain_from_optimizer(session, keras, optimizer),
        global_policy=keras.global_policy(),
        policy_set=session.policy_setters.policy_set,
        global_policy_set_at=session.policy_setters.set_at(keras),
        other_policies=session.policies_of_others(keras),
        devices=session.devices() if running else (),
        preparing_layers=session.layer_hooks.preparing_layers,
        graphs_rewritten=rewrites_graphs(),
        data=data,
        call=call,
    )
    return loop if model is None else _with_model(loop, session, keras, model, optimizer)


def _with_model(
    loop: ModelFacts, session: Session, keras: KerasAdapter, model: KerasModel, optimizer: KerasOptimizer | None
) -> ModelFacts:
    """The facts of a loop over variables, with the model to which these belong."""
    before, set_at = session.layer_hooks.origins.policy_before(model) or ("", None)
    strategy = getattr(model, "distribute_strategy", None)
    strategy_name = type(strategy).__name__
    losses = keras.given_loss(model)
    return replace(
        loop,
        id=model.name,
        name=model.name,
        class_name=type(model).__name__,
        policy=policy_name(model),
        layers=tuple(_layers(session, keras, model)),
        compiled=keras.is_compiled(model),
        loss=loss_name(losses),
        jit_compile=keras.jit_compile(model),
        made_at=session.layer_hooks.origins.made_at(model),
        policy_before=before,
        policy_set_at=set_at,
        strategy="" if strategy is None or strategy_name.startswith("_Default") else strategy_name,
        replicas=1 if strategy is None else int(strategy.num_replicas_in_sync),
        wrapped_by_compile=loop.call.kind == "loop" and is_inside(keras, optimizer, getattr(model, "optimizer", None)),
        loss_is_of_keras=compute_in_predictions_dtype(losses),
        loss_takes_probabilities=take_probabilities(losses),
        casts_output=casts_prediction(model, losses),
        loads=tuple(session.load_hooks.inside(keras, model)),
    )


class _Place(NamedTuple):
    """Where in its model a layer stands.

    is_output
        Whether the output of the whole model comes from it.
    ends_submodel
        The same of a model inside.
    """

    path: str
    is_output: bool
    ends_submodel: bool


def _layers(session: Session, keras: KerasAdapter, model: KerasModel) -> Iterator[LayerFacts]:
    outputs = {id(layer) for layer in _output_layers(session, keras, model)}
    ends: set[int] = set()
    seen = {id(model)}

    def below(parent: KerasLayer, prefix: str) -> Iterator[LayerFacts]:
        for layer in keras.parts(parent):
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            path = prefix + layer.name
            if isinstance(layer, keras.Model):
                ends.update(id(end) for end in _output_layers(session, keras, layer))
            place = _Place(path, id(layer) in outputs, id(layer) in ends)
            if isinstance(layer, keras.Layer):
                yield _layer(session, keras, layer, place)
                yield from below(layer, path + "/")
            else:
                yield _operation(session, keras, layer, place)

    yield from below(model, "")


def _layer(session: Session, keras: KerasAdapter, layer: KerasLayer, place: _Place) -> LayerFacts:
    layer_hooks, own = session.layer_hooks, class_location(type(layer))
    called = layer_hooks.calls.of(layer)
    before, set_at = layer_hooks.origins.policy_before(layer) or ("", None)
    return LayerFacts(
        path=place.path,
        is_output=place.is_output,
        ends_submodel=place.ends_submodel,
        class_name=type(layer).__name__,
        policy=_own_policy_name(layer),
        compute_dtype=str(layer.compute_dtype),
        variable_dtype=keras.variable_dtype(layer),
        input_dtypes=called.input_dtypes,
        output_dtypes=called.output_dtypes,
        output_shape=called.output_shape,
        mask_steps=called.mask_steps,
        variables=tuple(
            (dtype_name(variable), _size(variable), bool(variable.trainable and layer.trainable))
            for variable in keras.own_variables(layer)
        ),
        own_class=own is not None,
        class_location=own,
        floating=type(layer).__name__ not in NOT_FLOATING,
        is_model=isinstance(layer, keras.Model),
        is_operation=keras.is_function(layer),
        autocast=casts_its_input(layer),
        names_dtype=names_dtype(layer),
        settings=settings_from_layer(layer),
        config=None if isinstance(layer, keras.Model) else config_from_layer(layer),
        raw_variables=raw_variables_from_layer(layer, session.tapes.differentiated, session.tapes.sources)
        if own and not keras.tracks_tf_variables
        else (),
        policy_before=before,
        policy_set_at=set_at,
        made_at=layer_hooks.origins.made_at(layer),
        made_by=layer_hooks.origins.made_by(layer),
        activation_argument=layer_hooks.origins.activation_argument(layer),
        given_dtype=layer_hooks.origins.given_dtype(layer, before or _own_policy_name(layer)),
        before_policy=layer_hooks.origins.made_before_policy(layer),
    )


def _own_policy_name(layer: KerasLayer) -> str:
    """The name of the layer's policy; of a DTypePolicyMap its entry for this layer, or its default if the layer was
    never built and has no path."""
    policy: Any = getattr(layer, "dtype_policy", None)
    if not hasattr(policy, "default_policy"):
        return policy_name(layer)
    return str(policy[layer.path].name if layer.path else policy.default_policy.name)


def _operation(session: Session, keras: KerasAdapter, operation: KerasLayer, place: _Place) -> LayerFacts:
    """A function that was called with Keras 3's symbolic tensors."""
    inputs, outputs = keras.tensors_of_operation(operation)
    dtypes = tuple(dtype_name(tensor) for tensor in outputs)
    floating = [dtype for dtype in dtypes if "float" in dtype]
    return LayerFacts(
        path=place.path,
        is_output=place.is_output,
        ends_submodel=place.ends_submodel,
        class_name=type(operation).__name__,
        policy="",
        compute_dtype=floating[0] if floating else "",
        variable_dtype=floating[0] if floating else "",
        input_dtypes=tuple(dtype_name(tensor) for tensor in inputs),
        output_dtypes=dtypes,
        floating=bool(floating),
        is_operation=True,
        given_by=keras.makers_of(inputs),
        made_at=session.layer_hooks.origins.made_at(operation),
        made_by=session.layer_hooks.origins.made_by(operation),
    )


def _output_layers(session: Session, keras: KerasAdapter, model: KerasModel) -> list[KerasLayer]:
    """The layers that the model's outputs come from; through nested models, down to the layer that computes."""
    operations = keras.output_operations(model)
    if operations is None:
        last = session.layer_hooks.output_layer(model)
        operations = [] if last is None else [last]
    inner = []
    for operation in operations:
        below = _output_layers(session, keras, operation) if isinstance(operation, keras.Model) else []
        inner += below or [operation]
    return inner


def _size(variable: KerasVariable) -> int:
    count = 1
    for dimension in variable.shape:
        count *= int(dimension or 0)
    return count
