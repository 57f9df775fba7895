"""A layer or the whole program keeps its weights in 16 bits: the policy is float16 or bfloat16, not a mixed one.

## Why it matters
An update smaller than the last bit of a weight is lost. With `float16` layers, SGD at 1e-4 and weights near 1,
20 epochs changed the weights by exactly 0 in Keras 3.15, tf_keras 2.21 and TensorFlow 2.15. Adam changes no
`bfloat16` weight at all, and Nadam makes such weights NaN: their beta_2 of 0.999 is 1 in bfloat16 (TensorFlow
2.4, 2.10 and 2.15, tf_keras 2.21, Keras 3.15). There is no loss scaling either: compile() wraps the optimizer
only under `mixed_float16`. `mixed_float16` computes in the same 16 bits, at the same speed, and keeps float32
weights.

## Flagged
```python
from tensorflow import keras

keras.mixed_precision.set_global_policy("float16")
```

## Fixed
```python
from tensorflow import keras

keras.mixed_precision.set_global_policy("mixed_float16")
```

## Versions
All. A program that only predicts may keep 16-bit weights and is not reported, nor is a model that is frozen, or given
the weights of another, and not trained, nor a policy that another one replaces before any layer is made.
`set_floatx("float16")` beside a mixed policy keeps float32 weights. In Keras 3.15 it makes the losses, the metrics and
the learning rate float16 all the same, and a mean squared error of 300 infinite. In Keras 2 (TensorFlow 2.10 and 2.15)
fit() rounds NumPy arrays and lists to float16, targets among them: a target of 70000 becomes infinite. Tensors and
datasets stay as they are, and a program that trains on these alone is not reported.

## Where users met it
keras-team/keras#9582, keras-team/keras#11860, keras-team/keras#12249, matterport/Mask_RCNN#1482,
tensorflow/tensorflow#38457, tensorflow/tensorflow#43172, tensorflow/tensorflow#50282,
huggingface/transformers#11282.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.knowledge.policy_names import is_floatx
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.dtype_names import GLOBAL_POLICY as NAMING_POLICY
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import SET_FLOATX, SET_POLICY, policies_set_by
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, Parameter
from mpdoctor.program.values import Api, Known, Value, is_api, known, options
from mpdoctor.semantics.source.edits.expressions import argument_replaced, literal_replaced, unsafe_fix
from mpdoctor.semantics.source.edits.policies import policy_instead
from mpdoctor.semantics.source.edits.statements import without_statement
from mpdoctor.semantics.source.layers.layer_variables import layer_with_weights, makes_weights
from mpdoctor.semantics.source.layers.model_layers import half_policy_calls, policies_set
from mpdoctor.semantics.source.programs.asked_settings import is_asked_about, is_own_name
from mpdoctor.semantics.source.programs.branches import happen_together, is_ruled_out
from mpdoctor.semantics.source.programs.data.training_data import fed_values
from mpdoctor.semantics.source.programs.running_functions import is_in_test_without_training
from mpdoctor.semantics.source.programs.using_scripts import only_predicts
from mpdoctor.semantics.source.trainings.trained_models import is_in_untrained_model
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
CONFIRMED_LIVE = True
FLOATX = "floatx"
GLOBAL_POLICY = "the global policy"
SHOWING = ("builtins.print", *NAMING_POLICY, POLICY)
VARIABLE_CREATOR = "tensorflow.variable_creator_scope"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in () if only_predicts(facts) else _calls_that_may_give_a_dtype(facts):
        given, role = _dtype_given(facts, call)
        policies = policies_named(given) or (policies_set_by(call) if call in facts.policy_calls else ())
        halves = (named for named in policies if named in HALF)
        policy = next((named for named in halves if not _is_asked_about(facts, given, named)), None)
        if policy is not None and not _is_right(facts, call, given, role):
            yield Finding(
                f'"{policy}" as {role} {_harm(facts, call, policy, role)}',
                _instead_of_floatx(facts, policy)
                if role == FLOATX
                else f'Use "mixed_{policy}", which computes in {policy} and keeps float32 weights.',
                call.location,
                fix=_fix(facts, call, given, policy, role),
            )


def _harm(facts: SourceFacts, call: Call, policy: str, role: str) -> str:
    """What 16 bits do in this role."""
    if role == FLOATX and _is_beside_mixed_policy(facts, call):
        if not facts.keras.is_keras3:
            return (
                f"makes fit() round the arrays that it is given to {policy}, targets as well: the mixed policy keeps "
                "only the weights in float32."
            )
        return (
            f"makes Keras 3 compute losses, metrics and the learning rate in {policy}: the mixed policy keeps only "
            "the weights in float32."
        )
    from mpdoctor.semantics.rounded_beta_2 import effect_in_program  # few programs have such weights

    effect = effect_in_program(facts, policy)
    return f"keeps the weights in 16 bits{_harm_to_weights(effect)}"


def _harm_to_weights(effect: str) -> str:
    """How the sentence about 16-bit weights ends. `effect`: of the optimizer on them, "" where that is not known."""
    return f", and {effect}" if effect else ": updates smaller than a weight's last bit are lost."


def _is_asked_about(facts: SourceFacts, given: Value | None, policy: str) -> bool:
    made = options(given)
    names = [call.argument(0, "name") for call in made if isinstance(call, Call) and is_api(call.callee, POLICY)]
    asked = (name for name in (given, *names) if name is not None)
    return any(is_asked_about(facts, name, policy) or is_own_name(facts, name, policy) for name in asked)


def _is_right(facts: SourceFacts, call: Call, given: Value | None, role: str) -> bool:
    """Whether the line raises, makes no 16-bit weights after all, or makes weights that nothing trains."""
    if _is_refused(given) or (role == FLOATX and _is_refused_floatx(facts, given)):
        return True
    if role == FLOATX and not facts.keras.is_keras3 and _keeps_all_wide(facts, call):
        return True
    if is_ruled_out(call.context) or (role == GLOBAL_POLICY and _is_replaced_at_once(facts, call)):
        return True
    is_of_a_layer = role not in (FLOATX, GLOBAL_POLICY)
    return is_in_test_without_training(facts, call.context) or (is_of_a_layer and is_in_untrained_model(facts, call))


def _is_replaced_at_once(facts: SourceFacts, setting: Call) -> bool:
    """Whether the next thing that the program does, but for showing something, is to set another global policy."""
    later = (other for other in facts.calls if other.order > setting.order and other.result is None)
    does = (other for other in later if not is_api(other.callee, *SHOWING))
    following = min(does, key=lambda other: other.order, default=None)
    if following is None or setting.context.loops or not is_api(following.callee, SET_POLICY):
        return False
    context = following.context
    return context.run == setting.context.run and context.branches == setting.context.branches and not context.guarded


def _is_refused(given: Value | None) -> bool:
    """Whether it is `Policy(tf.float16)`, which raises (MP104)."""
    policies = (option for option in options(given) if isinstance(option, Call) and is_api(option.callee, POLICY))
    return any(isinstance(name, Api) for policy in policies for name in options(policy.argument(0, "name")))


def _is_refused_floatx(facts: SourceFacts, given: Value | None) -> bool:
    """Whether `set_floatx` raises (MP104)."""
    name = known(given)
    return isinstance(given, Api) or (isinstance(name, str) and not is_floatx(name, facts.keras))


def _instead_of_floatx(facts: SourceFacts, policy: str) -> str:
    """The advice for a call of set_floatx. Without the call, a program that sets no policy would compute in float32."""
    if _sets_no_policy(facts):
        return f"Set the policy `mixed_{policy}` instead, which computes in {policy} and keeps float32 weights."
    return f"Remove it: `mixed_{policy}` keeps float32 weights."


def _sets_no_policy(facts: SourceFacts) -> bool:
    """Whether floatx alone says in which dtype the program computes."""
    return all(is_api(call.callee, SET_FLOATX) for call in facts.policy_calls) and not facts.mixed_elsewhere


def _fix(facts: SourceFacts, call: Call, given: Value | None, policy: str, role: str) -> Fix | None:
    if role == FLOATX and not _sets_no_policy(facts):
        return unsafe_fix("Remove the call of set_floatx()", without_statement(facts, call.location))
    if role == FLOATX:
        is_written = isinstance(given, Known) and not call.open
        edits = policy_instead(facts, call, f"mixed_{policy}") if is_written else None
        return unsafe_fix(f"Set the policy mixed_{policy} instead", edits)
    edit = literal_replaced(facts, given.location, f"mixed_{policy}") if given is not None else None
    if edit is None and call.keyword("dtype") is not None:  # `dtype=tf.float16`
        edit = argument_replaced(facts, call.location, "dtype", None, f'"mixed_{policy}"')
    return unsafe_fix(f'Write "mixed_{policy}"', edit)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.may_train:
        return
    from mpdoctor.semantics.rounded_beta_2 import effect_in_model

    for pure_layer in _pure_layers(model):
        by_policy = model.policy_set and pure_layer.policy == model.global_policy
        pure = [layer for layer in model.layers if layer.policy == pure_layer.policy and _trainable_half(layer)]
        together = by_policy or pure_layer.made_at is None
        alike = [layer.path for layer in pure if by_policy or not together or _shares_a_finding_with(layer, pure_layer)]
        yield Finding(
            f"The weights of {listed(alike) if together else pure_layer.path} ({pure_layer.class_name}) are "
            f"{pure_layer.variable_dtype}{_harm_to_weights(effect_in_model(model, pure_layer.variable_dtype))}",
            f'Use "mixed_{pure_layer.policy}", which computes in {pure_layer.policy} and keeps float32 weights.',
            None if by_policy else pure_layer.made_at,
            layer=pure_layer.path,
            evidence={"policy": pure_layer.policy, "layers": alike},
        )


def _calls_that_may_give_a_dtype(facts: SourceFacts) -> Iterator[Call]:
    """Calls that set a policy, calls with a `dtype`, and calls that make an object of the user's own classes."""
    setting = set(facts.policy_calls)
    for call in facts.calls:
        has_dtype = bool(call.keywords) and call.keyword("dtype") is not None
        if has_dtype or isinstance(call.callee, Defined) or call in setting:
            yield call


