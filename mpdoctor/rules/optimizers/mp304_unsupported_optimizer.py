"""A LossScaleOptimizer wraps something that is no optimizer of its Keras, or lacks a method that Keras calls.

## Why it matters
Keras 2 refuses at once: `TypeError: "inner_optimizer" must be an instance of tf.keras.optimizers.Optimizer`.
Keras 3 does not check. A string raises `AttributeError: 'str' object has no attribute 'loss_scale_factor'`; a
class, a TF1 optimizer or an unfinished custom optimizer is accepted and fails at its first step, with an error
from deep inside Keras.

compile() under mixed_float16 wraps its optimizer. A class, or an optimizer of another package or of TensorFlow
1, raises `ValueError: Could not interpret optimizer identifier` or the TypeError above, and an unfinished
optimizer raises NotImplementedError in fit() (Keras 3.15, tf_keras 2.21, TensorFlow 2.15, 2.10 and 2.4).

In Keras 2 the wrapper passes keywords to your optimizer's `apply_gradients`: `experimental_aggregate_gradients`
up to TensorFlow 2.10 and for a legacy optimizer, `skip_gradients_aggregation` after that. If your method takes
neither the keyword nor `**kwargs`, it raises `TypeError: … got an unexpected keyword argument`.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer("adam")
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
```

## Versions
All. A custom optimizer needs `update_step` in Keras 3, tf_keras and TensorFlow 2.11 to 2.15, and
`_resource_apply_dense` if it derives from `optimizers.legacy.Optimizer`, and in TensorFlow 2.4 to 2.10.

## Where users met it
keras-team/keras#16560, google/automl#1154, NVIDIA-Merlin/HugeCTR#462.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.command_line import without_command_line
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Api, Known, Value
from mpdoctor.semantics.live.errors.optimizer_errors import described_object, refusal_of_constructor, step_method_lacked
from mpdoctor.semantics.source.edits.expressions import put_around, put_behind, safe_fix
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.optimizers.optimizer_requirements import keyword_refused, lacked_by_class, package_of
from mpdoctor.semantics.source.optimizers.wrappers import compile_wraps, inner_argument, kinds_of_wrapper, wrapper_calls
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.wording import listed, place_of

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
EXPLAINS = {"MP309": "line"}
CONFIRMED_LIVE = True
MAKE = "Make the optimizer first: `LossScaleOptimizer({})`."
STEPS = ("_learning_rate", "update_step", "_resource_apply_dense", "_resource_apply_sparse")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call, inner, holder in _wrapped_optimizers(facts):
        problems = [_problem(facts, option, call, holder) for option in without_command_line(inner)]
        if problems and all(problems) and problems[0] is not None:
            message, help = problems[0]
            yield Finding(message, help, call.location, fix=_fix(facts, call))


def _fix(facts: SourceFacts, call: Call) -> Fix | None:
    """The edit that makes an optimizer from the given name or class."""
    given, place = inner_argument(call), argument_at(facts, call.location, 0, "inner_optimizer", "optimizer")
    if place is None:
        return None
    if isinstance(given, Known) and isinstance(given.value, str):
        get = keras_name(facts, "optimizers.get")
        around = put_around(facts, place, f"{get}(", ")") if get is not None else None
        return safe_fix("Make the optimizer first", around)
    is_class = isinstance(given, Api) and given.name.rpartition(".")[2][:1].isupper()
    return safe_fix("Make the optimizer first", put_behind(facts, place, "()")) if is_class else None


def _wrapped_optimizers(facts: SourceFacts) -> Iterator[tuple[Call, Value | None, Value | None]]:
    """Each call that makes a LossScaleOptimizer, and each compile() that certainly does so, with the value it wraps and
    the object whose Keras has to match."""
    for call in wrapper_calls(facts):
        if not call.context.guarded:
            yield call, inner_argument(call), call.callee
    for call in facts.method_calls("compile"):
        if not call.context.guarded and compile_wraps(facts, call):
            model = call.receiver
            yield call, call.argument(0, "optimizer"), model.callee if isinstance(model, Call) else None


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if model.wrapper is None or not model.optimizer:
        return
    inner = model.optimizer[-1]
    if inner.is_wrapper:
        return
    if not inner.is_keras_optimizer:
        yield Finding(
            f"The LossScaleOptimizer wraps a {inner.module}.{inner.class_name}, no optimizer of {model.keras}.",
            "Wrap an optimizer of the Keras that trains the model, such as `keras.optimizers.Adam()`.",
            model.wrapper.made_at or inner.made_at,
        )
    elif inner.own_class and inner.missing:
        yield Finding(
            _lacking(inner.class_name, list(inner.missing), model.keras),
            f"Define {listed([f'`{name}`' for name in inner.missing])} in `{inner.class_name}`.",
            model.wrapper.made_at or inner.made_at or inner.class_location,
            evidence={"missing": list(inner.missing)},
        )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    """Values that cannot be wrapped, and custom optimizers that fail in their constructor or at their first step."""
    yield from _nothing_to_wrap(failure)
    step = step_method_lacked(failure)
    if step in STEPS:
        yield Finding(
            f"The custom optimizer lacks `{step}`, which Keras calls at every step.",
            "Set it in `__init__`: `self._learning_rate = self._build_learning_rate(learning_rate)`."
            if step == "_learning_rate"
            else f"Define `{step}` in its class.",
            failure.location,
        )
    problem = refusal_of_constructor(failure) if failure.exception == "TypeError" else None
    if problem is not None:
        in_keras3 = failure.keras is not None and failure.keras.is_keras3
        passed_on = "learning_rate=learning_rate, name=name" if in_keras3 else "name=name"
        yield Finding(
            f"The custom optimizer cannot be made: {problem}.",
            f"Give the class an `__init__` that calls `super().__init__({passed_on})`, and an `update_step`.",
            failure.location,
        )


def _nothing_to_wrap(failure: FailureFacts) -> Iterator[Finding]:
    """Failures where a LossScaleOptimizer is given something that is no optimizer of its Keras."""
    said, keras = failure.said_by_library, failure.keras or Keras()
    by_wrapper = said if failure.inside == "loss scaling" else ""
    wrapped = re.search(r'"inner_optimizer" must be an instance of .* but got: (.+?)\.?(?:\n|$)', said)
    wrapped = wrapped or re.search(r"'(\w+)' object has no attribute 'loss_scale_factor'", by_wrapper)
    if wrapped is not None:
        yield Finding(
            f"LossScaleOptimizer needs an optimizer of {keras.package}, and is given {described_object(wrapped[1])}.",
            "Make the optimizer first, of the same Keras: `LossScaleOptimizer(keras.optimizers.Adam())`.",
            failure.location,
        )
    alien = re.search(r"'(\w+)' object has no attribute '(build|apply|variables|stateless_apply)'", by_wrapper)
    if alien is not None and keras.is_keras3:  # which accepts any object and fails at the first step
        yield Finding(
            f"LossScaleOptimizer wraps a `{alien[1]}`, which has no `{alien[2]}`: it is no optimizer of Keras 3.",
            "Wrap an optimizer of the Keras that trains the model: `LossScaleOptimizer(keras.optimizers.Adam())`.",
            failure.location,
        )


def _problem(facts: SourceFacts, inner: Value, call: Call, holder: Value | None) -> tuple[str, str] | None:
    """What is wrong with the wrapped value, and the change to make; None if it is right or not known."""
    by_compile = call.method == "compile"
    if isinstance(inner, Known):
        return None if by_compile else _problem_of_constant(inner.value)  # compile() makes an optimizer of a name
    if isinstance(inner, Api):
        last = inner.name.rpartition(".")[2]
        is_class = ".optimizers." in inner.name and last[:1].isupper()
        return _problem_of_bare_class(last, by_compile) if is_class else None
    own = class_of(inner)
    if own is not None:
        return _problem_of_own(facts, own, inner, call)
    if isinstance(inner, Defined) and isinstance(inner.of, ClassFacts) and inner.of.kind == "optimizer":
        return _problem_of_bare_class(inner.of.name, by_compile)
    if isinstance(inner, Call) and isinstance(inner.callee, Api):
        return _problem_of_library_optimizer(inner.callee, holder, by_compile, facts.keras)
    return None


def _problem_of_own(facts: SourceFacts, own: ClassFacts, inner: Value, call: Call) -> tuple[str, str] | None:
    """What is wrong with an optimizer of a class of the user's own."""
    place = place_of(facts, own.location, call.location)
    lacking = lacked_by_class(own, facts.keras)
    if lacking:
        return _problem_of_class(own, place, lacking, facts.keras)
    refused = keyword_refused(own, kinds_of_wrapper(inner, facts.keras))
    return _problem_of_signature(own, place, refused) if refused else None


