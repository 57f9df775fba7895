"""Which values of a program are LossScaleOptimizers, and which optimizer each of them holds.

A wrapper is made by hand, or by `compile()` of a model whose own policy is mixed_float16: then
`model.optimizer` is one, `self.optimizer` in that model's methods and `self.model.optimizer` in callbacks
too. Only what is certain is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.wrapper_delegation import BROKEN, CLASSIC, KERAS3, MISSING, NEW, OF_ANOTHER_WRAPPER
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Event
from mpdoctor.program.instances import belongs_to, class_of, is_of_super
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, Instance
from mpdoctor.program.values import Api, Attribute, Known, Unknown, Value, is_api, known, options
from mpdoctor.semantics.source.layers.call_dtypes import dtype_given
from mpdoctor.semantics.source.programs.models import is_model

WRAPPER = "keras.mixed_precision.LossScaleOptimizer"
OURS = "mpdoctor.training.LossScaleOptimizer"  # has every attribute of the optimizer inside, and asks all replicas
NEVER_EXISTED = "tensorflow.mixed_precision.LossScaleOptimizer"  # MP101; what is given to it is judged all the same


def wrapper_calls(facts: SourceFacts) -> Iterator[Call]:
    """The calls that make a wrapper, under its right name or the one that never existed."""
    return facts.calls_of(WRAPPER, NEVER_EXISTED)


def inner_argument(call: Call) -> Value | None:
    """The optimizer that a call wraps (`optimizer` is the argument's name up to TensorFlow 2.3)."""
    return call.argument(0, "inner_optimizer") or call.keyword("optimizer")


def wrapped(facts: SourceFacts, value: Value, event: Event, certain: bool = True) -> tuple[Value, ...]:
    """The optimizers that a value may hold inside if it is certainly a wrapper, else (). An Unknown stands for an
    optimizer about which nothing is known. Without `certain` it is enough that it is a wrapper on some path, as
    behind `if args.amp:`."""
    inner: list[Value] = []
    for option in options(value):
        inside = _wrapped_by_hand(option, facts.keras) or _wrapped_by_compile(facts, option, event, certain)
        if certain and not inside:
            return ()
        inner.extend(inside)
    return tuple(inner)


def wrappings(facts: SourceFacts) -> Iterator[tuple[Call, tuple[Value, ...]]]:
    """Every call that certainly puts a wrapper around an optimizer, with what may be inside: the wrapper made by hand,
    and `compile()` of a model whose policy is mixed_float16."""
    for call in wrapper_calls(facts):
        if not call.context.guarded:
            yield call, options(inner_argument(call))
    for call in facts.method_calls("compile"):
        if not call.context.guarded and compile_wraps(facts, call):
            yield call, options(call.argument(0, "optimizer"))


def compile_wraps(facts: SourceFacts, call: Call) -> bool:
    """Whether a `compile()` certainly wraps the optimizer that it is given, which is no wrapper yet."""
    behind = model_behind_own_compile(call)
    models = options(call.receiver)
    if behind is None and (not models or any(not is_model(model) or _has_own_compile(model) for model in models)):
        return False
    inside = _wrapped_in_compile(facts, call, behind or call.receiver, certain=True)
    given = options(call.argument(0, "optimizer"))
    return bool(inside) and not any(wrapped(facts, optimizer, call, certain=False) for optimizer in given)


def model_behind_own_compile(call: Call) -> Instance | None:
    """The model that `super().compile(…)` compiles in a class that has a `compile` of its own."""
    owner = call.context.owner
    if owner is None or owner.kind != "model" or not is_of_super(call):
        return None
    return Instance(call.location, of=owner)


def compile_may_wrap(facts: SourceFacts, call: Call) -> bool:
    """Whether a `compile()` wraps the optimizer that it is given under one of the policies that the program may set."""
    models = options(call.receiver)
    is_sure = bool(models) and all(is_model(model) and not _has_own_compile(model) for model in models)
    return is_sure and bool(_wrapped_in_compile(facts, call, call.receiver, certain=False))


def starting_scale(wrapper: Value | None) -> float | None:
    """What a wrapper's loss scale starts from: 32768 unless the program gives it another number, which is None where
    that is not known, or may be several."""
    scales: set[float | None] = set()
    for made in options(wrapper):
        given = options(made.keyword("initial_scale") if isinstance(made, Call) else None)
        numbers = {float(number) for number in map(known, given) if isinstance(number, (int, float))}
        scales |= numbers or {None if given else DEFAULT_SCALE}
    return scales.pop() if len(scales) == 1 else None if scales else DEFAULT_SCALE


def starting_scale_in_words(wrapper: Value | None) -> str:
    scale = starting_scale(wrapper)
    return "`initial_scale`" if scale is None else f"{scale:.15g}"


def is_fixed(wrapper: Value | None) -> bool:
    """Whether a wrapper of Keras 2 certainly keeps the loss scale that it is given: `dynamic=False`."""
    made = options(wrapper)
    return bool(made) and all(
        isinstance(call, Call) and known(call.argument(1, "dynamic")) is False and not call.open for call in made
    )


def kinds_of_wrapper(inner: Value, keras: Keras) -> tuple[str, ...]:
    """Which of the wrappers in `delegation` it may be that holds this optimizer."""
    if keras.is_keras3:
        return (KERAS3,)
    own = class_of(inner)
    names = [base.name for base in own.library_bases()] if own else []
    if isinstance(inner, Call) and isinstance(inner.callee, Api):
        names.append(inner.callee.name)
    if any(".legacy." in name for name in names):
        return (CLASSIC,)
    if keras.package == "tf.keras":
        release = keras.tensorflow_release
        is_experimental = any(".experimental." in name for name in names)
        if is_experimental and release >= (2, 10):  # measured in 2.10 and 2.15
            return (NEW,)
        if not release or is_experimental:
            return (NEW, CLASSIC)
        if release < (2, 11):
            return (CLASSIC,)
    is_new = bool(names) or isinstance(known(inner), str)
    return (NEW,) if is_new else (NEW, CLASSIC)


def lacks(name: str, inside: tuple[Value, ...], keras: Keras, called: bool = False) -> bool:
    """Whether the wrapper of every one of these optimizers raises AttributeError for this name, or, `called`, for a
    call of it."""
    return bool(inside) and all(
        name in MISSING[kind] or name in OF_ANOTHER_WRAPPER[kind] or (called and name in BROKEN[kind])
        for optimizer in inside
        for kind in kinds_of_wrapper(optimizer, keras)
    )


def compiles_of(facts: SourceFacts, model: Value) -> list[Call]:
    """The `compile` calls of a model; for `self` those of its class's instances, for a callback's `self.model`
    all of them.

    [] where a class has a `compile` of its own, which may put optimizers anywhere."""
    known_ones = _compiles_by_model(facts)
    if id(model) not in known_ones:
        known_ones[id(model)] = model, _compiles_of(facts, model)
    return known_ones[id(model)][1]


@lru_cache(maxsize=1)
def _compiles_by_model(facts: SourceFacts) -> dict[int, tuple[Value, list[Call]]]:
    """Cache of one program: the compile calls of each model that was asked about, by its id."""
    return {}


def _compiles_of(facts: SourceFacts, model: Value) -> list[Call]:
    """The `compile()` calls of a model; [] where its class has a `compile()` of its own."""
    compiles = []
    own = class_of(model)
    for call in facts.method_calls("compile"):
        receiver = call.receiver
        same = any(option is model for option in options(receiver))
        if own is not None and not same:
            same = any(_is_trained_as(class_of(option), own) for option in options(receiver))
        if same or _is_model_of_callback(model):
            if any(_has_own_compile(option) for option in options(receiver)):
                return []
            compiles.append(call)
    return compiles


def _is_trained_as(made: ClassFacts | None, own: ClassFacts) -> bool:
    """Whether an instance of `made` is one of `own`, or of a class below it that leaves its `train_step` as it is."""
    if made is None or made is own:
        return made is own
    below = any(cls is own for cls in made.lineage())
    return below and made.find_method("train_step") is own.find_method("train_step")


def policies_of_model(facts: SourceFacts, model: Value) -> frozenset[PolicyName]:
    """The dtype policies that a model may have: the global one when it was made, unless it was given another."""
    return frozenset(name for option in options(model) for name in _policies_of_one(facts, option))


def _wrapped_by_hand(value: Value, keras: Keras) -> tuple[Value, ...]:
    if not isinstance(value, Call) or not isinstance(value.callee, Api) or not value.callee.is_(WRAPPER):
        return ()
    if keras.is_keras3 and value.callee.root == "tf_keras":
        return ()  # a Keras 2 wrapper in a program that is judged as Keras 3
    return options(inner_argument(value)) or (Unknown(value.location),)


def _wrapped_by_compile(facts: SourceFacts, value: Value, event: Event, certain: bool) -> tuple[Value, ...]:
    if not isinstance(value, Attribute) or value.name != "optimizer":
        return ()
    optimizers: list[Value] = []
    for model in options(value.of):
        is_of_callback = _is_model_of_callback(model) and _may_be_used(facts, model)
        if not is_model(model) and not _is_mixed_into_models(facts, model) and not is_of_callback:
            return ()
        calls = compiles_of(facts, model)
        behind = [] if calls else _compiles_behind(facts, model)
        calls = calls or behind
        if (in_step := _is_wrapped_in_step(facts, model, event)) is not None:
            return (Unknown(value.location),) if in_step else ()
        if isinstance(model, Call):
            calls = [call for call in calls if call.order < event.order]
        for call in calls:
            inside = _wrapped_in_compile(facts, call, model if behind else call.receiver, certain)
            if certain and not inside:
                return ()
            optimizers.extend(inside)
    return tuple(optimizers)


def _is_wrapped_in_step(facts: SourceFacts, model: Value, event: Event) -> bool | None:
    """What `is_wrapped_in_step` says of a model's `train_step`; None elsewhere."""
    function = event.context.function
    if not isinstance(model, Instance) or function is None or function.name != "train_step":
        return None
    from mpdoctor.semantics.source.optimizers.models_made_elsewhere import is_wrapped_in_step  # few have a step

    return is_wrapped_in_step(facts, model.of)


def _compiles_behind(facts: SourceFacts, model: Value) -> list[Call]:
    """The `super().compile(…)` of a class that has a `compile` of its own."""
    own = class_of(model)
    if own is None or own.find_method("compile") is None:
        return []
    compiles = (call for call in facts.method_calls("compile") if is_of_super(call))
    return [call for call in compiles if any(cls is call.context.owner for cls in own.lineage())]


def _wrapped_in_compile(facts: SourceFacts, call: Call, model: Value | None, certain: bool) -> tuple[Value, ...]:
    given = call.argument(0, "optimizer")
    if given is None and call.open:
        return ()
    if any(isinstance(option, Call) and is_api(option.callee, OURS) for option in options(given)):
        return ()  # compile() puts nothing around it
    by_hand = [_wrapped_by_hand(option, facts.keras) for option in options(given)]
    if by_hand and all(by_hand):
        return tuple(inner for inside in by_hand for inner in inside)
    if any(by_hand) or known(call.keyword("auto_scale_loss")) is False or model is None:
        return ()
    policies = policies_of_model(facts, model)
    if "mixed_float16" not in policies or (certain and len(policies) > 1):
        return ()
    return options(given) or (Known(call.location, "rmsprop"),)


def _policies_of_one(facts: SourceFacts, model: Value) -> Iterator[PolicyName]:
    if isinstance(model, Instance):
        for call in facts.calls:
            if isinstance(call.callee, Defined) and call.callee.of is model.of:
                yield from _policies_of_one(facts, call)
        return
    if not isinstance(model, Call):
        return
    own = class_of(model)
    given = dtype_given(facts, model) or (own.base_arguments.get("dtype") if own else None)
    if given is not None and known(given) is not None:
        yield from policies_named(given) or (UNSURE,)
    else:
        yield from facts.policies_at(model)


def _is_mixed_into_models(facts: SourceFacts, value: Value) -> bool:
    """Whether it is `self` of a class without a base that the program's models have beside keras.Model."""
    return isinstance(value, Instance) and belongs_to(value.of, ("model",), facts.classes)


def _is_model_of_callback(value: Value) -> bool:
    if not isinstance(value, Attribute) or value.name not in ("model", "_model"):
        return False
    owner = class_of(value.of)
    return owner is not None and owner.kind == "callback"


def _may_be_used(facts: SourceFacts, model: Value) -> bool:
    """Whether the program makes the callback whose `self.model` it is, or has it in its own file: of those that an
    imported file defines a program needs some."""
    owner = class_of(model.of) if isinstance(model, Attribute) else None
    return owner is not None and (owner.location.path == facts.path or bool(facts.makings_of(owner)))


def _has_own_compile(model: Value) -> bool:
    own = class_of(model)
    return own is not None and own.find_method("compile") is not None
