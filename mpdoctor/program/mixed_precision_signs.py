"""Signs that a program means to compute in 16 bits."""

from __future__ import annotations

from functools import lru_cache
from typing import Iterable, Iterator, Sequence

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.location import Location, holds
from mpdoctor.knowledge.api_names import POLICY, is_layer_class, public_name
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Use
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import SET_FLOATX, SET_POLICY, policies_set_by
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api

_SETS_POLICY = (SET_POLICY, SET_FLOATX)
_NAMES = (
    "keras.mixed_precision.LossScaleOptimizer",
    "tensorflow.mixed_precision.LossScaleOptimizer",
    "tensorflow.mixed_precision.experimental",
    "tensorflow.compat.v1.mixed_precision",
    "tensorflow.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer",
)
_REWRITE = ("enable_mixed_precision_graph_rewrite", "disable_mixed_precision_graph_rewrite")
# Of which one may switch on TensorFlow's rewriting of graphs.
REWRITING_GRAPHS = ("set_experimental_options", "enable_mixed_precision_graph_rewrite")
_WRAPPER = "LossScaleOptimizer"
_ASKING = "builtins.isinstance"


def signs_of_mixed_precision(calls: Iterable[Call], uses: Iterable[Use]) -> Iterator[Location]:
    """The places where the program shows that it means to compute in 16 bits: calls first, then names."""
    for call in calls:
        if _call_is_a_sign(call):
            yield call.location
    for use in uses:
        if _name_is_a_sign(use.api.name):
            yield use.location


def shows_16_bits(calls: Iterable[Call], uses: Iterable[Use]) -> bool:
    """Whether one of these is more than a wrapper of an optimizer, which goes with TensorFlow's rewriting of graphs as
    well."""
    names = (use.api.name for use in uses if not use.api.name.endswith(_WRAPPER))
    return any(map(_call_is_a_sign, calls)) or any(_name_is_a_sign(name) and not _is_module(name) for name in names)


def _is_module(name: str) -> bool:
    """Whether it names a module, which sets nothing yet: `from tensorflow.keras.mixed_precision import
    experimental`."""
    return name.endswith(("mixed_precision", "experimental"))


@lru_cache(maxsize=None)
def _name_is_a_sign(name: str) -> bool:
    name = public_name(name)
    return not name.endswith(_REWRITE) and any(name == sign or name.startswith(sign + ".") for sign in _NAMES)


@lru_cache(maxsize=None)
def _may_set_precision(name: str) -> bool:
    """Whether the call may set a precision. Asked for each call of a library's: of nearly all of them the name alone
    tells that they do not."""
    return public_name(name) in (*_SETS_POLICY, POLICY)


def _call_is_a_sign(call: Call) -> bool:
    callee = call.callee
    if not call.keywords and not isinstance(callee, Api):
        return False
    if isinstance(callee, Api) and _may_set_precision(callee.name):
        if callee.is_(*_SETS_POLICY):
            given = policies_set_by(call)
            # a policy that nobody knows is set for mixed precision; of floatx it is the choice of float64 as well
            return any(name in HALF_POLICIES for name in given) or (not given and callee.is_(SET_POLICY))
        return any(name in HALF_POLICIES for name in policies_named(call.argument(0, "name")))
    dtype = call.keyword("dtype")
    if dtype is None or not (_makes_layer(call) or _sets_up_layer(call)):
        return False
    named = dtype.default if isinstance(dtype, Parameter) else dtype
    return any(name in HALF_POLICIES for name in policies_named(named))


def _sets_up_layer(call: Call) -> bool:
    """Whether it is `super().__init__(dtype="mixed_float16")`, in a layer."""
    own = call.context.owner
    return call.method == "__init__" and own is not None and own.is_layer


def _makes_layer(call: Call) -> bool:
    if isinstance(call.callee, Api):
        return is_layer_class(call.callee.name)
    own = class_of(call)
    return own is not None and own.is_layer


def signs_for_imports(calls: Sequence[Call], uses: Iterable[Use]) -> Iterator[Location]:
    """The signs that also hold for the files that the program imports. Left out are: asking whether an optimizer is a
    LossScaleOptimizer, floatx in a test that makes no layer, and a policy set in a private method that nothing
    calls."""
    asking = [call.location for call in calls if isinstance(call.callee, Api) and call.callee.name == _ASKING]
    named = [use for use in uses if _name_is_a_sign(use.api.name)]
    in_question = [use for use in named if not use.is_import and any(holds(place, use.location) for place in asking)]
    if len(in_question) < sum(not use.is_import for use in named) or not in_question:
        yield from (use.location for use in named if use not in in_question)
    for call in calls:
        if _call_is_a_sign(call) and not (_is_floatx_of_a_test(call, calls) or _is_never_reached(call, calls)):
            yield call.location


def _is_floatx_of_a_test(setting: Call, calls: Iterable[Call]) -> bool:
    run = setting.context.run
    if not run or not isinstance(setting.callee, Api) or not setting.callee.is_(SET_FLOATX):
        return False
    of_run = [call for call in calls if call.context.run == run]
    function = of_run[0].context.function
    return function is not None and function.is_test and not any(map(_makes_layer, of_run))


def _is_never_reached(setting: Call, calls: Iterable[Call]) -> bool:
    """Whether it stands in a method with a private name (`_setup`) that is walked only because it is there."""
    function = setting.context.function
    if function is None or function.owner is None or setting.context.reached or setting.context.callers:
        return False
    is_private = function.name.startswith("_") and not function.name.startswith("__")
    return is_private and not any(call.method == function.name for call in calls)