def _problem_of_constant(value: object) -> tuple[str, str]:
    given = f"the string {value!r}" if isinstance(value, str) else repr(value)
    is_named = isinstance(value, str) and value not in ("adam", "Adam")
    optimizer = f'keras.optimizers.get("{value}")' if is_named else "keras.optimizers.Adam()"
    return (
        f"LossScaleOptimizer needs an optimizer, and is given {given}; this line raises.",
        MAKE.format(optimizer),
    )


def _problem_of_bare_class(name: str, by_compile: bool) -> tuple[str, str]:
    if by_compile:
        return (
            f"compile() is given the class {name}, not an optimizer made from it; this line raises.",
            f"Make the optimizer first: `compile(optimizer={name}(), …)`.",
        )
    return f"LossScaleOptimizer is given the class {name}, not an optimizer made from it.", MAKE.format(f"{name}()")


def _problem_of_class(own: ClassFacts, place: str, lacking: list[str], keras: Keras) -> tuple[str, str]:
    if lacking == ["Optimizer"]:
        return (
            f"{own.name} is no Keras optimizer: it does not derive from `keras.optimizers.Optimizer`.",
            f"Write `class {own.name}(keras.optimizers.Optimizer)`, with an `update_step`.",
        )
    wanted = listed([f"`{name}`" for name in lacking])
    if lacking == ["update_step"] and not _takes_learning_rate(own, keras):
        return _lacking(own.name, lacking, keras), (
            f"Give `{own.name}` ({place}) an `__init__` that takes `learning_rate` and calls "
            f"`{_constructor(keras)}`, and define {wanted}."
        )
    return _lacking(own.name, lacking, keras), f"Define {wanted} in `{own.name}` ({place})."


