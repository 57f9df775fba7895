"""Losses and metrics: which functions of a program they are, their arguments from Keras, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from mpdoctor.facts.half_dtypes import HALF, SIXTEEN_BITS
from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.program.dtypes.dtype_names import is_policy_in_force
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named, policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, agreed, is_api, known, leaves, options
from mpdoctor.semantics.source.programs.models import is_built_on

DATA = "data"
"""The dtype of what a data set gives: nobody knows which, but 16 bits only where the program casts to them."""

UPDATING = ("metric", "update_state")
STEPS = ("train_step", "test_step")
# Their result has the dtype of their logits; ctc_loss raises in TensorFlow 2.4 for 16-bit ones.
WITH_LOGITS = (
    "ctc_loss",
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
)
# The same of the target and the output of keras.ops, and of Keras 2's backend.
CROSS_ENTROPIES = tuple(
    f"keras.{place}.{kind}_crossentropy"
    for place in ("ops", "backend")
    for kind in ("binary", "categorical", "sparse_categorical")
)
DISTRIBUTING = ("experimental_distribute_dataset", "distribute_dataset")  # a strategy's methods, given a pipeline
HUBER = ("keras.losses.huber", "keras.losses.huber_loss", "keras.losses.Huber", "keras.metrics.huber")
Dtypes = Callable[["Value | None"], "str | None"]
Returned = Callable[[FunctionFacts], "str | None"]
OfOutput = Callable[["Value | None", object], "str | None"]  # of a model, by the output's name


class Role(NamedTuple):
    """What Keras hands a loss or metric function of the user's: the dtypes of labels and predictions."""

    label: str | None
    prediction: str | None
    is_metric: bool = False


Roles = dict[int, Role]


def half_dtype_of_policy(facts: SourceFacts, given: Value | None) -> str | None:
    """The 16-bit dtype in which a loss or metric of Keras 3 computes that is given this policy as its `dtype`: the
    policy's compute dtype. Keras 2's metrics take its float32 (3.15; tf_keras 2.21, TensorFlow 2.15 and 2.10)."""
    if given is None or not facts.keras.is_keras3:
        return None
    is_global = isinstance(given, Call) and is_policy_in_force(given)
    policies = facts.policies_at(given) if is_global and isinstance(given, Call) else policies_named(given)
    dtypes = {SIXTEEN_BITS.get(str(policy)) for policy in policies}
    return dtypes.pop() if len(dtypes) == 1 else None


def is_loss_function(callee: Value | None) -> bool:
    """Whether it is keras.losses.mean_squared_error, keras.metrics.mse, keras.losses.get("mse") …: a function, no
    class."""
    if is_call_of(callee, "keras.losses.get") and isinstance(callee, Call):
        return str(known(callee.argument(0, "identifier"))).islower()
    if not isinstance(callee, Api):
        return False
    place, _, name = public_name(callee.name).rpartition(".")
    return place in ("keras.losses", "keras.metrics") and name.islower() and name not in ("get", "serialize")


def is_loss_object(value: Value | None) -> bool:
    """Whether it is an instance of keras.losses.Loss, the user's own included."""
    own = class_of(value) if value is not None else None
    if own is not None:
        return own.kind == "loss"
    return isinstance(value, Call) and isinstance(value.callee, Api) and kind_of_class(value.callee.name) == "loss"


def loss_dtype(call: Call, facts: SourceFacts, dtypes: Dtypes, returned: Returned) -> str | None:
    """What the call of a loss gives, None if it is no such call.

    Loss functions compute in the prediction's dtype, in every Keras. Loss objects, and a model's own
    `compute_loss`, cast to float32 in Keras 3. In Keras 2 they compute in the prediction's dtype, and give what the
    program's own function gives where there is one (tried in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10). Keras 2's
    Huber loss alone casts to float32, as a function and as an object (2.4, 2.10, 2.15)."""
    prediction = prediction_of(call)
    if prediction is None:
        return None
    made_by = call.callee.callee if isinstance(call.callee, Call) else call.callee
    if not facts.keras.is_keras3 and is_api(made_by, *HUBER):
        return "float32"
    if is_loss_function(call.callee) or call.method in WITH_LOGITS or is_api(call.callee, *CROSS_ENTROPIES):
        return dtypes(prediction)
    if facts.keras.is_keras3:
        return "float32"
    losses = [call.callee] if is_loss_object(call.callee) else [loss for _, loss in compiled(facts, 1, "loss")]
    own = [function_of(loss, "call") for loss in losses if loss is not None] or [None]
    return agreed(dtypes(prediction) if function is None else returned(function) for function in own)


