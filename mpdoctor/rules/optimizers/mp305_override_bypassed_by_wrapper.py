"""A custom optimizer overrides a method that the LossScaleOptimizer around it never calls.

## Why it matters
In Keras 3 the wrapper calls the inner optimizer's `apply` and never its `apply_gradients`; in Keras 2 it calls
`apply_gradients` and never `minimize`. Whatever the override does (clipping, freezing, accumulation) is
silently skipped as soon as the optimizer is wrapped, which compile() does by itself under mixed_float16. In
Keras 3 fit() does not call the override under float32 either.

## Flagged
```python
# keras: 3
import keras


class Centered(keras.optimizers.SGD):
    def apply_gradients(self, grads_and_vars, **kwargs):
        pairs = [(g - keras.ops.mean(g), v) for g, v in grads_and_vars]
        return super().apply_gradients(pairs, **kwargs)


optimizer = keras.mixed_precision.LossScaleOptimizer(Centered(0.1))
```

## Fixed
```python
# keras: 3
import keras


class Centered(keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        return super().apply([g - keras.ops.mean(g) for g in grads], trainable_variables)


optimizer = keras.mixed_precision.LossScaleOptimizer(Centered(0.1))
```

## Versions
All: `apply_gradients` in Keras 3, `minimize` in Keras 2.

## Where users met it
Found by measuring which methods of an optimizer a wrapper calls, in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.overrides import as_override_of_apply
from mpdoctor.semantics.source.optimizers.wrappers import wrappings

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    bypassed, called = _names(facts.keras)
    for wrapping, inside in wrappings(facts):
        owners = [_overriding(facts, optimizer, bypassed, called) for optimizer in inside]
        if owners and all(owners):
            own = owners[0]
            assert own is not None
            yield Finding(
                _message(own.name, bypassed, called),
                _help(own.name, bypassed, called),
                wrapping.location,
                evidence={"class_line": own.location.line},
                fix=_fix(facts, own, bypassed) if facts.keras.is_keras3 else None,
            )


def _fix(facts: SourceFacts, own: ClassFacts, bypassed: str) -> Fix | None:
    method = own.find_method(bypassed)
    return unsafe_fix("Override `apply`", *as_override_of_apply(facts, method)) if method is not None else None


def in_model(model: ModelFacts) -> Iterator[Finding]:
    bypassed, called = _names(model.keras)
    inner = model.optimizer[-1] if model.optimizer else None
    if model.wrapper is None or inner is None or not inner.own_class:
        return
    if bypassed in inner.overridden and called not in inner.overridden:
        yield Finding(
            _message(inner.class_name, bypassed, called),
            _help(inner.class_name, bypassed, called),
            model.wrapper.made_at or inner.made_at or inner.class_location,
        )


def _names(keras: Keras) -> tuple[str, str]:
    """The method that the wrapper never calls, and the one that it calls instead."""
    return ("apply_gradients", "apply") if keras.is_keras3 else ("minimize", "apply_gradients")


def _overriding(facts: SourceFacts, inner: Value, bypassed: str, called: str) -> ClassFacts | None:
    own = class_of(inner)
    method = own.find_method(bypassed) if own is not None and own.kind == "optimizer" else None
    if own is None or method is None or _only_passes_on(facts, method):
        return None
    other = own.find_method(called)
    return own if other is None or _only_passes_on(facts, other) else None


def _only_passes_on(facts: SourceFacts, method: FunctionFacts) -> bool:
    """Whether the override does nothing itself: its only call is the base class's method."""
    calls = [call for call in facts.calls if call.context.function is method]
    others = [call for call in calls if call.method not in (method.name, "super", "name_scope")]
    return not others and not any(operation.context.function is method for operation in facts.operations)


def _message(name: str, bypassed: str, called: str) -> str:
    return (
        f"{name} overrides `{bypassed}`, which a LossScaleOptimizer never calls (it calls `{called}`): the override "
        "is skipped."
    )


def _help(name: str, bypassed: str, called: str) -> str:
    return f"In `{name}` override `{called}` instead of `{bypassed}`."
