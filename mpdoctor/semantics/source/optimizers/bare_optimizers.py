"""Which values of a program are optimizers that certainly scale no loss."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Known, Value, is_api, known, options
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER
from mpdoctor.semantics.source.programs.attribute_access import receivers, same_object, writes

OF_LOOP = ("get_scaled_loss", "get_unscaled_gradients")
BY_NAME = ("keras.optimizers.get", "keras.optimizers.deserialize")


def is_bare(optimizer: Value | None, is_open: bool) -> bool:
    """Whether it is certainly an optimizer that scales nothing (None stands for compile's own default, unless the call
    is `is_open` to more arguments than are seen)."""
    if optimizer is None:
        return not is_open
    return all(isinstance(option, Known) or _is_one_bare(option) for option in options(optimizer))


def is_left_bare(facts: SourceFacts, optimizer: Value | None, is_open: bool = False) -> bool:
    """Whether an optimizer is bare, and the program assigns it no `loss_scale_factor` either."""
    if not is_bare(optimizer, is_open):
        return False
    assigned = [write.of for write in writes(facts, ("loss_scale_factor",))] if optimizer is not None else []
    return optimizer is None or not any(same_object(of, optimizer) for of in assigned)


def asked_as_wrapper(facts: SourceFacts) -> Iterator[Call]:
    """The first call on each optimizer of Keras 2 that is certainly bare of what a LossScaleOptimizer alone has."""
    asked: set[int] = set()
    for call in () if facts.keras.is_keras3 else facts.method_calls(*OF_LOOP):
        made = [option for each in receivers(facts, call) for option in options(each)]
        if call.context.guarded or not _has_one_value(facts, call) or _is_perhaps_left_out(call):
            continue
        if made and all(map(_is_one_bare, made)) and not asked & set(map(id, made)):
            asked.update(map(id, made))
            yield call


def _has_one_value(facts: SourceFacts, call: Call) -> bool:
    """Whether the optimizer is called by a name that its file gives a value in one place: another may wrap it, and what
    stands in an attribute of a model is what compile() put there."""
    lines, place = facts.lines_of(call.location.path), call.location
    line = lines[place.line - 1][place.column - 1 :] if 0 < place.line <= len(lines) else ""
    name = re.match(rf"(\w+)\.{call.method}\b", line)
    if name is None:
        return False
    given = rf"^\s*(?:global .*)?\b{name[1]}\b[^=\n(]*=[^=]"
    return len(re.findall(given, facts.text, re.MULTILINE)) == 1


def _is_perhaps_left_out(call: Call) -> bool:
    """Whether an `if` stands around it, here or where its function is called, that may be one of loss scaling."""
    return any(known(branch.test) is not True for branch in call.context.branches)


def _is_one_bare(optimizer: Value) -> bool:
    if not isinstance(optimizer, Call) or optimizer.open or optimizer.keyword("loss_scale_factor") is not None:
        return False
    own = class_of(optimizer)
    if own is not None:
        is_wrapper = any(base.is_(WRAPPER) for base in own.library_bases())
        return own.kind == "optimizer" and not is_wrapper and own.base_argument("loss_scale_factor") is None
    callee = optimizer.callee
    if is_api(callee, *BY_NAME):
        return _is_bare_by_name(optimizer.argument(0, "identifier") or optimizer.keyword("config"))
    return isinstance(callee, Api) and kind_of_class(callee.name) == "optimizer" and not is_api(callee, WRAPPER)


def _is_bare_by_name(identifier: Value | None) -> bool:
    """Whether it names an optimizer, alone or in a configuration with no scale of its own; or is one."""
    return identifier is not None and all(map(_is_one_bare_by_name, options(identifier)))


def _is_one_bare_by_name(identifier: Value) -> bool:
    if isinstance(identifier, Known):
        return isinstance(identifier.value, str) and "lossscale" not in identifier.value.lower().replace("_", "")
    if isinstance(identifier, Collection):
        config = identifier.entry("config")
        is_plain = isinstance(config, Collection) and not config.open and config.entry("loss_scale_factor") is None
        name = identifier.entry("class_name")
        return not identifier.open and is_plain and isinstance(name, Known) and _is_one_bare_by_name(name)
    return _is_one_bare(identifier)