def prediction_of(call: Call) -> Value | None:
    """What a call of a loss compares with the labels; None for other calls."""
    if call.method in WITH_LOGITS and isinstance(call.callee, Api):
        return call.argument(1, "logits")
    if is_api(call.callee, *CROSS_ENTROPIES):
        return call.argument(1, "output")
    if is_loss_function(call.callee) or is_loss_object(call.callee):
        return call.argument(1, "y_pred")
    if isinstance(call.callee, Attribute) and isinstance(call.callee.of, Instance):
        if call.method == "compiled_loss":
            return call.argument(1, "y_pred")
        if call.method in ("compute_loss", "_compute_loss"):
            return call.argument(2, "y_pred")
    return None


def is_of_the_data(value: Value) -> bool:
    """Whether it is a part of what a data set gives: of the `data` of a train_step, or in a loop over a tf.data
    pipeline."""
    is_part = False
    while isinstance(value, Item):
        is_part, value = True, value.of
    if isinstance(value, Parameter):
        function = value.function
        is_step = function is not None and function.name in STEPS and function.owner is not None
        return is_step and value.index == 1  # fit(x) hands over the tensor itself
    if isinstance(value, Call) and value.method == "get_next" and is_call_of(value.receiver, "builtins.iter"):
        assert isinstance(value.receiver, Call)
        is_part, value = True, value.receiver.argument(0) or value
    if isinstance(value, Call) and is_part:
        return value.method == "unpack_x_y_sample_weight" or _is_pipeline(value)
    return False


def _is_pipeline(value: Value | None) -> bool:
    while isinstance(value, Call) and isinstance(value.callee, Attribute):
        if value.callee.name == "as_numpy_iterator":
            return False
        value = value.argument(0) if value.callee.name in DISTRIBUTING else value.callee.of
        if isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.name.startswith("builtins."):
            return False
    return (
        isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.name.startswith("tensorflow.data.")
    )


def compilings(facts: SourceFacts) -> Iterator[Call]:
    return (call for call in facts.method_calls("compile") if not is_built_on(facts, call))


def compiled(facts: SourceFacts, position: int | None, keyword: str) -> Iterator[tuple[Call, Value]]:
    """(compile call, one loss or metric of it)."""
    for call in compilings(facts):
        for leave in leaves(call.argument(position, keyword)):
            yield call, leave


def outputs_named(facts: SourceFacts, position: int | None, keyword: str) -> Iterator[tuple[Call, Value, object]]:
    """(compile call, one loss or metric of it, the name or the number of the output that it is for): those that a dict
    gives, or a list: of losses one for each output, of metrics a list for each."""
    for call in compilings(facts):
        for option in options(call.argument(position, keyword)):
            for output, item in _for_outputs(option, is_of_losses=keyword == "loss"):
                yield from ((call, leave, output) for leave in leaves(item))


def _for_outputs(given: Value, is_of_losses: bool) -> list[tuple[object, Value]]:
    if not isinstance(given, Collection):
        return []
    if given.kind == "dict":
        named = zip(given.keys, given.items, strict=False)
        return [(known(key), item) for key, item in named if isinstance(known(key), str)]
    is_one_each = not given.open and (is_of_losses or all(isinstance(item, Collection) for item in given.items))
    return list(enumerate(given.items)) if is_one_each else []


def compiled_roles(facts: SourceFacts, of_model: Dtypes, of_output: OfOutput) -> Roles:
    """For each loss or metric function of the user's that compile() is given, by its id: the dtypes of the labels and
    predictions that it is given. Measured in Keras 3.15 and tf_keras 2.21."""
    roles: Roles = {}
    _add_losses(roles, facts, of_model, of_output)
    _add_metrics(roles, facts, of_model, of_output)
    return roles


