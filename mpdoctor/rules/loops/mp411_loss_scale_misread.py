"""The program reads or uses the loss scale in a way that raises: calls it, reads it too early, or scales a list.

## Why it matters
`optimizer.loss_scale()` was right for the experimental class up to TensorFlow 2.3. Since then `loss_scale` is a
number (`TypeError: 'EagerTensor' object is not callable`). In Keras 3 its name is `dynamic_scale`, and it
exists only once the optimizer is built: `fit()` does that in the first `apply`, so that neither a `train_step` above
that line nor a callback's `on_train_begin` can read it (Keras 3.15; under a strategy `fit()` builds it before).
`get_scaled_loss` takes one tensor: a list or tuple of losses raises `AttributeError: 'list' object has no attribute
'dtype'` (Keras 3's `scale_loss` takes a list, but no dict).

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
print(optimizer.dynamic_scale)
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
print(optimizer.initial_scale)
```

## Versions
All, each with its own names: Keras 2 has `loss_scale`, a number; Keras 3 has `dynamic_scale`, a variable.

## Where users met it
aws-samples/deep-learning-models#44, keisen/tf-keras-vis#39.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.knowledge.wrapper_api import APPLYING, ONCE_BUILT, SCALING, WRAPPER_LACKS
from mpdoctor.program.events import Call, Read
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Api, Attribute, Collection, is_api, options
from mpdoctor.semantics.source.edits.attributes import attribute_renamed
from mpdoctor.semantics.source.edits.expressions import put_around, replaced, safe_fix
from mpdoctor.semantics.source.loops.scaling import scales, scales_in_keras2
from mpdoctor.semantics.source.optimizers.unbuilt_wrappers import is_unbuilt
from mpdoctor.semantics.source.optimizers.wrappers import wrapped
from mpdoctor.semantics.source.programs.attribute_access import reads
from mpdoctor.semantics.source.programs.backends import may_run_on_another_backend
from mpdoctor.semantics.source.programs.running_functions import functions_around, surrounding
from mpdoctor.semantics.source.texts.written import argument_at, call_of, text_of
from mpdoctor.semantics.wording import place_of, receiver_text, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
EXPLAINS = {"MP301": "line"}
NUMBERS = ("loss_scale", "dynamic_scale", "initial_scale", "dynamic_growth_steps", "dynamic_counter", "step_counter")
BUILDING = ("apply", "apply_gradients", "minimize", "build", "stateless_apply")
BEGINNING = ("on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_batch_begin")
TRAINING = (*FITTING, "train_step", "make_train_function")
STRATEGIES = ("tensorflow.distribute.", "keras.distribution.")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _called(facts)
    yield from _called_by_another_name(facts)
    if facts.keras.is_keras3:
        yield from _not_built(facts)
        yield from _before_the_first_update(facts)
        yield from _before_the_first_step(facts)
    yield from _several_losses(facts)


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    said = failure.said_by_library
    scaling = failure.frames[-1].function if failure.inside == "loss scaling" and failure.frames else ""
    several = re.search(
        r"'(tuple|list|dict)' object has no attribute 'dtype'|can't multiply (sequence) by non-int", said
    )
    unbuilt = re.search(WRAPPER_LACKS, said) if failure.keras is not None and failure.keras.is_keras3 else None
    if several is not None and scaling in SCALING:
        yield Finding(
            f"`{scaling}` takes one loss, and gets a {several[1] or several[2]} of losses.",
            f"Scale each of them, `[optimizer.{scaling}(loss) for loss in losses]`, or their sum.",
            failure.location,
        )
    elif "EagerTensor' object is not callable" in said and ".loss_scale()" in failure.failing_line:
        yield Finding("`loss_scale` is a number, not a method.", "Write it without the parentheses.", failure.location)
    elif unbuilt is not None and unbuilt[1] in ONCE_BUILT:
        yield Finding(
            f"`{unbuilt[1]}` exists only once the optimizer is built, and nothing has built it yet.",
            "Call `optimizer.build(model.trainable_variables)` first. The scale's first value is "
            "`optimizer.initial_scale`.",
            failure.location,
        )


def _called(facts: SourceFacts) -> Iterator[Finding]:
    for read in reads(facts, NUMBERS):
        if read.context.guarded or not read.is_called:
            continue
        if not _may_be_wrapper(facts, read) and not scales_in_keras2(facts, read.of):
            continue
        of = _of(facts, read)
        right = "dynamic_scale" if facts.keras.is_keras3 and read.name == "loss_scale" else read.name
        problem = "does not exist in Keras 3" if right != read.name else "is a number, not a method"
        yield Finding(
            f"`{of}.{read.name}()` raises: `{read.name}` {problem}.",
            f"Write `{of}.{right}`, without the parentheses.",
            read.location,
            fix=_uncalled(facts, read, right),
        )


def _may_be_wrapper(facts: SourceFacts, read: Read) -> bool:
    """Whether it is read of a wrapper, on some path at least: on the others it is an optimizer that has no such number
    at all, unless it is of a class of the program's own."""
    if any(class_of(option) is not None for option in options(read.of)):
        return bool(wrapped(facts, read.of, read))
    return bool(wrapped(facts, read.of, read, certain=False))


