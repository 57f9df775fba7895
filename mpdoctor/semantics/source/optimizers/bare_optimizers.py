"""Which values of a program are optimizers that certainly scale no loss."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.values import Api, Call, Known, Value, class_of, is_api, options
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER


def is_bare(optimizer: Value | None, is_open: bool) -> bool:
    """Whether it is certainly an optimizer that scales nothing (None stands for compile's own default, unless the call
    is `is_open` to more arguments than are seen)."""
    if optimizer is None:
        return not is_open
    return all(isinstance(option, Known) or _is_one_bare(option) for option in options(optimizer))


def _is_one_bare(optimizer: Value) -> bool:
    if not isinstance(optimizer, Call) or optimizer.open or optimizer.keyword("loss_scale_factor") is not None:
        return False
    own = class_of(optimizer)
    if own is not None:
        return own.kind == "optimizer" and not any(base.is_(WRAPPER) for base in own.library_bases())
    callee = optimizer.callee
    return isinstance(callee, Api) and kind_of_class(callee.name) == "optimizer" and not is_api(callee, WRAPPER)
