"""Whether the code of a layer's `call()` computes in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.program.context import Branch, Context
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.policy_settings import policies_set_by
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Instance, Parameter
from mpdoctor.program.values import Api, Attribute, Value, known, options, walk
from mpdoctor.semantics.source.layers.given_policies import policies_given
from mpdoctor.semantics.source.layers.later_inputs import lambda_layers
from mpdoctor.semantics.source.programs.running_functions import functions_around, runs_as_added_loss, surrounding

FLOAT16 = (("float16",), ("mixed_float16",))
# Methods of a layer that do not run when it is called.
NOT_CALLED = frozenset(
    [
        "__init__",
        "__new__",
        "build",
        "setup",
        "get_config",
        "from_config",
        "compute_output_shape",
        "compute_output_spec",
        "get_initial_state",
        "reset_states",
        "reset_state",
        "add_weight",
        "compile",
        "fit",
        "train_step",
        "test_step",
        "predict_step",
        "evaluate",
        "predict",
        "summary",
        "save",
        "build_from_config",
        "get_build_config",
        "save_own_variables",
        "load_own_variables",
        "adapt",
    ]
)

TENSOR_LIBRARIES = ("tensorflow.", "keras.", "tf_keras.", "numpy.", "jax.", "torch.")
ASKING_FOR_DTYPES = ("result_type", "promote_types", "can_cast", "finfo", "iinfo")
_MOST_REMEMBERED = 5000
_about_dtypes: dict[Value, bool] = {}  # what `_asked_about` finds for a value


def policies_of_instances(facts: SourceFacts, owner: ClassFacts, inside: tuple[ClassFacts, ...] = ()) -> frozenset[str]:
    """The policies that this program's layers of a class may have: their `dtype`, else the global policy where they are
    made. Of a class that the program never makes itself: float32 where the project makes it in float32 only, else the
    dtype that the class itself fixes, else the 16-bit policies that the program or its importers set, else
    "mixed_float16", since the program shows mixed precision. `inside`: the classes that were asked about on the way, of
    layers that hand their own policy on."""
    by_hand = None if facts.keras.is_keras3 else _dtype_set_by_hand(owner)
    if by_hand is not None:
        return frozenset(policies_named(by_hand) or ("float32",))
    made = facts.makings_of(owner)
    if made:
        return frozenset(policy for call in made for policy in policies_made_with(facts, call, owner, inside))
    if owner.location in facts.float32_classes:
        return frozenset(("float32",))
    fixed = owner.base_argument("dtype")
    if fixed is not None and known(fixed) is not None and not isinstance(fixed, Parameter):
        return frozenset(policies_named(fixed))
    own = frozenset(name for call in facts.policy_calls for name in policies_set_by(call) if name in SIXTEEN_BITS)
    elsewhere = frozenset(name for name in facts.policies_elsewhere if name in SIXTEEN_BITS)
    return own or elsewhere or frozenset(("mixed_float16",))


def _dtype_set_by_hand(owner: ClassFacts) -> Value | None:
    """What its methods assign to `self._dtype`, which Keras 2 takes for the policy: mostly the dtype of a weight. None
    where they don't."""
    return next((one.attributes["_dtype"] for one in owner.lineage() if "_dtype" in one.attributes), None)


def computes_in_half(facts: SourceFacts, value: Value, context: Context, only: str | None = None) -> bool:
    """Whether a value that is autocast is 16-bit in some layer of the program; with `only`, in that dtype ("float16").

    The layer is the one whose `call()` the value comes from; a helper function that it calls may stand outside."""
    owners: dict[int, ClassFacts | None] = {id(owner): owner for owner in _owners(value)}
    owners = owners or {id(context.owner): context.owner}
    policies = [
        policy
        for owner in owners.values()
        if owner is not None and owner.is_layer
        for policy in policies_of_instances(facts, owner)
    ]
    dtypes = {SIXTEEN_BITS[policy] for policy in policies if policy in SIXTEEN_BITS}
    return bool(dtypes) if only is None else only in dtypes


def _owners(value: Value) -> Iterator[ClassFacts]:
    for part in walk(value):
        if isinstance(part, Instance):
            yield part.of
        elif isinstance(part, Parameter) and part.function is not None and part.function.owner is not None:
            yield part.function.owner


