"""A LossScaleOptimizer is wrapped by another optimizer, such as Lookahead or Horovod's; it has to be outermost.

## Why it matters
Training asks only the outermost optimizer to scale the loss, and an optimizer around the LossScaleOptimizer
cannot. In Keras 3 its `scale_loss` returns the loss unchanged, while the LossScaleOptimizer inside still
divides: a weight moved by 5.4e-06 where it should have moved by 0.176. fit() wraps the whole once more and
divides twice. In Keras 2 the outer optimizer has no `get_scaled_loss` at all, and averages and slow weights
count steps that were skipped.

Horovod and BytePS make a subclass of the given optimizer's class, and an object of it from that optimizer's
config. The config of a LossScaleOptimizer does not fit there: TypeError (TensorFlow 2.10 and 2.15, tf_keras,
Keras 3), or with BytePS AttributeError (TensorFlow 2.4). Keras 3's MultiOptimizer refuses one in its OptimizerMap:
`ValueError: LossScaleOptimizer cannot be used inside an MultiOptimizer` (3.15).

## Flagged
```python
import horovod.tensorflow.keras as hvd
import keras

optimizer = hvd.DistributedOptimizer(keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam()))
```

## Fixed
```python
import horovod.tensorflow.keras as hvd
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(hvd.DistributedOptimizer(keras.optimizers.Adam()))
```

## Versions
All. Horovod: TensorFlow 2.9 and later; before that its class is itself a LossScaleOptimizer and scales the loss
(2.4). BytePS: 2.4 and later.

## Where users met it
tensorflow/addons#2238, tensorflow/tensorflow#50454, horovod/horovod#2989, horovod/horovod#3807,
NVIDIA/DeepLearningExamples#256.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Api, Value, leaves, options
from mpdoctor.semantics.source.edits.expressions import put_around, unsafe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, wrapped
from mpdoctor.semantics.source.programs.separate_questions import may_happen_together
from mpdoctor.semantics.source.texts.written import callee_text
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
EXPLAINS = {"MP401": "training", "MP912": "model"}
# Packages whose optimizers wrap another one.
PACKAGES = (
    "tensorflow_addons.optimizers.",
    "horovod.",
    "byteps.",
    "gradient_accumulator.",
    "official.modeling.optimization.",
    "official.nlp.optimization.",
    "official.vision.",
    "tensorflow_models.optimization.",
)
# Packages that make a subclass of the wrapper's class, which raises, and the first TensorFlow 2 where it does.
BELOW_THE_WRAPPER = {"horovod.": (2, 9), "byteps.": (2, 4)}
MAP = "keras.optimizers.OptimizerMap"
REFUSED_IN_MAP = "A MultiOptimizer refuses a LossScaleOptimizer in its OptimizerMap: this raises ValueError."
HELP_FOR_MAP = "Wrap the whole instead: `LossScaleOptimizer(MultiOptimizer(optimizer_map))`, of plain optimizers."
OF_KERAS2 = ("get_scaled_loss", "__getattr__", "__getattribute__")
OF_KERAS3 = ("scale_loss", *OF_KERAS2)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.keras.is_keras3:
        yield from _of_maps(facts)
    for call in facts.calls if facts.shows_mixed_precision else ():
        if call.context.guarded or not _is_optimizer_around_another(facts, call):
            continue
        given = [*call.arguments(slice(1)), *(value for name, value in call.keywords if "opt" in name)]
        if class_of(call) is not None:
            given = [*call.args, *(value for _, value in call.keywords)]
        on_condition = "".join(_condition(facts, value, call) for value in given)
        if on_condition or any(_is_wrapper(facts, value, call) for value in given):
            message = (
                _message_of_raising(call.method, on_condition) if _raises(call) else _message(call.method, on_condition)
            )
            yield Finding(message, _help(call.method), call.location, fix=_fix(facts, call))


def _of_maps(facts: SourceFacts) -> Iterator[Finding]:
    """A finding for each LossScaleOptimizer that an OptimizerMap is given, which a MultiOptimizer refuses."""
    for call in facts.calls_of(MAP):
        given = [call.argument(0, "default_optimizer"), *leaves(call.argument(1, "optimizer_map"))]
        if not call.context.guarded and any(value is not None and _is_wrapper(facts, value, call) for value in given):
            yield Finding(REFUSED_IN_MAP, HELP_FOR_MAP, call.location)
    for write in facts.writes:
        is_entry = not write.name and is_call_of(write.of, MAP) and not write.context.guarded
        if is_entry and wrapped(facts, write.value, write, certain=bool(write.context.branches)):
            yield Finding(REFUSED_IN_MAP, HELP_FOR_MAP, write.location)


def _fix(facts: SourceFacts, outer: Call) -> Fix | None:
    """The edits that remove the inner wrapper and put it around the outer optimizer."""
    given = [option for value in outer.given for option in options(value)]
    wrapper = next((call for call in facts.calls_of(WRAPPER) if any(option is call for option in given)), None)
    if wrapper is None or len(wrapper.given) != 1 or wrapper.context.function is not outer.context.function:
        return None
    if wrapper.location == outer.location:  # one line of text wraps by both, in turn
        return None
    name = callee_text(facts, wrapper.location)
    around = put_around(facts, outer.location, f"{name}(", ")") if name else None
    taken = passed_on(facts, wrapper.location, 0, "inner_optimizer", "optimizer")
    return unsafe_fix("Turn them around", around, taken) if not outer.context.branches else None


def in_model(model: ModelFacts) -> Iterator[Finding]:
    scaling = OF_KERAS3 if model.keras.is_keras3 else OF_KERAS2
    for outer, inner in zip(model.optimizer, model.optimizer[1:], strict=False):
        if inner.is_wrapper and not outer.is_wrapper and not set(scaling) & set(outer.overridden):
            yield Finding(
                _message(outer.class_name),
                _help(outer.class_name),
                outer.made_at or inner.made_at,
                evidence={"chain": [link.class_name for link in model.optimizer]},
            )


def _is_optimizer_around_another(facts: SourceFacts, call: Call) -> bool:
    own = class_of(call) if isinstance(call.callee, Defined) else None
    if own is not None:
        scales_itself = any(own.find_method(name) for name in (OF_KERAS3 if facts.keras.is_keras3 else OF_KERAS2))
        is_wrapper = any(base.is_(WRAPPER) for base in own.library_bases())
        return own.kind == "optimizer" and not scales_itself and not is_wrapper
    if not isinstance(call.callee, Api) or not call.callee.name.startswith(PACKAGES):  # as nearly all are
        return False
    if not facts.keras.is_keras3 and facts.keras.release and facts.keras.release < _first_that_raises(call):
        return False
    last = call.callee.name.rpartition(".")[2]
    return last[:1].isupper() and "Tape" not in last and "Loss" not in last


def _first_that_raises(call: Call) -> tuple[int, ...]:
    """The first TensorFlow 2 in which a package's optimizer cannot wrap a LossScaleOptimizer; () where it can."""
    name = call.callee.name if isinstance(call.callee, Api) else ""
    return next((release for package, release in BELOW_THE_WRAPPER.items() if name.startswith(package)), ())


