"""`exclude_from_weight_decay`, or an argument of `apply_gradients`, does not get through a LossScaleOptimizer.

## Why it matters
The wrapper inherits `exclude_from_weight_decay` from its base class and keeps the list to itself. The call
succeeds, and the weights that it names are decayed all the same: with AdamW(1.0, weight_decay=0.1) a bias of 1
became 0.9 through the wrapper, and stayed 1 where the method was called on the optimizer inside. The wrapper of
Keras 2's classic optimizers has no such method and raises AttributeError.

The `apply_gradients` of that classic wrapper passes on only `name` and `experimental_aggregate_gradients`. With
`decay_var_list=…`, which an optimizer's own `apply_gradients` may take, it raises `TypeError: got an unexpected
keyword argument` (TensorFlow 2.4 and 2.10; legacy optimizers in 2.15 and tf_keras). A second argument by position
becomes `name`, and from TensorFlow 2.10 on it is passed on as that: an own `apply_gradients(grads_and_vars,
clip_norm=0.5)` that was given 1.0 clipped to 0.5. The wrapper of the new optimizers passes on no argument at all,
by name or by position, and the call succeeds (2.15, tf_keras). In Keras 3 it raises TypeError, also for
`experimental_aggregate_gradients` and `skip_gradients_aggregation`.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.AdamW(weight_decay=0.01))
optimizer.exclude_from_weight_decay(var_names=["bias", "gamma"])
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.AdamW(weight_decay=0.01))
optimizer.inner_optimizer.exclude_from_weight_decay(var_names=["bias", "gamma"])
```

## Versions
All that have weight decay: Keras 3, tf_keras, TensorFlow 2.11 and later. Arguments of `apply_gradients`: all; by
position TensorFlow 2.10 and later.

## Where users met it
Found by measuring. There is no report on GitHub, because the method call does not fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.wrapper_delegation import CLASSIC, NEW
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.program.values import MISSING, Value, agreed, known
from mpdoctor.semantics.source.edits.attributes import of_inner_optimizer
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.optimizers.conditional_wrappers import wrapped_on_condition
from mpdoctor.semantics.source.optimizers.wrappers import kinds_of_wrapper, lacks, wrapped
from mpdoctor.semantics.source.programs.attribute_access import reads
from mpdoctor.semantics.wording import name_of_optimizer, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
EXPLAINS = {"MP301": "line"}
LOST = "exclude_from_weight_decay"
HELP = {
    "skip_gradients_aggregation": "Its classic name is `experimental_aggregate_gradients=False`.",
    "": "Before this call, store the argument in an attribute of `optimizer.inner_optimizer` that the inner "
    "optimizer's own `apply_gradients` reads.",
}
HELP_OF_KERAS3 = (
    "The LossScaleOptimizer calls `apply` of the optimizer inside, never its `apply_gradients`: override `apply` "
    "there, and store the argument in an attribute that it reads."
)
TAKEN_BY_WRAPPERS = ("name", "experimental_aggregate_gradients", "skip_gradients_aggregation")
NAMED_FROM = (2, 10)  # before that, the classic wrapper passed its `name` on by position, to whatever stood there
OF_KERAS2 = TAKEN_BY_WRAPPERS[1:]
HELP_OF_REFUSED = "Leave it out: Keras 3 sums the gradients of all replicas in `apply_gradients` itself."
TAKEN_BY_CLASSIC = ("grads_and_vars", "name", "experimental_aggregate_gradients")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _refused_arguments(facts)
    yield from _lost_arguments(facts)
    for read in reads(facts, (LOST,)):
        if read.context.guarded or not read.is_called:
            continue
        of_wrapper = wrapped(facts, read.of, read)
        inside = of_wrapper or wrapped_on_condition(facts, read.of, read)
        if not inside:
            continue
        of = text_at(facts, read.location).rpartition("." + LOST)[0] or "optimizer"
        name = name_of_optimizer(inside[0])
        yield Finding(
            f"`{of}.{LOST}` raises AttributeError: the LossScaleOptimizer has no such method."
            if lacks(LOST, inside, facts.keras)
            else f"`{of}.{LOST}` sets the list on the LossScaleOptimizer, which does not pass it on: {name} decays all "
            "weights.",
            f"Call it on the optimizer inside: `{of}.inner_optimizer.{LOST}(…)`."
            if of_wrapper
            else f"The optimizer is wrapped on one path only: call `{of}.{LOST}(…)` before it is wrapped.",
            read.location,
            fix=safe_fix("Call the method on the inner optimizer", of_inner_optimizer(facts, read))
            if of_wrapper
            else None,
        )


def _refused_arguments(facts: SourceFacts) -> Iterator[Finding]:
    """Keywords of `apply_gradients` for which the wrapper of classic optimizers raises, or that of Keras 3."""
    for call in facts.method_calls("apply_gradients"):
        refused = next((name for name, _ in call.keywords if _is_refused(facts.keras, name)), "")
        if not refused or call.receiver is None or call.context.guarded:
            continue
        inside = wrapped(facts, call.receiver, call)
        is_classic = all(kinds_of_wrapper(optimizer, facts.keras) == (CLASSIC,) for optimizer in inside)
        if inside and (facts.keras.is_keras3 or is_classic):
            yield Finding(
                f"The LossScaleOptimizer's `apply_gradients` takes no `{refused}`, and passes none on to "
                f"{name_of_optimizer(inside[0])}: this call raises TypeError.",
                HELP_OF_REFUSED if facts.keras.is_keras3 else HELP.get(refused, HELP[""]),
                call.location,
            )


def _is_refused(keras: Keras, name: str) -> bool:
    return name in OF_KERAS2 if keras.is_keras3 else bool(name) and name not in TAKEN_BY_CLASSIC


def _lost_arguments(facts: SourceFacts) -> Iterator[Finding]:
    """Arguments that a user's own optimizer takes in its `apply_gradients`, and that a wrapper does not pass on."""
    for call in facts.method_calls("apply_gradients"):
        inside = () if call.receiver is None or call.context.guarded else wrapped(facts, call.receiver, call)
        way = agreed(_how_it_is_lost(facts.keras, optimizer, call) for optimizer in inside)
        if way is not None:
            yield Finding(
                f"The LossScaleOptimizer's `apply_gradients` {way}",
                HELP_OF_KERAS3 if facts.keras.is_keras3 else HELP[""],
                call.location,
            )


