"""LossScaleOptimizers that have nothing to do, because no layer computes in float16."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import GLOBAL_POLICY
from mpdoctor.program.events import Call, Read
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, is_api, known, options, walk
from mpdoctor.semantics.source.loops.float16_layers import may_give_float16, policy_without_float16
from mpdoctor.semantics.source.loops.gradients import applied_gradients
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_left_bare
from mpdoctor.semantics.source.optimizers.wrappers import policies_of_model, wrapper_calls
from mpdoctor.semantics.source.programs.models import is_model
from mpdoctor.semantics.source.programs.running_functions import functions_around

# A program that calls one of these may have float16 layers that this file does not show.
MAY_BRING_FLOAT16 = (
    "load_model",
    "model_from_json",
    "model_from_config",
    "from_config",
    "load",
    "KerasLayer",
    "from_pretrained",
    "set_experimental_options",
    "enable_mixed_precision_graph_rewrite",
    "deserialize",
    "from_preset",
)
LOADS_DATA = (
    "numpy.load",
    "json.load",
    "yaml.load",
    "yaml.safe_load",
    "tensorflow.data.Dataset.load",
    "tensorflow_datasets.load",
)
# What an optimizer has that compile() wrapped, and another has not (Keras 3.15, tf_keras 2.21, TensorFlow 2.15, 2.10).
ONLY_OF_KERAS3 = ("dynamic_scale", "initial_scale", "dynamic_growth_steps", "step_counter", "inner_optimizer")
ONLY_OF_KERAS2 = (
    *("get_scaled_loss", "get_unscaled_gradients", "loss_scale", "dynamic_counter", "dynamic_growth_steps"),
    *("initial_scale", "inner_optimizer"),
)
OF_POLICIES = ("dtype_policy", "_dtype_policy", "compute_dtype")
LIBRARIES = ("builtins", "os", "sys", "argparse", "absl", "numpy", "tensorflow", "keras", "tf_keras")


def idle_wrappers(facts: SourceFacts) -> Iterator[tuple[Call, str]]:
    """Each LossScaleOptimizer that certainly has nothing to do, and the policy that the program sets; "" where it sets
    none."""
    calls = [call for call in wrapper_calls(facts) if _is_certain(facts, call)]
    policy = policy_without_float16(facts) if calls and not _may_bring_float16(facts) else None
    if policy is None:
        return
    for call in calls:
        if not call.context.branches if policy else _is_trained(facts, call):
            yield call, policy


def asked_where_none_is_made(facts: SourceFacts) -> Iterator[tuple[Read, str]]:
    """Each time that a model's optimizer is asked for what a LossScaleOptimizer alone has, where the program makes none
    and compile() makes none under its policy; with that policy."""
    names = ONLY_OF_KERAS3 if facts.keras.is_keras3 else ONLY_OF_KERAS2
    asked = [read for read in facts.reads if read.name in names and _is_of_a_models_optimizer(facts, read)]
    if not asked or any(True for _ in wrapper_calls(facts)) or any(own.kind == "optimizer" for own in facts.classes):
        return
    compiled = [call for call in facts.method_calls("compile") if call.given]
    are_bare = all(is_left_bare(facts, call.argument(0, "optimizer"), call.open) for call in compiled)
    policy = policy_without_float16(facts) if compiled and are_bare and not _may_bring_float16(facts) else None
    if policy:
        yield from ((read, policy) for read in asked)


def _is_of_a_models_optimizer(facts: SourceFacts, read: Read) -> bool:
    """Whether it certainly reads an attribute of `model.optimizer`, or of `self.optimizer` in a model: behind no `if`,
    and in no test."""
    of, context = read.of, read.context
    if not (isinstance(of, Attribute) and of.name == "optimizer") or context.branches or context.guarded:
        return False
    if context.swallowed is not None or _runs_in_a_test(facts, context):
        return False
    own = class_of(of.of)
    return own.kind == "model" if own is not None else bool(options(of.of)) and all(map(is_model, options(of.of)))


def _runs_in_a_test(facts: SourceFacts, context: Context) -> bool:
    running = (context.function, *functions_around(facts, context))
    return any(function is not None and function.is_test for function in running)


def _is_certain(facts: SourceFacts, call: Call) -> bool:
    """Whether it may be reached, and no `if` around it asks for the policy: where none is ever set, others do not
    matter. A test tries on purpose what is of no use, and what several programs share has to do in one of them."""
    is_shared = call.location.path in facts.float16_elsewhere
    is_certain = call.context.reached and not call.context.guarded and not _runs_in_a_test(facts, call.context)
    return is_certain and not is_shared and not any(map(_is_about_policies, call.context.asked()))


def _is_about_policies(value: Value) -> bool:
    """Whether it is `global_policy()`, `layer.dtype_policy`, "mixed_float16", or a library's function that may have set
    one."""
    if isinstance(value, Attribute):
        return value.name in OF_POLICIES
    text = known(value)
    names_one = isinstance(text, str) and "float16" in text
    is_foreign = isinstance(value, Api) and value.root not in LIBRARIES
    return names_one or is_foreign or is_api(value, *GLOBAL_POLICY)


def _may_bring_float16(facts: SourceFacts) -> bool:
    """Whether float16 may come from other files, from a loaded model, or from the dtype or policy of a layer."""
    if facts.is_imported or facts.mixed_elsewhere or facts.assume_mixed or facts.incomplete:
        return True
    if any(write.name in OF_POLICIES for write in facts.writes):
        return True
    return any(_may_load_layers(call) or may_give_float16(call) for call in facts.calls)


def _may_load_layers(call: Call) -> bool:
    loads_data = isinstance(call.callee, Api) and call.callee.is_(*LOADS_DATA)
    return call.method in MAY_BRING_FLOAT16 and not loads_data


def _is_trained(facts: SourceFacts, wrapper: Call) -> bool:
    """Whether a model that was made without any policy is compiled with this wrapper and trained, or trained by it in a
    loop."""
    return _is_compiled_and_trained(facts, wrapper) or _is_applied(facts, wrapper)


def _is_compiled_and_trained(facts: SourceFacts, wrapper: Call) -> bool:
    for call in facts.method_calls("compile"):
        compiles_with_it = any(option is wrapper for option in options(call.argument(0, "optimizer")))
        if compiles_with_it and call.given and _is_made_without_policy(facts, call.receiver):
            trained = (option for fit in facts.method_calls(*FITTING) for option in options(fit.receiver))
            if any(known is model for known in trained for model in options(call.receiver)):
                return True
    return False


def _is_applied(facts: SourceFacts, wrapper: Call) -> bool:
    """Whether the program is seen to apply gradients with it, all of models that were made without any policy."""
    trained = [
        weights.of
        for apply, gradient in applied_gradients(facts)
        if _is_run(apply) and all(option is wrapper for option in options(apply.receiver))
        for weights in walk(gradient.argument(1, "sources"))
        if isinstance(weights, Attribute) and weights.name in WEIGHT_LISTS
    ]
    return bool(trained) and all(_is_made_without_policy(facts, model) for model in trained)


def _is_run(call: Call) -> bool:
    """Whether it stands at the top level of the script, or in a function that is called from there."""
    return call.context.reached and (call.context.function is None or bool(call.context.callers))


def _is_made_without_policy(facts: SourceFacts, model: Value | None) -> bool:
    return bool(options(model)) and all(
        is_model(option) and policies_of_model(facts, option) == frozenset((None,)) for option in options(model)
    )