def _dtype_given(facts: SourceFacts, call: Call) -> tuple[Value | None, str]:
    """The dtype or policy that a call sets or gives to a layer with weights, and a name for its role."""
    if call in facts.policy_calls:
        given = call.argument(0) or call.keyword("policy") or call.keyword("dtype_policy") or call.keyword("value")
        return given, FLOATX if isinstance(call.callee, Api) and call.callee.is_(SET_FLOATX) else GLOBAL_POLICY
    given = call.keyword("dtype") or _own_dtype(call)
    name = layer_with_weights(call) if _is_half(given) else None  # last, because it takes the longest to find out
    return (None, "") if name is None else (given, f"the dtype of {name}")


def _pure_layers(model: ModelFacts) -> list[LayerFacts]:
    """The layers whose weights are trained in 16 bits; of those that follow the global policy, only the first."""
    pure = [layer for layer in model.layers if layer.policy in HALF and _trainable_half(layer) and not layer.is_model]
    if model.policy_set and model.global_policy in HALF:
        return [layer for layer in pure if layer.policy != model.global_policy] + pure[:1]
    return [
        layer for n, layer in enumerate(pure) if not any(_shares_a_finding_with(layer, first) for first in pure[:n])
    ]


def _shares_a_finding_with(layer: LayerFacts, first: LayerFacts) -> bool:
    """Whether one finding tells of both: layers of one class and policy that no line of the user's makes."""
    have_no_line = layer.made_at is None and first.made_at is None
    return have_no_line and (layer.class_name, layer.policy) == (first.class_name, first.policy)