def _how_it_is_lost(keras: Keras, optimizer: Value, call: Call) -> str | None:
    """How an argument gets lost on its way to this optimizer; None where none does for certain."""
    own = class_of(optimizer)
    method = own.find_method("apply_gradients") if own is not None else None
    if own is None or method is None:
        return None
    name, by_position = _argument_for_optimizer(method, call)
    given = call.argument(1) if by_position else call.keyword(name)
    if not name or (known(given) is not MISSING and known(given) == known(method.defaults.get(name))):
        return None
    kept = f"{own.name} keeps its default" if name in method.defaults else f"{own.name} raises TypeError"
    return _way(keras, optimizer, name, by_position=by_position, kept=kept)


def _argument_for_optimizer(method: FunctionFacts, call: Call) -> tuple[str, bool]:
    """(the name of an argument that the optimizer's own `apply_gradients` takes and no wrapper knows, whether it is
    given by its position); "" where the call gives none."""
    taken = [name for name in method.parameters[2:] if not name.startswith("*") and name not in TAKEN_BY_WRAPPERS]
    second = method.parameters[2] if len(call.args) > 1 and len(method.parameters) > 2 else ""
    name = second if second in taken else next((name for name, _ in call.keywords if name in taken), "")
    return name, name == second


def _way(keras: Keras, optimizer: Value, name: str, by_position: bool, kept: str) -> str | None:
    """How the wrapper of this Keras treats the argument; None where it may arrive."""
    kinds = kinds_of_wrapper(optimizer, keras)
    if keras.is_keras3:
        return f"takes no `{name}`: this call raises TypeError."
    if kinds == (NEW,) and (by_position or keras.tensorflow_release >= (2, 11)):
        takes = (
            "takes its second argument for `skip_gradients_aggregation`, and" if by_position else "passes nothing on:"
        )
        return f"{takes} `{name}` gets nothing: {kept}."
    if kinds == (CLASSIC,) and by_position and keras.tensorflow_release >= NAMED_FROM:
        return f"takes its second argument for `name`, and `{name}` gets nothing: {kept}."
    return None


def in_model(model: ModelFacts) -> Iterator[Finding]:
    innermost = model.optimizer[-1].class_name if model.optimizer else ""
    for link in model.optimizer:
        for call in link.lost_calls:
            yield Finding(
                f"`{call.name}` sets the list on the LossScaleOptimizer, which does not pass it on: {innermost} "
                "decays all "
                "weights.",
                f"Call it on the optimizer inside: `optimizer.inner_optimizer.{call.name}(…)`.",
                call.location,
            )