def _add_losses(roles: Roles, facts: SourceFacts, of_model: Dtypes, of_output: OfOutput) -> None:
    """Add the losses of compile(), in Keras 2 also those for named outputs."""
    is_keras3 = facts.keras.is_keras3
    for call, loss in compiled(facts, 1, "loss"):
        function = function_of(loss, "call")
        if function is not None:
            prediction = _dtype_of_loss(facts, loss) if is_keras3 else of_model(call.receiver)
            _remember(roles, function, Role(prediction, prediction))
    for call, loss, name in () if is_keras3 else outputs_named(facts, 1, "loss"):
        function = function_of(loss, "call")
        if function is not None:
            prediction = of_output(call.receiver, name)
            _remember(roles, function, Role(prediction, prediction))


def _dtype_of_loss(facts: SourceFacts, loss: Value) -> str | None:
    """The dtype to which Keras 3 casts what it gives a loss: the one that a loss object is made with, or that its class
    hands to Keras; None where that is not known."""
    own = class_of(loss)
    given = [loss.keyword("dtype") if isinstance(loss, Call) else None, own.base_argument("dtype") if own else None]
    dtype = next((value for value in given if value is not None and known(value) is not None), None)
    if dtype is None:
        return "float32"
    return half_dtype_of_policy(facts, dtype) or dtype_named(dtype, facts.keras)


def _add_metrics(roles: Roles, facts: SourceFacts, of_model: Dtypes, of_output: OfOutput) -> None:
    """Add the metrics of compile(), for all outputs and for single ones."""
    is_keras3 = facts.keras.is_keras3
    for metric, of in _metrics(facts, of_model, of_output):
        function = function_of(metric, "update_state")
        if function is not None:
            updates_state = function.owner is not None and (function.owner.kind, function.name) == UPDATING
            casts = not (updates_state or is_keras3)
            prediction = "float32" if casts else of
            label = "float32" if casts or is_keras3 else prediction
            _remember(roles, function, Role(label, prediction, is_metric=True))


def _metrics(facts: SourceFacts, of_model: Dtypes, of_output: OfOutput) -> Iterator[tuple[Value, str | None]]:
    """(metric, the dtype of the predictions that it is for)."""
    for position, keyword in ((2, "metrics"), (None, "weighted_metrics")):
        for call, metric in compiled(facts, position, keyword):
            yield metric, of_model(call.receiver)
        for call, metric, output in outputs_named(facts, position, keyword):
            yield metric, of_output(call.receiver, output)


def add_called_losses(roles: Roles, facts: SourceFacts, dtypes: Dtypes) -> None:
    """Add the losses of a class of the program's which it calls itself, as the loss that compile() is given may do.
    Keras 3 casts what they are given to float32; Keras 2 hands it on (2.10, 2.15, tf_keras 2.21)."""
    is_keras3 = facts.keras.is_keras3
    for call in facts.object_calls:
        own = class_of(call.callee)
        function = own.find_method("call") if own is not None and own.kind == "loss" else None
        if function is not None:
            prediction = "float32" if is_keras3 else dtypes(call.argument(1, "y_pred"))
            label = prediction if is_keras3 else dtypes(call.argument(0, "y_true")) or prediction
            _remember(roles, function, Role(label, prediction))


def _remember(roles: Roles, function: FunctionFacts, role: Role) -> None:
    """Keep the role of a function; of several roles one in 16 bits counts."""
    if id(function) not in roles or role.prediction in HALF:
        roles[id(function)] = role


def function_of(value: Value, method: str) -> FunctionFacts | None:
    """The function of the user's own that Keras will call for a loss or metric; the labels come first also of what
    functools.partial gives keywords, and of what a MeanMetricWrapper averages."""
    wrapper = value if is_call_of(value, "keras.metrics.MeanMetricWrapper") else None
    value = (wrapper.argument(0, "fn") or value) if isinstance(wrapper, Call) else value
    if is_call_of(value, "functools.partial") and isinstance(value, Call) and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, Defined) and isinstance(value.of, FunctionFacts):
        return value.of
    own = class_of(value)
    if own is None or own.kind not in ("loss", "metric", None):
        return None
    return own.find_method(method if own.kind is not None else "__call__")
