"""The program reads an attribute that the LossScaleOptimizer lacks and does not pass on.

## Why it matters
The line raises `AttributeError: 'LossScaleOptimizer' object has no attribute 'epsilon'`. A LossScaleOptimizer
stands in for the optimizer that it wraps, but passes on only some of its attributes: `learning_rate` and
`iterations` always, `beta_1` or `momentum` only in TensorFlow 2.4 to 2.10, `epsilon` never. compile() makes
such a wrapper itself under the mixed_float16 policy, so `model.optimizer` is a LossScaleOptimizer even if you
never wrote one.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
print(optimizer.epsilon)
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
print(optimizer.inner_optimizer.epsilon)
```

## Versions
All. Which names are missing depends on the wrapper: Keras 3 has one, and Keras 2 has two, one for new
optimizers and one for `optimizers.legacy.*`. None of them passes on what a class of your own adds, but for
hyper-parameters of classic optimizers (`_set_hyper`; run in TensorFlow 2.4 to 2.21).

## Where users met it
keras-team/keras#16218, tensorflow/models#9262, tensorflow/tensorflow#31578, tensorflow/tensorflow#29130,
tensorflow/tensorflow#32905.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import KERAS2_LOOP, ONCE_BUILT, WRAPPER_LACKS
from mpdoctor.knowledge.wrapper_delegation import BROKEN, CLASSIC, MISSING, NEW, OF_ANOTHER_WRAPPER
from mpdoctor.knowledge.wrapper_names import ON_WRAPPERS
from mpdoctor.program.events import Call, Read, Write
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Either, Value, known, options
from mpdoctor.semantics.source.edits.attributes import attribute_renamed, of_inner_optimizer
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.optimizers.conditional_wrappers import wrapped_on_condition
from mpdoctor.semantics.source.optimizers.wrappers import kinds_of_wrapper, lacks, wrapped
from mpdoctor.semantics.source.programs.attribute_access import reads, same_object, writes
from mpdoctor.semantics.wording import name_of_optimizer, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
SOMEWHERE_MISSING = frozenset().union(*MISSING.values(), *BROKEN.values(), *OF_ANOTHER_WRAPPER.values())
OF_THE_SCALE = (
    *("loss_scale_value", "current_loss_scale", "current_scale", "dynamic_loss_scale"),
    *("get_scale", "get_loss_scale", "get_current_scale", "get_current_loss_scale"),
)
UNSCALING_NAMES = ("unscale", "unscale_", "unscale_gradients", "unscale_grads", "get_unscaled_grads")
OF_UNSCALED_LOSSES = ("unscale_loss", "get_unscaled_loss")
NOTHING_FOR_GRADIENTS = "nothing replaces it, because the loss is scaled, not its gradients"
NOTHING_FOR_LOSSES = "nothing replaces it, because the loss is there before it is scaled: keep that one"
# The name in this Keras, or where to find the value.
INSTEAD_KERAS3 = {
    "lr": "`{of}.learning_rate`",
    "_decayed_lr": "`{of}.learning_rate`",
    "_get_hyper": "`{of}.learning_rate`",
    "_set_hyper": "`{of}.learning_rate`",
    "_hyper": "`{of}.learning_rate`",
    "loss_scale": "`{of}.dynamic_scale`, which exists once the optimizer is built",
    "dynamic": "nothing replaces it, because in Keras 3 the scale is always dynamic",
    "dynamic_counter": "`{of}.step_counter`, which exists once the optimizer is built",
    "weights": "`{of}.variables`",
    "_weights": "`{of}.variables`",
    "get_weights": "`[v.numpy() for v in {of}.variables]`",
    "get_slot": "`{of}.inner_optimizer.variables`",
    "scale": "`{of}.scale_loss(loss)`",
    "step": "`{of}.apply(gradients, variables)`",
    "increment_period": "`{of}.dynamic_growth_steps`",
    "initial_loss_scale": "`{of}.initial_scale`",
    "_inner_optimizer": "`{of}.inner_optimizer`",
    "update": "nothing replaces it, because `apply` adapts the scale",
    **dict.fromkeys(OF_THE_SCALE, "`{of}.dynamic_scale`, which exists once the optimizer is built"),
    **dict.fromkeys(UNSCALING_NAMES, "nothing replaces it, because in Keras 3 `apply` unscales the gradients"),
    **dict.fromkeys(OF_UNSCALED_LOSSES, NOTHING_FOR_LOSSES),
    "scale_gradients": NOTHING_FOR_GRADIENTS,
}
INSIDE = "`{of}.inner_optimizer.{name}`"
INSTEAD_KERAS2 = {
    "_decayed_lr": "`{of}.learning_rate`",
    "_get_hyper": "`{of}.learning_rate`",
    "_set_hyper": "`{of}.learning_rate`",
    "_hyper": "`{of}.learning_rate`",
    "_hypers_created": "nothing replaces it, because it is internal state of an older Keras",
    "weights": "`{of}.variables`",
    "_weights": "`{of}.variables`",
    "get_weights": "`[v.numpy() for v in {of}.variables]`",
    "scale_loss": "`{of}.get_scaled_loss(loss)`, and `{of}.get_unscaled_gradients(gradients)` before they are applied",
    "apply": "`{of}.apply_gradients(zip(gradients, variables))`",
    "scale": "`{of}.get_scaled_loss(loss)`",
    "step": "`{of}.apply_gradients(zip(gradients, variables))`",
    "increment_period": "`{of}.dynamic_growth_steps`",
    "initial_loss_scale": "`{of}.initial_scale`",
    "_inner_optimizer": "`{of}.inner_optimizer`",
    "update": "nothing replaces it, because `apply_gradients` adapts the scale",
    **dict.fromkeys(OF_THE_SCALE, "`{of}.loss_scale`"),
    **dict.fromkeys(UNSCALING_NAMES, "`{of}.get_unscaled_gradients(gradients)`"),
    **dict.fromkeys(OF_UNSCALED_LOSSES, NOTHING_FOR_LOSSES),
    "scale_gradients": NOTHING_FOR_GRADIENTS,
}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for read in reads(facts, SOMEWHERE_MISSING | _names_of_own_optimizers(facts)):
        if read.context.guarded or (facts.keras.is_keras3 and read.name in KERAS2_LOOP):
            continue
        of_wrapper = wrapped(facts, _but_none(read.of), read)
        inside = of_wrapper or _wrapped_on_condition(facts, read)
        is_own = _is_of_own_optimizers(facts, read.name, inside)
        is_missing = is_own or lacks(read.name, inside, facts.keras, read.is_called)
        if not is_missing or _was_written(facts, read):
            continue
        of = text_at(facts, read.location).rpartition("." + read.name)[0] or "optimizer"
        inherits = not is_own and not lacks(read.name, inside, facts.keras)
        yield Finding(
            f"`{of}.{read.name}{'()' if inherits else ''}` raises AttributeError: {_whose(read.of)} "
            f"{_lacking(read.name, inside[0], inherits, facts.keras)}.",
            _help(of, read.name, facts.keras, inherits) if of_wrapper else _help_on_condition(of, read.name),
            read.location,
            fix=_fix(facts, read, inherits) if of_wrapper else None,
        )


def _wrapped_on_condition(facts: SourceFacts, read: Read) -> tuple[Value, ...]:
    """The optimizers that a setting wraps or leaves bare, where the bare ones have what is read; else ()."""
    inside = wrapped_on_condition(facts, read.of, read)
    is_classic = all(kinds_of_wrapper(optimizer, facts.keras) == (CLASSIC,) for optimizer in inside)
    return inside if is_classic or read.name not in INSTEAD_KERAS3 else ()


def _lacking(name: str, optimizer: Value, inherits: bool, keras: Keras) -> str:
    inner = name_of_optimizer(optimizer)
    if inherits:
        return f"inherits the method, which looks for hyper-parameters that only {inner} has"
    if name in OF_ANOTHER_WRAPPER[NEW]:
        return f"has no `{name}`"
    if keras.is_keras3 and name in INSTEAD_KERAS3 and class_of(optimizer) is None:
        return f"has no `{name}`, and in Keras 3 {inner} has none either"
    return f"has no `{name}` and does not pass it on from {inner}"


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    match = re.search(WRAPPER_LACKS, failure.said_by_library) if failure.exception == "AttributeError" else None
    keras3 = failure.keras is None or failure.keras.is_keras3
    if match is None or (keras3 and match[1] in (*KERAS2_LOOP, *ONCE_BUILT)):
        return  # MP407 and MP411
    # Keras' own code may miss an attribute, in a method that the program calls or somewhere else
    named = re.findall(r"\.(\w+)\b", failure.failing_line)
    name = next((name for name in named if name == match[1] or name in SOMEWHERE_MISSING), None)
    if name is None and "getattr(" in failure.failing_line:  # the name is put together, or held in a variable
        name = match[1]
    if name is None:
        return
    yield Finding(
        f"The LossScaleOptimizer has no `{name}`, and does not pass it on from the optimizer inside.",
        _help("optimizer", name, failure.keras or Keras()),
        failure.location,
    )


def _fix(facts: SourceFacts, read: Read, inherits: bool) -> Fix | None:
    """The edit that replaces the attribute's name, where that is all it takes."""
    instead = INSIDE if inherits else _instead(read.name, facts.keras)
    if instead == INSIDE:
        return safe_fix("Read the attribute from the inner optimizer", of_inner_optimizer(facts, read))
    match = re.fullmatch(r"`\{of\}\.(\w+)`", instead)
    # `_get_hyper("lr")` has an argument; a scale that is read before the optimizer is built raises by either name
    if match is None or read.is_called:
        return None
    return safe_fix(f"Write `{match[1]}`", attribute_renamed(facts, read, match[1]))


