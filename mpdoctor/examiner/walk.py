"""From a live model to ModelFacts: layers, nested ones included, the optimizer chain, and what each attribute reads on
the wrapper and on the inner optimizer."""

from __future__ import annotations

from typing import Any, Iterator

from mpdoctor.examiner.ownership import class_location
from mpdoctor.facts.model import ArrayFacts, AttributeFacts, CallFacts, LayerFacts, ModelFacts, OptimizerFacts

# Layers that handle no floating-point numbers of their own; a policy says nothing about them.
NOT_FLOATING = frozenset(
    {"InputLayer", "StringLookup", "IntegerLookup", "Hashing", "HashedCrossing", "TextVectorization", "Masking"}
)


def model_from_live(
    session: Any, keras: Any, model: Any, optimizer: Any, call: CallFacts, data: tuple[ArrayFacts, ...] = ()
) -> ModelFacts:
    """`model` is None for a loop over variables that belong to no model."""
    known: dict[str, Any] = {
        "keras": keras.facts,
        "optimizer": optimizer_from_live(session, keras, optimizer),
        "data": data,
        "call": call,
        "global_policy": keras.global_policy(),
        "policy_set": session.policy_set,
    }
    if model is None:
        return ModelFacts(id="variables", name="variables", class_name="", policy="", **known)
    return ModelFacts(
        id=model.name,
        name=model.name,
        class_name=type(model).__name__,
        policy=_policy_name(model),
        layers=tuple(_layers(session, keras, model)),
        compiled=keras.is_compiled(model),
        loss=keras.loss_text(model),
        jit_compile=keras.jit_compile(model),
        made_at=session.watch.made_at(model),
        **known,
    )


def _layers(session: Any, keras: Any, model: Any) -> Iterator[LayerFacts]:
    outputs = {id(layer) for layer in _output_layers(session, keras, model)}
    ends: set[int] = set()
    seen = {id(model)}

    def below(parent: Any, prefix: str) -> Iterator[LayerFacts]:
        for layer in keras.sublayers(parent):
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            path = prefix + layer.name
            if isinstance(layer, keras.Model):
                ends.update(id(end) for end in _output_layers(session, keras, layer))
            yield _layer(session, keras, layer, path, id(layer) in outputs, id(layer) in ends)
            yield from below(layer, path + "/")

    yield from below(model, "")


def _layer(session: Any, keras: Any, layer: Any, path: str, is_output: bool, ends_submodel: bool) -> LayerFacts:
    place = class_location(type(layer))
    return LayerFacts(
        path=path,
        class_name=type(layer).__name__,
        policy=_policy_name(layer),
        compute_dtype=str(layer.compute_dtype),
        variable_dtype=keras.variable_dtype(layer),
        output_dtypes=session.watch.output_dtypes(layer),
        variables=tuple(
            (_dtype(variable), _size(variable), bool(variable.trainable)) for variable in keras.own_variables(layer)
        ),
        own_class=place is not None,
        class_location=place,
        floating=type(layer).__name__ not in NOT_FLOATING,
        is_output=is_output,
        ends_submodel=ends_submodel,
        is_model=isinstance(layer, keras.Model),
        autocast=bool(getattr(layer, "autocast", getattr(layer, "_autocast", True))),
        made_at=session.watch.made_at(layer),
    )


def _output_layers(session: Any, keras: Any, model: Any) -> list[Any]:
    """The layers that the model's outputs come from; through nested models, down to the layer that computes."""
    operations = keras.output_operations(model)
    if operations is None:
        last = session.watch.output_layer(model)
        operations = [] if last is None else [last]
    inner = []
    for operation in operations:
        below = _output_layers(session, keras, operation) if isinstance(operation, keras.Model) else []
        inner += below or [operation]
    return inner


def optimizer_from_live(session: Any, keras: Any, optimizer: Any) -> tuple[OptimizerFacts, ...]:
    """The chain from the outermost to the innermost optimizer; () where there is none."""
    chain: list[OptimizerFacts] = []
    while optimizer is not None:
        inner = keras.inner(optimizer)
        chain.append(_link(session, keras, optimizer, inner))
        optimizer = inner
    return tuple(chain)


def _link(session: Any, keras: Any, optimizer: Any, inner: Any) -> OptimizerFacts:
    place = class_location(type(optimizer))
    is_keras = isinstance(optimizer, keras.optimizer_bases)
    factor = None if inner is not None else getattr(optimizer, "loss_scale_factor", None)
    wrapper = {} if inner is None else keras.wrapper_dynamics(optimizer)
    return OptimizerFacts(
        class_name=type(optimizer).__name__,
        module=type(optimizer).__module__,
        is_wrapper=inner is not None,
        is_keras_optimizer=is_keras,
        dynamic=wrapper.get("dynamic"),
        initial_scale=repr(wrapper["initial_scale"]) if wrapper else None,
        growth_interval=repr(wrapper["growth_interval"]) if wrapper else None,
        loss_scale_factor=None if factor is None else repr(factor),
        epsilon=_plain_number(getattr(optimizer, "epsilon", None)) if is_keras and inner is None else None,
        own_class=place is not None,
        missing=keras.missing_methods(optimizer) if place is not None or not is_keras else (),
        overridden=_overridden(keras, type(optimizer)) if place is not None else (),
        attributes=() if inner is None else tuple(_attributes(keras, optimizer, inner)),
        writes=session.notes.writes(optimizer),
        made_at=session.notes.made_at(optimizer),
        class_location=place,
    )


def _plain_number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _overridden(keras: Any, cls: type) -> tuple[str, ...]:
    base = next((b for b in keras.optimizer_bases if issubclass(cls, b)), None)
    names = ("apply", "apply_gradients", "minimize", "update_step", "get_config", "build")
    return tuple(n for n in names if base is not None and getattr(cls, n, None) is not getattr(base, n, None))


def _attributes(keras: Any, wrapper: Any, inner: Any) -> Iterator[AttributeFacts]:
    """Every hyper-parameter of the innermost optimizer, as the wrapper answers for it."""
    while keras.inner(inner) is not None:
        inner = keras.inner(inner)
    try:
        names = sorted(inner.get_config())
    except (AttributeError, NotImplementedError, TypeError):  # a custom optimizer without a working get_config
        names = sorted(name for name in vars(inner) if not name.startswith("_"))
    for name in names:
        if not hasattr(inner, name):
            continue
        yield AttributeFacts(
            name, _shown(getattr(wrapper, name)) if hasattr(wrapper, name) else None, _shown(getattr(inner, name))
        )


def _shown(value: Any) -> Any:
    numpy = getattr(value, "numpy", None)
    text = repr(float(numpy())) if callable(numpy) and getattr(value, "shape", None) == () else repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _policy_name(layer: Any) -> str:
    policy = getattr(layer, "dtype_policy", None)
    return str(getattr(policy, "name", policy))


def _dtype(variable: Any) -> str:
    dtype: Any | None = getattr(variable, "dtype", None)
    return str(getattr(dtype, "name", dtype))


def _size(variable: Any) -> int:
    count = 1
    for dimension in variable.shape:
        count *= int(dimension or 0)
    return count