def _raises(call: Call) -> bool:
    return bool(_first_that_raises(call))


def _is_wrapper(facts: SourceFacts, value: Value, call: Call) -> bool:
    """Whether it is a LossScaleOptimizer on every path that leads here; on one path, where all paths lead here."""
    return bool(wrapped(facts, value, call, certain=bool(call.context.branches)))


def _condition(facts: SourceFacts, value: Value, call: Call) -> str:
    """A clause where wrapper and outer optimizer are made under different `if`s: on which path they come together."""
    if wrapped(facts, value, call):
        return ""
    for option in options(value):
        is_wrapper = isinstance(option, Call) and not option.context.guarded and wrapped(facts, option, call)
        if isinstance(option, Call) and is_wrapper and may_happen_together(facts, option.context, call.context):
            return f" wherever the `if` around {place_of(facts, option.location, call.location)} is taken as well"
    return ""


def _message(name: str, on_condition: str = "") -> str:
    return (
        f"{name} wraps a LossScaleOptimizer{on_condition}: {name} does not scale the loss, and nothing calls the "
        "LossScaleOptimizer inside to do it."
    )


def _message_of_raising(name: str, on_condition: str) -> str:
    reason = "because it makes a subclass of its class: this line raises"
    return f"{name} cannot wrap a LossScaleOptimizer, {reason}{on_condition}."


def _help(name: str) -> str:
    return f"Swap them, `LossScaleOptimizer({name}(…))`, so that the LossScaleOptimizer is outermost."