def _instead(name: str, keras: Keras) -> str:
    return (INSTEAD_KERAS3 if keras.is_keras3 else INSTEAD_KERAS2).get(name, INSIDE)


def _but_none(value: Value) -> Value:
    """A value without the None that it may hold at first."""
    choices = tuple(option for option in options(value) if known(option) is not None)
    return Either(value.location, choices) if choices and len(choices) < len(options(value)) else value


def _was_written(facts: SourceFacts, read: Read) -> bool:
    """Whether the program may have set this attribute on the wrapper before, which MP302 reports. What an optimizer of
    the user's sets on itself is not set on its wrapper."""
    return any(
        same_object(write.of, read.of) and not _sets_its_own(write) and not _comes_first(read, write)
        for write in writes(facts, (read.name,))
    )


def _sets_its_own(write: Write) -> bool:
    own = class_of(write.of)
    return own is not None and write.context.owner in own.lineage()


def _comes_first(read: Read, write: Write) -> bool:
    """Whether it is read before it is written: higher up, and not only in a later round of the loop."""
    is_ordered = read.context.run == write.context.run and read.order < write.order
    return is_ordered and not (read.context.loops and read.context.branches)


def _whose(value: Value) -> str:
    made_by_hand = any(isinstance(option, Call) for option in options(value))  # here, or in a file that it imports
    return "the LossScaleOptimizer" if made_by_hand else "the LossScaleOptimizer that compile() made"