def _problem_of_signature(own: ClassFacts, place: str, refused: str) -> tuple[str, str]:
    return (
        f"The LossScaleOptimizer calls `{own.name}.apply_gradients` with `{refused}=…`, which it does not take: the "
        "first step raises TypeError.",
        "Let it take any keyword and pass it on: `def apply_gradients(self, grads_and_vars, **kwargs)` in "
        f"`{own.name}` ({place}).",
    )


def _takes_learning_rate(own: ClassFacts, keras: Keras) -> bool:
    """Whether its constructor has a learning rate to pass on: the base class of Keras 3 requires one, that of Keras 2
    takes none."""
    constructor = own.find_method("__init__")
    if constructor is None:
        return keras.is_keras3
    return own.base_argument("learning_rate") is not None or any(
        parameter.lstrip("*") in ("learning_rate", "lr", "args", "kwargs") for parameter in constructor.parameters
    )


def _constructor(keras: Keras) -> str:
    if keras.is_keras3:
        return "super().__init__(learning_rate=learning_rate)"
    return "super().__init__(name); self._learning_rate = self._build_learning_rate(learning_rate)"


def _lacking(name: str, lacking: list[str], keras: Keras) -> str:
    wanted = listed([f"`{name}`" for name in lacking])
    return (
        f"{name} lacks {wanted}, which {keras.package if keras.package != 'keras' else 'Keras 3'} calls at every step."
    )


def _problem_of_library_optimizer(
    callee: Api, holder: Value | None, by_compile: bool, keras: Keras
) -> tuple[str, str] | None:
    name = callee.name
    if name.startswith(("tensorflow.compat.v1.train.", "tensorflow.train.")) and name.endswith("Optimizer"):
        problem = f"{name.rpartition('.')[2]} is an optimizer of TensorFlow 1"
    elif name.startswith("torch.optim."):
        problem = f"{name} is an optimizer of PyTorch"
    elif name.startswith("tensorflow_addons.optimizers.") and keras.is_keras3:
        problem = f"{name.rpartition('.')[2]} of TensorFlow Addons is written for Keras 2"
    elif name.startswith("keras.optimizers.") and isinstance(holder, Api):
        mine, theirs = package_of(holder, keras), package_of(callee, keras)
        if mine == theirs or not mine or not theirs:
            return None
        problem = f"{name.rpartition('.')[2]} comes from {theirs}, the {holder.name.rpartition('.')[2]} from {mine}"
    else:
        return None
    then = ", and compile() puts a LossScaleOptimizer around it: it cannot be wrapped, and this line raises."
    return (
        f"{problem}{then}" if by_compile else f"{problem}: a LossScaleOptimizer cannot wrap it.",
        "Use the optimizer of the Keras that trains the model, from the same package.",
    )