def layer_whose_policy_it_is(given: Value | None) -> ClassFacts | None:
    """`Dense(8, dtype=self.dtype_policy)`, in a layer: that layer's class."""
    if not isinstance(given, Attribute) or given.name not in ("dtype_policy", "_dtype_policy"):
        return None
    outer = class_of(given.of)
    return outer if outer is not None and outer.is_layer else None


def runs_in_call(context: Context) -> bool:
    """Whether code runs while a layer is called: in one of its methods, but for those that set it up, save it or train
    it, or in a function that such a method calls."""
    function, owner = context.function, context.owner
    if function is None:
        return False
    if owner is None or owner.kind is None:  # a function beside the layers, or a method that they inherit
        return bool(context.callers)
    return owner.is_layer and function.name not in NOT_CALLED


def runs_in_layer(facts: SourceFacts, context: Context) -> bool:
    """Whether it runs in a `call()`, as `runs_in_call` tells, or in a function that such a method defines and hands on
    (to `tf.cond`), or that a Lambda layer calls."""
    if runs_in_call(context) or any(id(context.function) == function for function, _ in lambda_layers(facts)):
        return True
    return any(
        outer.owner is not None and outer.owner.is_layer and outer.name not in NOT_CALLED
        for outer in surrounding(facts, context.function)
    )


def runs_in_some_call(facts: SourceFacts, context: Context) -> bool:
    """Whether code runs in a `call()`, or one calls it: only there do weights read as 16-bit."""
    if runs_as_added_loss(facts, context):
        return False
    functions = (context.function, *functions_around(facts, context))
    return any(around.name == "call" for function in functions for around in surrounding(facts, function))


def builds_a_model(facts: SourceFacts, context: Context) -> bool:
    """Whether code runs while an `__init__` joins layers, and in no `call()`: its tensors have no numbers yet. What a
    Lambda layer calls is given TensorFlow's tensors by it, wherever the layer is made."""
    functions = (context.function, *functions_around(facts, context))
    in_lambda_layers = {function for function, _ in lambda_layers(facts)}
    if any(id(function) in in_lambda_layers for function in functions):
        return False
    names = {
        around.name for function in functions for around in surrounding(facts, function) if around.owner is not None
    }
    return "__init__" in names and "call" not in names


def asks_for_dtype(context: Context) -> bool:
    """Whether code stands behind an `if` about dtypes or policies, so that it may never run in 16 bits."""
    return any(map(_is_arm_about_dtypes, context.branches))


def asks_for_other_dtype(context: Context) -> bool:
    """Whether an arm around the code asks about a policy or a dtype, without having found it to be float16."""
    return any(_is_arm_about_dtypes(branch) and not _is_arm_of_float16(branch) for branch in context.branches)


def _is_arm_of_float16(branch: Branch) -> bool:
    tests = [option for test in branch.parts or (branch.test,) for option in options(test)]
    asked = [test for test in tests if any(map(_is_about_dtypes, _asked_about(test)))]
    return branch.taken and all(map(_says_float16, asked))


def _says_float16(test: Value) -> bool:
    """Whether the test compares with float16, as `global_policy().compute_dtype == tf.float16` does."""
    is_comparison = isinstance(test, Operation) and test.operator == "=="
    return is_comparison and any(policies_named(operand) in FLOAT16 for operand in test.parts)


@lru_cache(maxsize=512)
def _is_arm_about_dtypes(branch: Branch) -> bool:
    """Whether the arm's test asks about dtypes. All events of an arm share it, and tests of one program ask about the
    same tensors, so answers are cached; the caches are small, since each entry keeps its program alive."""
    if len(_about_dtypes) > _MOST_REMEMBERED:
        _about_dtypes.clear()
    test = branch.test
    waiting = [test] if test not in _about_dtypes else []
    while waiting:
        value = waiting[-1]
        parts = [] if _about_dtypes.get(value) else list(_parts_asked_about(value))
        if value not in _about_dtypes:  # its parts first
            _about_dtypes[value] = _is_about_dtypes(value)
            waiting += [part for part in parts if part not in _about_dtypes]
        else:
            _about_dtypes[value] = _about_dtypes[value] or any(map(_about_dtypes.__getitem__, parts))
            waiting.pop()
    return _about_dtypes[test]