def _called_by_another_name(facts: SourceFacts) -> Iterator[Finding]:
    """`scale = optimizer.loss_scale`, and later `scale()`, where the program does not ask whether it can be called."""
    for call in facts.method_calls(*NUMBERS):
        number = call.callee
        is_written = (call.location.line, call.location.column) == (number.location.line, number.location.column)
        if is_written or not isinstance(number, Attribute) or call.context.guarded or _asks_first(call):
            continue
        exists = not (facts.keras.is_keras3 and number.name == "loss_scale")
        if exists and wrapped(facts, number.of, call):
            read = text_at(facts, number.location)
            yield Finding(
                f"This calls `{read}` ({place_of(facts, number.location, call.location)}), which is a number, not a "
                "method: it raises.",
                "Use the number as it is, without the parentheses.",
                call.location,
                fix=_without_parentheses(facts, call),
            )


def _asks_first(call: Call) -> bool:
    return any(isinstance(test, Call) and is_api(test.callee, "builtins.callable") for test in call.context.asked())


def _without_parentheses(facts: SourceFacts, call: Call) -> Fix | None:
    text = text_of(facts, call.location)
    if text is None or not text.endswith("()") or not text[:-2].isidentifier():
        return None
    return safe_fix("Leave out the parentheses", replaced(facts, call.location, text[:-2]))


def _uncalled(facts: SourceFacts, read: Read, name: str) -> Fix | None:
    call = call_of(facts, read.location)
    of = text_of(facts, read.location)
    if call is None or of is None or not of.endswith(f".{read.name}"):
        return None
    return safe_fix("Leave out the parentheses", replaced(facts, call, f"{of[: -len(read.name)]}{name}"))


def _each_scaled(facts: SourceFacts, call: Call) -> Fix | None:
    losses = argument_at(facts, call.location, 0, "loss")
    around = put_around(facts, call.location, "[", f" for loss in {text_of(facts, losses)}]") if losses else None
    return safe_fix("Scale each", around, replaced(facts, losses, "loss")) if losses else None


def _not_built(facts: SourceFacts) -> Iterator[Finding]:
    for read in reads(facts, ONCE_BUILT):
        if read.context.guarded or read.is_called or not is_unbuilt(facts, read):
            continue
        of = _of(facts, read)
        yield Finding(
            f"`{of}.{read.name}` raises AttributeError here: it exists only once the optimizer is built, and nothing "
            "has built it yet.",
            f"Call `{of}.build(model.trainable_variables)` first. The scale's first value is `{of}.initial_scale`."
            if read.name == "dynamic_scale"
            else f"Call `{of}.build(model.trainable_variables)` first.",
            read.location,
            fix=safe_fix("Read `initial_scale`", attribute_renamed(facts, read, "initial_scale"))
            if read.name == "dynamic_scale"
            else None,
        )


def _before_the_first_update(facts: SourceFacts) -> Iterator[Finding]:
    """`self.optimizer.dynamic_scale` in a model's `train_step`, above the call that applies: fit() builds no optimizer
    before its first step, unless a strategy distributes it (Keras 3.15)."""
    trained = [read for read in reads(facts, ONCE_BUILT) if _is_of_models_optimizer(facts, read) and not read.is_called]
    if not trained or _may_build_elsewhere(facts):
        return
    for read in trained:
        before = (call for call in facts.method_calls(*BUILDING) if call.order < read.order)
        if not any(call.context.run == read.context.run for call in before):
            yield Finding(
                f"`{read.name}` exists only once the optimizer is built, which the first `apply` does: this line "
                "stands above it, and raises AttributeError in the first step.",
                "Read it below the call that applies the gradients, or build the optimizer before fit(): "
                "`model.optimizer.build(model.trainable_variables)`.",
                read.location,
            )


