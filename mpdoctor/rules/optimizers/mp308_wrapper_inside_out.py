"""A LossScaleOptimizer stands inside another optimizer, such as Lookahead or Horovod's; it belongs outermost.

## Why it matters
Only the outermost optimizer is asked to scale the loss. Around a LossScaleOptimizer stands then one that
cannot: in Keras 3 its `scale_loss` gives the loss back, while the wrapper inside still divides, so a weight
moved by 5.4e-06 where it should have moved by 0.176; fit() wraps once more and divides twice. In Keras 2 it
has no `get_scaled_loss` at all, and averages and slow weights count steps that were skipped.

Horovod and BytePS make a class below that of the optimizer that they are given, and an object of it from its
config. A LossScaleOptimizer's config does not fit there: TypeError (TensorFlow 2.10 and 2.15, tf_keras, Keras 3),
or with BytePS AttributeError (TensorFlow 2.4).

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
All. Horovod's from TensorFlow 2.9 on: before, the class that it makes is a LossScaleOptimizer and scales the loss
(2.4). BytePS' from 2.4 on.

## Where users met it
tensorflow/addons#2238, tensorflow/tensorflow#50454, horovod/horovod#2989, horovod/horovod#3807,
NVIDIA/DeepLearningExamples#256.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, options
from mpdoctor.semantics.source.edits.expressions import callee_text, put_around, unsafe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, wrapped

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
# Those that make a class below the wrapper's own, which raises: from which TensorFlow 2 on.
BELOW_THE_WRAPPER = {"horovod.": (2, 9), "byteps.": (2, 4)}
OF_KERAS2 = ("get_scaled_loss", "__getattr__", "__getattribute__")
OF_KERAS3 = ("scale_loss", *OF_KERAS2)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.calls if facts.shows_mixed_precision else ():
        if call.context.guarded or not _is_optimizer_around_another(facts, call):
            continue
        given = [*call.arguments(slice(1)), *(value for name, value in call.keywords if "opt" in name)]
        if class_of(call) is not None:
            given = [*call.args, *(value for _, value in call.keywords)]
        if any(_is_wrapper(facts, value, call) for value in given):
            message = _message_of_raising(call.method) if _raises(call) else _message(call.method)
            yield Finding(message, _help(call.method), call.location, fix=_fix(facts, call))


def _fix(facts: SourceFacts, outer: Call) -> Fix | None:
    """The wrapper taken away where it is made, and put around the outer optimizer."""
    given = [option for value in outer.given for option in options(value)]
    wrapper = next((call for call in facts.calls_of(WRAPPER) if any(option is call for option in given)), None)
    if wrapper is None or len(wrapper.given) != 1 or wrapper.context.function is not outer.context.function:
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
    own = class_of(call)
    if own is not None:
        scales_itself = any(own.find_method(name) for name in (OF_KERAS3 if facts.keras.is_keras3 else OF_KERAS2))
        is_wrapper = any(base.is_(WRAPPER) for base in own.library_bases())
        return own.kind == "optimizer" and not scales_itself and not is_wrapper
    if not isinstance(call.callee, Api):
        return False
    if not facts.keras.is_keras3 and facts.keras.release and facts.keras.release < _first_that_raises(call):
        return False
    last = call.callee.name.rpartition(".")[2]
    return call.callee.name.startswith(PACKAGES) and last[:1].isupper() and "Tape" not in last and "Loss" not in last


def _first_that_raises(call: Call) -> tuple[int, ...]:
    """The first TensorFlow 2 in which a package's optimizer cannot be made around a wrapper; () where one can."""
    name = call.callee.name if isinstance(call.callee, Api) else ""
    return next((release for package, release in BELOW_THE_WRAPPER.items() if name.startswith(package)), ())


def _raises(call: Call) -> bool:
    return bool(_first_that_raises(call))


def _is_wrapper(facts: SourceFacts, value: Value, call: Call) -> bool:
    """Whether it is one on every path that leads here; on one path is enough where all paths lead here."""
    return bool(wrapped(facts, value, call, certain=bool(call.context.branches)))


def _message(name: str) -> str:
    return (
        f"{name} is put around a LossScaleOptimizer: it does not scale the loss, and the LossScaleOptimizer inside it "
        "is never asked to."
    )


def _message_of_raising(name: str) -> str:
    return f"{name} cannot be put around a LossScaleOptimizer, from whose class it makes its own: this line raises."


def _help(name: str) -> str:
    return f"Turn them around: `LossScaleOptimizer({name}(…))`, so that the LossScaleOptimizer is outermost."
