"""Values that gradients are taken through, on the way back from a loss to the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.events import Call, Operation, Return, Write
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, known, options, walk
from mpdoctor.semantics.source.numbers.constants import numbers_from_value

# What these return does not depend on any tensor in a way that could be differentiated.
STOPPING = (
    *("stop_gradient", "argmax", "argmin", "argsort", "floor", "ceil", "round", "sign", "floor_divide", "floordiv"),
    *("ones", "ones_like", "zeros", "zeros_like", "eye", "range", "arange", "linspace", "one_hot", "sequence_mask"),
    *("shape", "size", "rank", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "isfinite"),
    *("logical_and", "logical_or", "logical_not", "any", "all", "reduce_any", "reduce_all"),
    *("categorical", "multinomial"),  # classes that are drawn by their logits; the loss function has another name
)
COMPARING = ("<", "<=", ">", ">=", "==", "!=", "not", "in", "not in", "is", "is not", "//")
DEEPEST = 20
User = Operation | Call | Write | Return


def has_gradient(value: Value | None, depth: int = 0) -> bool:
    """Whether a gradient may go through it: not through numbers, masks, positions and weights that are not trained."""
    return depth > DEEPEST or any(_one_has(option, depth + 1) for option in options(value))


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
        inner = () if value.method in STOPPING else (*value.args, *(argument for _, argument in value.keywords))
    elif isinstance(value, Collection):
        inner = value.items
    elif isinstance(value, Item):
        inner = (value.of,)
    else:
        return True
    return any(has_gradient(part, depth) for part in inner)


def divides_by_stopped(user: User) -> bool:
    """Whether no gradient goes through the divisor: the gradient of the dividend is divided by it once."""
    if isinstance(user, Operation):
        divisor = user.operands[-1] if user.operator == "/" else None
    else:
        divisor = user.argument(1, "y") if isinstance(user, Call) else None
    return divisor is not None and not has_gradient(divisor)


def is_stopped_behind(facts: SourceFacts, value: Value, depth: int = 0) -> bool:
    """Whether all that is made of it lets no gradient through: `tf.floor(…)`, `tf.stop_gradient(…)`, a comparison."""
    users = [user for user in _users(facts).get(id(value), ()) if not _is_followed(user)]
    return depth < DEEPEST and bool(users) and all(_stops(facts, user, depth + 1) for user in users)


def _is_followed(user: User) -> bool:
    """Whether it only hands the value to a function or back from one, and the program is followed there."""
    if isinstance(user, Return):
        return bool(user.context.callers)
    return isinstance(user, Call) and user.result is not None


def _stops(facts: SourceFacts, user: User, depth: int) -> bool:
    if isinstance(user, Operation):
        return user.operator in COMPARING or is_stopped_behind(facts, user, depth)
    if isinstance(user, Call) and isinstance(user.callee, Api):
        return user.method in STOPPING or is_stopped_behind(facts, user, depth)
    return False


def leads_back_to(sources: Value | None, loss: Value | None) -> Callable[[Value], bool]:
    """A function that says whether the gradient of a loss passes through a value on its way to the sources. It passes
    through a model that is trained, and not through the model that gives that one its input. Where a source is not
    seen, or not in the loss, it may pass through everything."""
    ends = _ends(sources)
    if ends and any(part in ends for part in walk(loss)):
        return lambda value: any(part in ends for part in walk(value))
    return lambda value: True


def _ends(sources: Value | None) -> set[Value]:
    """What gradients are asked for: the values themselves, and of weights the model; empty where one is not seen."""
    ends = set[Value]()
    waiting, seen = list(options(sources)), set[Value]()
    for source in waiting:
        if source in seen:  # `weights += weights` in forty lines holds the first 2^40 times
            continue
        seen.add(source)
        if isinstance(source, Collection) and not source.open:
            waiting += [option for item in source.items for option in options(item)]
        elif isinstance(source, Operation) and source.operator == "+" and _lists_weights(source):
            waiting += [option for operand in source.operands for option in options(operand)]
        elif isinstance(source, Attribute) and source.name in WEIGHT_LISTS:
            waiting += options(source.of)
        elif isinstance(source, (Call, Operation)):
            ends.add(source)
        else:
            return set()
    return ends


def _lists_weights(value: Value) -> bool:
    return any(isinstance(part, Attribute) and part.name in WEIGHT_LISTS for part in walk(value))


@lru_cache(maxsize=1)
def _users(facts: SourceFacts) -> dict[int, list[User]]:
    """The values computed directly from each value, by its id. The program holds all values, so that no id comes
    twice."""
    users: dict[int, list[User]] = {}
    events: tuple[User, ...] = (*facts.operations, *facts.calls, *facts.writes, *facts.returns)
    for event in events:
        for used in _used_by(event):
            users.setdefault(id(used), []).append(event)
    return users


def _used_by(event: User) -> Iterator[Value]:
    """The values that an event uses: its operands or arguments, and what they are items of or hold."""
    given: tuple[Value, ...]
    if isinstance(event, Operation):
        given = event.operands
    elif isinstance(event, Call):
        given = (
            *event.args,
            *(argument for _, argument in event.keywords),
            *([event.receiver] if event.receiver else ()),
        )
    else:
        given = (event.value,)
    waiting = [option for value in given for option in options(value)]
    seen = set[int]()
    for part in waiting:
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        inner = (part.of,) if isinstance(part, Item) else part.items if isinstance(part, Collection) else ()
        waiting += [choice for value in inner for choice in options(value)]