def _asked_about(test: Value) -> Iterator[Value]:
    """A test and what it was made from, but not the dtypes in which tensors were made that it asks about: neither
    `mask is not None` nor `tf.reduce_any(mask)` is about the dtype that `mask` was cast to."""
    waiting, seen = [test], {test}
    for item in waiting:
        yield item
        for part in _parts_asked_about(item):
            if part not in seen:
                seen.add(part)
                waiting.append(part)


def _parts_asked_about(value: Value) -> Iterator[Value]:
    if is_call_of(value, "builtins.len"):
        return  # a number of things says nothing of them
    if isinstance(value, Call) and _makes_tensor(value):
        yield from (part for part in value.parts if part is value.callee or not _is_about_dtypes(part))
    elif isinstance(value, Operation) and value.operator in ("is", "is not"):
        yield from (part for operand in value.operands for part in (operand, *_attributes(operand)))
    else:
        yield from value.parts


def _makes_tensor(call: Call) -> bool:
    """Whether it is one of a library's functions, and none that asks about dtypes as `tf.as_dtype` does; or a cast of
    an array, `rewards.astype(np.float32)`."""
    if isinstance(call.callee, Attribute) and call.method == "astype":
        return True
    name = call.callee.name if isinstance(call.callee, Api) else ""
    last = name.rpartition(".")[2]
    return name.startswith(TENSOR_LIBRARIES) and "dtype" not in last and last not in ASKING_FOR_DTYPES


def _attributes(value: Value) -> Iterator[Value]:
    """The values that lead to an attribute: for `a.b.c` first `a.b`, then `a`."""
    while isinstance(value, Attribute):
        value = value.of
        yield value


def _is_about_dtypes(value: Value) -> bool:
    if isinstance(value, Attribute):
        return "dtype" in value.name or "policy" in value.name or "precision" in value.name
    if isinstance(value, Api):
        return "dtype" in value.name or "policy" in value.name or value.name.endswith(("float16", "float32"))
    return False


def dtype_given(facts: SourceFacts, layer: Call) -> Value | None:
    """The `dtype` that a layer or model is made with; None where its own `__init__` keeps that for something else
    (`def __init__(self, **head): super().__init__()`), so that Keras never sees it."""
    own, given = class_of(layer), layer.keyword("dtype")
    init = own.find_method("__init__") if own is not None and given is not None else None
    handed = _calls_of_base_init(facts).get(id(init), []) if init is not None else []
    kept = bool(handed) and not any(call.open or call.args or call.keyword("dtype") is not None for call in handed)
    return None if kept else given


@lru_cache(maxsize=1)
def _calls_of_base_init(facts: SourceFacts) -> dict[int, list[Call]]:
    """The calls of an `__init__` that stand in one, by the id of that: those of bases, of the user's own or not."""
    calls: dict[int, list[Call]] = {}
    for call in facts.calls:
        function = call.context.function
        if call.method == "__init__" and function is not None and function.name == "__init__":
            calls.setdefault(id(function), []).append(call)
    return calls


def policies_made_with(
    facts: SourceFacts, call: Call, owner: ClassFacts | None, inside: tuple[ClassFacts, ...] = ()
) -> tuple[str, ...]:
    """The policies that the layer which a call makes may have. `owner`: its class, if it is one of the user's own;
    `inside`: as in `policies_of_instances`."""
    given = dtype_given(facts, call)
    if given is None and owner is not None:
        base = (class_of(call) or owner).base_argument("dtype")
        given = None if isinstance(base, Parameter) else base
    outer = layer_whose_policy_it_is(given)
    if outer is not None:
        return () if outer in inside else tuple(policies_of_instances(facts, outer, (*inside, outer)))
    if given is not None and known(given) is not None:
        return policies_given(facts, given)
    if call.open and given is None:
        return ()
    policies = facts.policies_of_program_at(call)
    named = tuple(policy for policy in policies if isinstance(policy, str))
    if not named and facts.assume_mixed:
        return ("mixed_float16",)
    return named