def _help_on_condition(of: str, name: str) -> str:
    return (
        "The optimizer is wrapped on one path and bare on the other. Read the attribute where the optimizer is made, "
        f'or write `getattr({of}, "inner_optimizer", {of}).{name}`.'
    )


def _help(of: str, name: str, keras: Keras, inherits: bool = False) -> str:
    text = (INSIDE if inherits else _instead(name, keras)).format(of=of, name=name)
    return f"Remove it: {text}." if text.startswith("nothing") else f"Write {text}."


@lru_cache(maxsize=1)
def _names_of_own_optimizers(facts: SourceFacts) -> frozenset[str]:
    """The names that the program's own optimizers have besides those of Keras'. Hyper-parameters of classic optimizers
    are none: their wrapper passes them on (TensorFlow 2.4 to 2.15)."""
    own = (owner for owner in facts.classes if any(".optimizers." in base.name for base in owner.library_bases()))
    hyper = {known(call.argument(0, "name")) for call in facts.method_calls("_set_hyper")}
    return frozenset(name for owner in own for name in _names_of(owner) if name not in hyper)


def _is_of_own_optimizers(facts: SourceFacts, name: str, inside: tuple[Value, ...]) -> bool:
    """Whether each of the optimizers inside a wrapper is of a class of the user's that has this name."""
    classes = [class_of(optimizer) for optimizer in inside]
    return bool(classes) and all(
        owner is not None and name in _names_of(owner) and name in _names_of_own_optimizers(facts) for owner in classes
    )


def _names_of(owner: ClassFacts) -> frozenset[str]:
    names = {name for base in owner.lineage() for name in (*base.methods, *base.attributes)}
    return frozenset(name for name in names - ON_WRAPPERS if not name.startswith("__"))
