"""From a live optimizer to its chain: each one around another, and what each attribute reads on the wrapper and on the
inner optimizer."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Iterator

from mpdoctor.examiner.capture.optimizers.overridden_methods import overridden
from mpdoctor.examiner.process.user_code import class_location
from mpdoctor.facts.model import AttributeFacts, OptimizerFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasOptimizer
    from mpdoctor.examiner.session import Session


def chain_from_optimizer(
    session: Session, keras: KerasAdapter, optimizer: KerasOptimizer | None
) -> tuple[OptimizerFacts, ...]:
    """The optimizers from the outermost to the innermost; () where there is none."""
    return tuple(_link(session, keras, link) for link in _chain(keras, optimizer))


def is_inside(keras: KerasAdapter, optimizer: KerasOptimizer | None, around: KerasOptimizer | None) -> bool:
    """Whether another optimizer is one of Keras' wrappers around this one."""
    if around is None or keras.inner(around) is None:
        return False
    return around is not optimizer and holds(keras, around, optimizer)


def holds(keras: KerasAdapter, outer: KerasOptimizer | None, optimizer: KerasOptimizer | None) -> bool:
    """Whether this optimizer is one of the chain that begins with the outer one."""
    return any(optimizer is link for link in _chain(keras, outer))


def _chain(keras: KerasAdapter, optimizer: KerasOptimizer | None) -> list[KerasOptimizer]:
    chain: list[KerasOptimizer] = []
    while optimizer is not None and all(optimizer is not known for known in chain):
        chain.append(optimizer)
        inner = keras.inner(optimizer)
        optimizer = _held(keras, optimizer) if inner is None else inner
    return chain


def _held(keras: KerasAdapter, optimizer: KerasOptimizer) -> KerasOptimizer | None:
    """The optimizer that one which is no wrapper of Keras' stands around: Lookahead, MovingAverage."""
    kinds: tuple[type[KerasOptimizer], ...] = (*keras.optimizer_bases, *keras.wrappers)
    held = getattr(optimizer, "__dict__", {}).values()
    return next((inner for inner in held if isinstance(inner, kinds)), None)


def _link(session: Session, keras: KerasAdapter, optimizer: KerasOptimizer) -> OptimizerFacts:
    place = class_location(type(optimizer))
    is_keras = isinstance(optimizer, keras.optimizer_bases)
    inner = keras.inner(optimizer)
    factor = None if inner is not None else getattr(optimizer, "loss_scale_factor", None)
    dynamic, initial_scale, interval = (None, None, None) if inner is None else keras.wrapper_dynamics(optimizer)
    erased = session.optimizer_hooks.erased(optimizer)
    return OptimizerFacts(
        class_name=type(optimizer).__name__,
        module=type(optimizer).__module__,
        is_wrapper=inner is not None,
        is_keras_optimizer=is_keras,
        dynamic=dynamic,
        initial_scale=None if inner is None else repr(initial_scale),
        growth_interval=None if inner is None else repr(interval),
        loss_scale_factor=None if factor is None else repr(factor),
        epsilon=_plain_number(getattr(optimizer, "epsilon", None)) if is_keras and inner is None else None,
        beta_2=_beta_2(optimizer) if is_keras and inner is None else None,
        own_class=place is not None,
        missing=keras.missing_methods(optimizer) if place is not None or not is_keras else (),
        overridden=overridden(keras, type(optimizer)) if place is not None else (),
        attributes=() if inner is None else tuple(_attributes(keras, optimizer)),
        writes=session.optimizer_hooks.writes(optimizer),
        made_at=session.optimizer_hooks.made_at(optimizer),
        class_location=place,
        dropped=_dropped(optimizer) if place is not None and inner is None else (),
        erased_factor=erased[0] if erased else None,
        erased_at=erased[1] if erased else None,
        wrapped_by_compile=session.optimizer_hooks.made_by_compile(optimizer),
        lost_calls=session.optimizer_hooks.lost_calls(optimizer),
    )


def _plain_number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _beta_2(optimizer: KerasOptimizer) -> float | None:
    """The `beta_2` of an optimizer, a variable in the classic ones of Keras 2; None where it has none."""
    try:
        beta_2: Any = getattr(optimizer, "beta_2", None)
        return float(beta_2)
    except Exception:  # no number, a symbolic tensor, or a property of the user's that raises
        return None


def _dropped(optimizer: KerasOptimizer) -> tuple[str, ...]:
    """Arguments of the user's own class that it keeps, and that its own `get_config()` leaves out."""
    own = [cls for cls in type(optimizer).__mro__ if class_location(cls) is not None]
    if not any("get_config" in vars(cls) for cls in own) or any("from_config" in vars(cls) for cls in own):
        return ()
    try:
        config = optimizer.get_config()
    except Exception:  # the user's own code, which may not be meant to be saved
        return ()
    constructor = next((vars(cls)["__init__"] for cls in own if "__init__" in vars(cls)), None)
    if constructor is None or not isinstance(config, dict):
        return ()
    names = [
        parameter.name
        for parameter in list(inspect.signature(constructor).parameters.values())[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    return tuple(name for name in names if name not in config and _is_kept(optimizer, name))


def _is_kept(optimizer: KerasOptimizer, name: str) -> bool:
    kept = vars(optimizer)
    return name in kept or "_" + name in kept


def _attributes(keras: KerasAdapter, wrapper: KerasOptimizer) -> Iterator[AttributeFacts]:
    """Every hyper-parameter of the innermost optimizer, as the wrapper answers for it."""
    inner = _chain(keras, wrapper)[-1]
    try:
        names = sorted(inner.get_config())
    except Exception:  # the user's own code: a get_config that does not work, a function as learning rate that raises
        names = sorted(name for name in vars(inner) if not name.startswith("_"))
    for name in names:
        held = _read(inner, name)
        if held is not None:
            yield AttributeFacts(name, _read(wrapper, name), held)


def _read(optimizer: KerasOptimizer, name: str) -> str | None:
    """The attribute in the form in which it is shown; None where there is none, or where computing it raises."""
    try:
        return _shown(getattr(optimizer, name))
    except Exception:  # a property of the user's, or a schedule that cannot be shown
        return None


def _shown(value: object) -> str:
    numpy = getattr(value, "numpy", None)
    text = repr(float(numpy())) if callable(numpy) and getattr(value, "shape", None) == () else repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def learning_rate(optimizer: Any) -> float | None:
    """The learning rate of the next step; None where the optimizer has none that is a number."""
    try:
        rate: Any = getattr(optimizer, "learning_rate", None)
        rate = rate(optimizer.iterations) if callable(rate) and not hasattr(rate, "dtype") else rate
        return float(rate)
    except Exception:  # no number, or a schedule of the user's that raises
        return None
