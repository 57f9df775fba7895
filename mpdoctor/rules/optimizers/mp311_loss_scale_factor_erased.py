"""A LossScaleOptimizer wraps an optimizer that has a `loss_scale_factor`, and sets that to None.

## Why it matters
The fixed scale is silently lost: SGD(0.1, loss_scale_factor=1024) has None once it is wrapped, and so has one to
which the factor was assigned (Keras 3.15). The wrapper starts its own dynamic scale at 32768 instead. Under
mixed_float16 compile() wraps such an optimizer too. Choose one of the two: a fixed factor on a bare optimizer, or
the wrapper with its `initial_scale`.

## Flagged
```python
# keras: 3
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1, loss_scale_factor=1024.0))
```

## Fixed
```python
# keras: 3
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=1024.0)
```

## Versions
Keras 3, whose first releases scaled by both. Optimizers of Keras 2 have no `loss_scale_factor`.

## Where users met it
keras-team/keras#21233, keras-team/keras-core#571.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Value, known, options
from mpdoctor.semantics.source.edits.expressions import overridden_keyword, safe_fix, without_keyword
from mpdoctor.semantics.source.optimizers.wrappers import wrappings
from mpdoctor.semantics.source.programs.attribute_access import writes
from mpdoctor.semantics.source.programs.branches import happen_together
from mpdoctor.semantics.wording import name_of_optimizer, text_at

SEVERITY = Severity.WARNING
FIXES = ("safe",)
KERAS = ("3",)
DYNAMIC = ": its dynamic scale skips a step that overflows and is then lowered"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for wrapping, inside in wrappings(facts):
        factors = [_factor_at(facts, optimizer, wrapping) for optimizer in inside]
        if not factors or not all(factors):
            continue
        value = (text_at(facts, factors[0].location) if factors[0] else "") or "its value"
        by_compile = wrapping.method == "compile"
        finding = _finding(name_of_optimizer(inside[0]), value, by_compile, wrapping.location)
        is_argument = all(map(_factor, inside))
        yield dataclasses.replace(finding, fix=_fix(facts, inside) if is_argument else None)


def _fix(facts: SourceFacts, inside: Sequence[Value]) -> Fix | None:
    """The edit that removes the factor, which has no effect."""
    if len(inside) != 1:
        return None
    made = inside[0].location
    return safe_fix("Drop `loss_scale_factor`", without_keyword(facts, made, "loss_scale_factor")) or safe_fix(
        "Set `loss_scale_factor` to None for this optimizer",
        overridden_keyword(facts, made, "loss_scale_factor", "None"),
    )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    innermost = model.optimizer[-1].class_name if model.optimizer else ""
    for link in model.optimizer:
        if link.erased_factor is not None and link.erased_at is not None:
            yield _finding(innermost, link.erased_factor, link.wrapped_by_compile, link.erased_at)


def _finding(name: str, factor: str, by_compile: bool, location: Location) -> Finding:
    return Finding(
        f"{name} loses its `loss_scale_factor` of {factor}: "
        + ("compile() wraps it in a LossScaleOptimizer, which" if by_compile else "the LossScaleOptimizer")
        + " sets it to None and uses its own dynamic scale.",
        f"Drop `loss_scale_factor` and keep the wrapper{DYNAMIC}. With `auto_scale_loss=False` the factor is kept, and "
        "a step that overflows is applied."
        if by_compile
        else f"Drop `loss_scale_factor` and give the wrapper `initial_scale={factor}`{DYNAMIC}.",
        location,
    )


def _factor_at(facts: SourceFacts, inner: Value, wrapping: Call) -> Value | None:
    """The `loss_scale_factor` of an optimizer where it is wrapped: what was assigned last, else what it is made with,
    by its call or its class; None unless it certainly has one."""
    before = [write for write in writes(facts, ("loss_scale_factor",)) if write.order < wrapping.order]
    assigned = [write for write in before if options(write.of) == (inner,)]
    if assigned:
        is_certain = happen_together(assigned[-1].context, wrapping.context)
        return assigned[-1].value if is_certain and _is_number(assigned[-1].value) else None
    return _factor(inner) if isinstance(inner, Call) and inner.keyword("loss_scale_factor") else _factor_of_class(inner)


def _factor_of_class(inner: Value) -> Value | None:
    """The factor that the user's own class of an optimizer hands to Keras' class."""
    own = class_of(inner)
    given = own.base_argument("loss_scale_factor") if own is not None else None
    is_certain = isinstance(inner, Call) and not inner.open and given is not None
    return given if is_certain and all(map(_is_number, options(given))) else None


def _is_number(value: Value | None) -> bool:
    """Whether it is a number; of a parameter, whether its default is one."""
    return isinstance(known(value.default if isinstance(value, Parameter) else value), (int, float))


def _factor(inner: Value) -> Value | None:
    """The `loss_scale_factor` that an optimizer is given; None unless it certainly has one."""
    given = inner.keyword("loss_scale_factor") if isinstance(inner, Call) else None
    return None if given is None or known(given) is None else given
