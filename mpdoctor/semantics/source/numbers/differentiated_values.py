"""Which values a gradient goes through."""

from __future__ import annotations

from mpdoctor.program.memoize import asked_once
from mpdoctor.program.values import Api, Call, Collection, Item, Known, Operation, Value, known, options
from mpdoctor.semantics.source.layers.mixed_operands import is_weight
from mpdoctor.semantics.source.numbers.constants import numbers_from_value

# What these return does not depend on any tensor in a way that could be differentiated.
STOPPING = (
    *("stop_gradient", "argmax", "argmin", "argsort", "floor", "ceil", "round", "sign", "floor_divide", "floordiv"),
    *("ones", "ones_like", "zeros", "zeros_like", "eye", "range", "arange", "linspace", "one_hot", "sequence_mask"),
    *("shape", "size", "rank", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "isfinite"),
    *("logical_and", "logical_or", "logical_not", "any", "all", "reduce_any", "reduce_all"),
)
COMPARING = ("<", "<=", ">", ">=", "==", "!=", "not", "in", "not in", "is", "is not", "//")
DEEPEST = 20


def has_gradient(value: Value | None, depth: int = 0) -> bool:
    """Whether a gradient may go through it: not through numbers, masks, positions and weights that are not trained."""
    return depth > DEEPEST or any(_one_has(one, depth + 1) for one in options(value))


@asked_once
def _one_has(value: Value, depth: int) -> bool:
    if isinstance(value, (Known, Api)) or numbers_from_value(value):
        return False
    if is_weight(value) and isinstance(value, Call):
        return known(value.keyword("trainable")) is not False
    inner: tuple[Value, ...]
    if isinstance(value, Operation):
        inner = () if value.operator in COMPARING else value.operands
    elif isinstance(value, Call) and isinstance(value.callee, Api):
        inner = () if value.method in STOPPING else (*value.args, *(one for _, one in value.keywords))
    elif isinstance(value, Collection):
        inner = value.items
    elif isinstance(value, Item):
        inner = (value.of,)
    else:
        return True
    return any(has_gradient(one, depth) for one in inner)
