"""Whether a loss may have been scaled: by the calls, the names and the numbers that it was made with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.program.command_line import without_command_line
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Attribute, Collection, Item, Known, Value, known, options
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_left_bare

# Methods of a dataset, whose arguments are counts: `shuffle(batch_size * 128)`.
_COUNTING = ("batch", "padded_batch", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "window")
_DIFFERENTIATING = ("gradient", "jacobian", "batch_jacobian")
_BY_REPLICAS = "scale_regularization_loss"  # of tf.nn: it divides by the number of replicas
_POWERS_OF_TEN = frozenset(10.0**exponent for exponent in range(4, 9))
SMALLEST_SCALE = 128  # a power of two from here on that multiplies a loss is a loss scale made by hand


def may_be_scaled(loss: Value | None) -> bool:
    """Whether anything that this loss was made from may have scaled it."""
    return loss is None or any(_scales(part) for part in _made_from(loss))


def may_be_scaled_in(facts: SourceFacts, loss: Value | None) -> bool:
    """Whether a loss may have been scaled, also inside functions of the user's that were not followed on the way to
    it."""
    if loss is None:
        return True
    answers = _answers(facts)
    if id(loss) not in answers:
        answers[id(loss)] = loss, _may_be_scaled_in(facts, loss)
    return answers[id(loss)][1]


@lru_cache(maxsize=1)
def _answers(facts: SourceFacts) -> dict[int, tuple[Value, bool]]:
    """Cache of `may_be_scaled_in` by the id of the loss: it is asked for each pair of a loss and an apply call. The
    loss is kept too, so that no other value gets its id."""
    return {}


def _may_be_scaled_in(facts: SourceFacts, loss: Value) -> bool:
    """Whether anything that a loss was made from may have scaled it, the functions of the user's that compute it
    included."""
    waiting, seen = [loss], set[int]()
    for item in waiting:
        parts = list(_made_from(item))
        bare = [part for part in parts if isinstance(part, Call) and scales_nothing(facts, part)]
        without = {id(value) for call in bare for value in (call, call.callee)}
        if any(_scales(part) and id(part) not in without for part in parts):
            return True
        for part in parts:
            function = part.callee.of if isinstance(part, Call) and isinstance(part.callee, Defined) else None
            if isinstance(function, FunctionFacts) and id(function) not in seen:
                seen.add(id(function))
                waiting.extend(returned.value for returned in facts.returns_of(function))
    return False


def _made_from(loss: Value) -> Iterator[Value]:
    """The loss and everything that it was made from, each once, without what a dataset is told to count, and without
    the numbers that things are picked by."""
    waiting, seen = [loss], {loss}
    for value in waiting:
        yield value
        for part in _scalable_parts(value):
            if part not in seen:
                seen.add(part)
                waiting.append(part)


def _scalable_parts(value: Value) -> tuple[Value, ...]:
    """What it is directly made of, as far as it is scaled where that is. The target of an inner gradient has a scale of
    its own, which is divided out before the loss is computed from that gradient."""
    if isinstance(value, Item):
        return (value.of,)
    if isinstance(value, Call) and value.method in _DIFFERENTIATING and value.receiver is not None:
        return (value.receiver,)
    receiver = value.receiver if isinstance(value, Call) and value.method in _COUNTING else None
    return value.parts if receiver is None else (receiver,)


def scales_nothing(facts: SourceFacts, call: Call) -> bool:
    """Whether it is `scale_loss` of a bare optimizer, which in Keras 3 gives the loss itself (3.15)."""
    if not facts.keras.is_keras3 or call.method != "scale_loss" or call.receiver is None:
        return False
    return is_left_bare(facts, call.receiver)


def is_scaled_by(loss: Value | None, *methods: str) -> bool:
    """Whether the loss is certainly the result of one of these methods."""
    choices = options(loss)
    if len(choices) == 1 and isinstance(choices[0], Collection):
        choices = choices[0].items
    return bool(choices) and all(isinstance(choice, Call) and choice.method in methods for choice in choices)


def _scales(value: Value) -> bool:
    if isinstance(value, Call):
        by_hand = value.method in ("multiply", "scalar_mul") and _is_scale_by_hand(value.arguments(slice(2)))
        return by_hand or _is_name_of_scaling(value.method)
    if isinstance(value, Attribute):
        return _is_name_of_scaling(value.name)
    if isinstance(value, Parameter):
        return _is_name_of_scaling(value.name)
    return isinstance(value, Operation) and value.operator == "*" and _is_scale_by_hand(value.operands)


def _is_scale_by_hand(factors: tuple[Value, ...]) -> bool:
    """Whether one of these factors is a loss scale made by hand, and another one may be the loss. A product of numbers
    alone counts something, as `filters * 2` with 128 filters does on the way to a model's layers."""
    others = [factor for factor in factors if scale_by_hand(factor) is None and not _is_power_of_ten(factor)]
    return len(others) < len(factors) and any(not numbers_from_value(other) for other in others)


def _is_power_of_ten(factor: Value) -> bool:
    """Whether it may be a number such as 1e4, or a variable that begins as one: few losses are weighted by so much."""
    numbers = (known(number) for choice in options(factor) for number in options(_start_of_variable(choice)))
    return any(type(number) in (int, float) and number in _POWERS_OF_TEN for number in numbers)


def _start_of_variable(value: Value) -> Value | None:
    is_variable = isinstance(value, Call) and is_call_of(value, "tensorflow.Variable")
    return value.argument(0, "initial_value") if isinstance(value, Call) and is_variable else value


def _is_name_of_scaling(name: str) -> bool:
    name = name.lower()
    return (
        "scale" in name
        and name != _BY_REPLICAS
        and (name in ("scale", "scaler") or any(word in name for word in ("loss", "grad", "dynamic")))
    )


def scale_by_hand(factor: Value) -> int | None:
    """The loss scale made by hand that it is: `1024.0`, a constant tensor of it, `tf.constant(1024.0)`, or the default
    of what the command line may say, `args.scale`, and of a parameter."""
    choices = without_command_line(factor)
    is_given = len(choices) == 1 and isinstance(choices[0], (Known, Call, Parameter))
    numbers = numbers_from_value(choices[0]) if is_given else ()
    return int(numbers[0]) if len(numbers) == 1 and is_scale_by_hand(numbers[0]) else None


def is_scale_by_hand(value: object) -> bool:
    """Whether a number that multiplies a loss is a loss scale: a power of two that is no small one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < SMALLEST_SCALE:
        return False
    return float(value).is_integer() and (int(value) & (int(value) - 1)) == 0