def _trainable_half(layer: LayerFacts) -> bool:
    return any(trainable and dtype in HALF for dtype, _, trainable in layer.variables)


def _own_dtype(call: Call) -> Value | None:
    """The dtype that a user's class with weights of its own passes to `super().__init__(…)`."""
    own = class_of(call)
    given = own.base_arguments.get("dtype") if own is not None else None
    if own is None or isinstance(given, Parameter) or not _is_half(given):
        return None
    return given if makes_weights(own) else None


def _is_half(given: Value | None) -> bool:
    return given is not None and not set(HALF).isdisjoint(policies_named(given))


def _keeps_all_wide(facts: SourceFacts, setting: Call) -> bool:
    """Whether in Keras 2 a variable creator or a mixed policy may give the weights another dtype than floatx, and no
    array is rounded beside them. A creator makes the variables of Keras 2 (float32 under "float16", measured in
    tf_keras 2.21 and 2.10.1), and not those of Keras 3 (float16)."""
    if _is_beside_mixed_policy(facts, setting):
        return not any(is_array(fed.value) for fed in fed_values(facts))
    return any(True for _ in facts.calls_of(VARIABLE_CREATOR))


def _is_beside_mixed_policy(facts: SourceFacts, setting: Call) -> bool:
    """Whether a program that sets floatx sets a mixed policy as well."""
    return any(
        not any(policy in HALF for policy in policies_set(other)) and happen_together(other.context, setting.context)
        for other in half_policy_calls(facts)
    )