def _before_the_first_step(facts: SourceFacts) -> Iterator[Finding]:
    """`self.model.optimizer.dynamic_scale` in a callback's `on_train_begin`, where the program trains only once and by
    fit(), which builds no optimizer before its first step (Keras 3.15, also after evaluate() and predict())."""
    begun = [read for read in reads(facts, ONCE_BUILT) if _is_read_at_begin(facts, read) and not read.is_called]
    if not begun or _trains_before(facts) or _may_build_elsewhere(facts) or may_run_on_another_backend(facts):
        return
    for read in begun:
        if wrapped(facts, read.of, read):
            yield Finding(
                f"`{read.name}` exists only once the optimizer is built, which fit() does in its first step: this line "
                "runs before it, and raises AttributeError.",
                f"Read `{_of(facts, read)}.initial_scale` here, or build the optimizer before fit(): "
                "`model.optimizer.build(model.trainable_variables)`.",
                read.location,
                fix=safe_fix("Read `initial_scale`", attribute_renamed(facts, read, "initial_scale"))
                if read.name == "dynamic_scale"
                else None,
            )


def _is_read_at_begin(facts: SourceFacts, read: Read) -> bool:
    """Whether a callback's `on_train_begin` or the like reads it in every case, or a function that this method
    calls."""
    context = read.context
    running = (context.function, *functions_around(facts, context))
    methods = (function for function in running if function is not None and function.name in BEGINNING)
    of_callback = any(method.owner is not None and method.owner.kind == "callback" for method in methods)
    return of_callback and not (context.branches or context.guarded or context.swallowed)


def _trains_before(facts: SourceFacts) -> bool:
    """Whether the program may have trained before the fit() that calls a callback: it trains more than once."""
    return len(list(facts.method_calls(*TRAINING))) > 1 or any(True for _ in facts.method_calls(*APPLYING, "minimize"))


def _is_of_models_optimizer(facts: SourceFacts, read: Read) -> bool:
    """Whether a step of `train_step` reads it in every case, of the optimizer that `compile()` was given."""
    of, context = read.of, read.context
    if not (isinstance(of, Attribute) and of.name == "optimizer" and isinstance(of.of, Instance)):
        return False
    running = (context.function, *functions_around(facts, context))
    around = (outer for function in running for outer in surrounding(facts, function))
    in_step = any(function.name == "train_step" and function.owner is not None for function in around)
    return of.of.of.kind == "model" and in_step and not (context.branches or context.guarded or context.swallowed)


def _may_build_elsewhere(facts: SourceFacts) -> bool:
    """Whether the program builds an optimizer itself, loads one, or distributes the training."""
    builds = (
        call for call in facts.method_calls("build", "build_optimizer") if "optimizer" in receiver_text(facts, call)
    )
    loads = facts.method_calls("load_model", "load_weights", "restore", "load_own_variables")
    names = (call.callee.name for call in facts.library_calls if isinstance(call.callee, Api))
    is_distributed = any(name.startswith(STRATEGIES) for name in names)
    return any(True for _ in builds) or any(True for _ in loads) or is_distributed


def _several_losses(facts: SourceFacts) -> Iterator[Finding]:
    refused = ("dict",) if facts.keras.is_keras3 else ("list", "tuple", "dict", "set")
    for call in facts.method_calls(*SCALING):
        losses = options(call.argument(0, "loss"))
        if not losses or not all(isinstance(loss, Collection) and loss.kind in refused for loss in losses):
            continue
        if scales(facts, call):
            kind = losses[0].kind if isinstance(losses[0], Collection) else ""
            yield Finding(
                f"`{call.method}` takes one loss, and gets a {kind} of losses: this line raises.",
                f"Scale each of them, `[optimizer.{call.method}(loss) for loss in losses]`, or their sum.",
                call.location,
                fix=_each_scaled(facts, call) if kind in ("list", "tuple") else None,
            )


def _of(facts: SourceFacts, read: Read) -> str:
    return text_at(facts, read.location).rpartition("." + read.name)[0] or "optimizer"
