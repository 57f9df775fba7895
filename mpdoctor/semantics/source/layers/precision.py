"""The dtypes in which a program computes its tensors, under the policies that it sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import islice

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, VARIABLE, is_policy_in_force
from mpdoctor.program.dtypes.library_results import tensors_met
from mpdoctor.program.dtypes.own_layers import is_inherited_output, may_be_weight
from mpdoctor.program.dtypes.tensor_dtypes import dtypes_with
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of, is_instance_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Api, Attribute, Item, Known, Value, agreed, options, walk
from mpdoctor.semantics.source.layers.later_inputs import (
    WHOLE,
    given_further_out,
    given_in_calls,
    is_later_input,
    lambda_layers_by_function,
)
from mpdoctor.semantics.source.layers.layer_dtypes import LayerDtypes, dtype_under, sixteen_bits_of
from mpdoctor.semantics.source.layers.model_dtypes import LAMBDA, MOST_NESTED, ModelDtypes
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.weight_values import is_kept_in_float32, weight_holder
from mpdoctor.semantics.source.programs.losses_and_metrics import (
    DATA,
    Roles,
    add_called_losses,
    compiled_roles,
    is_of_the_data,
    loss_dtype,
)
from mpdoctor.semantics.source.programs.running_functions import (
    contexts_of_calls,
    runs_as_added_loss,
    surrounding,
)

MOST_PARTS = 30  # of a value that are looked at
ARITHMETIC = ("+", "-", "*", "/", "//", "**", "%", "@")


class Precision:
    """Asks for the dtype of a value where an event stands: "float16", "float32", DATA …; None if not certain.

    Where the policy is one of several ("mixed_float16" if amp else "float32"), the answer is the 16-bit one."""

    def __init__(self, facts: SourceFacts) -> None:
        self.facts = facts
        self._forget()
        self._layers = LayerDtypes(facts)
        self.of_layer = self._layers.of_layer
        self._models = ModelDtypes(facts, self.of_layer, lambda value: self._in_call(value))
        self.of_model, self.of_output = self._models.of_model, self._models.of_output
        self.of_lambda_layer = self._models.of_lambda_layer
        self._lambdas = lambda_layers_by_function(facts)
        self._in_calls: dict[Context, bool] = {}
        self._calls_at = contexts_of_calls(facts)
        self.roles: Roles = {}
        self.roles = compiled_roles(facts, self.of_model, self.of_output)
        self._forget()
        add_called_losses(self.roles, facts, self._outside)
        self._forget()

    def _forget(self) -> None:
        """Empty the caches: what was asked before the roles were known may have another answer."""
        self._in_call = dtypes_with(self.facts.keras, partial(self._dtype_known_better, in_call=True))
        self._outside = dtypes_with(self.facts.keras, partial(self._dtype_known_better, in_call=False))

    def dtype(self, value: Value | None, context: Context) -> str | None:
        return self._in_call(value) if self.runs_in_call(context) else self._outside(value)

    def half(self, value: Value | None, context: Context) -> str | None:
        """ "float16" or "bfloat16", None if it is neither for certain."""
        dtype = self.dtype(value, context)
        return dtype if dtype in HALF else None

    def runs_in_call(self, context: Context) -> bool:
        """Whether code runs inside the `call()` of a layer, where Keras hands out its weights in 16 bits."""
        runs = self._in_calls.get(context)
        if runs is None:
            around = [context, *filter(None, map(self._calls_at.get, context.callers))]
            is_later = runs_as_added_loss(self.facts, context)
            runs = not is_later and any(self._is_in_call(outer.function) for outer in around)
            self._in_calls[context] = runs
        return runs

    def _is_in_call(self, function: FunctionFacts | None) -> bool:
        """Whether it is `call()` of a layer or model, or a function that stands in it and runs with it."""
        return any(
            outer.name == "call" and outer.owner is not None and outer.owner.is_layer
            for outer in surrounding(self.facts, function)
        )

    def _dtype_known_better(self, value: Value, dtype: str | None, in_call: bool) -> str | None:
        if dtype is not None and (whole := self._of_whole_numbers(value)) is not None:
            return whole
        if dtype in (AUTOCAST, VARIABLE):
            return self._under_policy(value, dtype, in_call)
        if dtype is not None:
            return dtype
        if is_of_the_data(value):
            return DATA
        if isinstance(value, Parameter) and value.function is not None:
            return self._of_parameter(value, value.function)
        holder = weight_holder(value)
        if holder is not None:
            return self._layers.of_weight(holder, in_call)
        if not in_call and is_kept_in_float32(self.facts, value):
            return "float32"
        if isinstance(value, Item):
            return self._models.of_one_output(value, in_call)
        if isinstance(value, Operation):
            return self._of_meeting(value.operands, in_call) if value.operator in ARITHMETIC else None
        if isinstance(value, Attribute):
            return self._of_compute_dtype(value) if value.name == "compute_dtype" else None
        return self._of_call(value, in_call) if isinstance(value, Call) else None

    def _of_compute_dtype(self, named: Attribute) -> str | None:
        """The dtype of `model.compute_dtype`, of a layer or model of Keras' own: by the policy under which it was
        made."""
        return agreed(
            self.of_layer(made) if isinstance(made, Call) and layer_name(made) is not None else None
            for of in options(named.of)
            for made in (self._fitted() if _is_model_of_callback(of) else (of,))
        )

    def _fitted(self) -> tuple[Value, ...]:
        """Every model that is fitted in the program: what a callback has as its `model`."""
        return tuple(model for call in self.facts.method_calls("fit") for model in options(call.receiver))

    def _of_call(self, call: Call, in_call: bool) -> str | None:
        """The dtype of the result of a function of TensorFlow, a loss, a layer or a model."""
        met = tensors_met(call)
        if met:
            return None if any(self._may_be_wide(part, in_call) for part in met) else self._of_meeting(met, in_call)
        of_loss = loss_dtype(call, self.facts, self._in_call if in_call else self._outside, self._returned)
        if isinstance(call.callee, Call) and is_call_of(call.callee, LAMBDA):
            return self.of_lambda_layer(call.callee)
        is_called = isinstance(call.callee, (Call, Instance)) and (in_call or not self._gives_weight(call.callee))
        return of_loss or (self.of_model(call.callee) if is_called else None)

    def _gives_weight(self, layer: Value) -> bool:
        """Whether its `call()` returns a weight as it is, which outside of any `call()` is read in float32."""
        own = class_of(layer)
        call = own.find_method("call") if own is not None else None
        return call is not None and any(may_be_weight(event.value) for event in self.facts.returns_of(call))

    def _returned(self, function: FunctionFacts) -> str | None:
        """The dtype that a function of the user's returns, as a loss of the program does for its arguments."""
        if self._models.nested > MOST_NESTED:
            return None
        self._models.nested += 1
        dtype = agreed(self._outside(event.value) for event in self.facts.returns_of(function))
        self._models.nested -= 1
        return dtype

    def _of_parameter(self, value: Parameter, function: FunctionFacts) -> str | None:
        if id(function) in self.roles:
            role = self.roles[id(function)]
            return {0: role.label, 1: role.prediction}.get(value.index - function.first_given)
        if is_later_input(value):
            return self._of_later_input(value)
        own = function.owner
        if own is not None and own.kind == "model" and (function.name, value.name) == ("compute_loss", "y_pred"):
            return self._models.of_class(own)  # all Kerases hand it over as it is
        is_input = value.index == function.first_given and function.name != "__call__"  # no regularizer
        layers = self._lambdas.get(id(function), ()) if is_input else ()
        return agreed(map(self.of_layer, layers))

    def _of_later_input(self, value: Parameter) -> str | None:
        """The 16-bit dtype of an input that no Keras casts, where it has that wherever such a layer is called."""
        if self._models.nested > MOST_NESTED:
            return None
        self._models.nested += 1
        handed = given_further_out(self.facts, value)
        dtype = agreed(self.dtype(tensor, call.context) for call, tensor in handed)
        self._models.nested -= 1
        return dtype if dtype in HALF else None

    def _of_meeting(self, met: Sequence[Value], in_call: bool) -> str | None:
        """The dtype of an operation's result: a tensor combined with a 16-bit one is 16-bit too, or the line raises;
        combined with float32 data it is float32."""
        dtypes = self._in_call if in_call else self._outside
        met_dtypes = {dtypes(operand) for operand in met if not isinstance(operand, Known)}
        if met_dtypes == {"float32", DATA}:
            return "float32"
        return (
            next(iter(met_dtypes - {None}))
            if len(met_dtypes) == 2 and None in met_dtypes and not met_dtypes.isdisjoint(HALF)
            else None
        )

    def _may_be_wide(self, met: Value, in_call: bool) -> bool:
        """Whether what is known of no certain dtype was made of a float32 tensor, or of one that `call()` is given."""
        dtypes = self._in_call if in_call else self._outside
        parts = list(islice(walk(met), MOST_PARTS)) if dtypes(met) is None else []
        given = (part.function for part in parts if isinstance(part, Parameter) and part.function)
        is_wide = any(dtypes(part) == "float32" for part in parts) or len(parts) == MOST_PARTS
        return is_wide or any(function.name == "call" for function in given)

    def _under_policy(self, value: Value, dtype: str, in_call: bool) -> str | None:
        owner = _owner(value)
        if isinstance(value, Attribute) and isinstance(value.of, Call) and is_policy_in_force(value.of):
            return dtype_under(self.facts.policies_at(value.of)) if dtype == AUTOCAST else "float32"
        if owner is None:
            layer = value.callee if isinstance(value, Call) else None
            if (
                isinstance(value, Call) and isinstance(layer, Api) and dtype == AUTOCAST
            ):  # of `keras.layers.add([x, y])`
                return dtype_under(self.facts.policies_at(value))
            return self.of_layer(layer) if isinstance(layer, Call) and dtype == AUTOCAST else None
        if not owner.is_layer:
            return "float32" if isinstance(value, Call) else None  # a metric's own variables
        policies = self._layers.policies_of(owner)
        if dtype == VARIABLE or (isinstance(value, Call) and not in_call):
            return next((policy for policy in policies if policy in HALF), "float32")
        return sixteen_bits_of(policies)

    def _of_whole_numbers(self, value: Value) -> str | None:
        """The dtype of a parameter of `call()`, or of an element of one, that gets whole numbers wherever the program
        is seen to call such a layer: no Keras casts these."""
        parameter = value.of if isinstance(value, Item) else value
        if not isinstance(parameter, Parameter) or not parameter.is_of_call:
            return None
        dtype = agreed(self.facts.dtype_of(handed) for handed in given_in_calls(self.facts, value))
        return dtype if dtype in WHOLE else None


@lru_cache(maxsize=1)
def precision_of(facts: SourceFacts) -> Precision:
    """What answers for the dtypes of one program. Cached for one program after the other, as the rules ask."""
    return Precision(facts)


def _owner(value: Value) -> ClassFacts | None:
    """The layer's class whose input, weight or policy it is."""
    if isinstance(value, Parameter):
        return value.function.owner if value.function is not None else None
    if is_inherited_output(value) and isinstance(value, Call):
        return value.context.owner
    if isinstance(value, Call):
        return class_of(value.receiver) if isinstance(value.callee, Attribute) and value.receiver else None
    while isinstance(value, Attribute):
        value = value.of
    return class_of(value) if not isinstance(value, Item) else None


def _is_model_of_callback(value: Value) -> bool:
    """Whether it is `self.model` in a callback, which fit() sets."""
    return (
        isinstance(value, Attribute) and value.name == "model" and is_instance_of(value.of, "keras.callbacks.Callback")
    )
