"""A mixed_float16 model is loaded under another global policy, and further training has no loss scaling.

## Why it matters
The file stores the policy of every layer, but not that of a Sequential or functional model. After `load_model`
under float32 the layers compute in float16, and the optimizer is a plain Adam (Keras 3.15, tf_keras 2.21,
TensorFlow 2.15); so it is where they become part of a new model that is made under float32 (TensorFlow 2.10 as
well). Gradients below 3e-08 become 0, without any message. A program that continues a training has to set the
policy before loading, just like the program that started it. A float16 layer that is frozen loses nothing.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit([[1.0, 2.0, 3.0, 4.0]], [[1.0]])
model.save("model.keras")

keras.mixed_precision.set_global_policy("float32")
model = keras.models.load_model("model.keras")
model.fit([[1.0, 2.0, 3.0, 4.0]], [[1.0]])
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit([[1.0, 2.0, 3.0, 4.0]], [[1.0]])
model.save("model.keras")

model = keras.models.load_model("model.keras")
model.fit([[1.0, 2.0, 3.0, 4.0]], [[1.0]])
```

## Versions
All. A LossScaleOptimizer that you made yourself is saved with the model and restored, and so is every wrapper
in a .h5 file or a SavedModel of Keras 2. A compile() after load_model loses those too, unless the file has the
model's own policy: a SavedModel of Keras 2 does, and a .keras file of a class of your own may.

## Where users met it
Related: keras-team/keras#19752, tensorflow/tensorflow#62564.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import known, options
from mpdoctor.semantics.source.edits.expressions import literal_replaced, unsafe_fix
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.edits.statements import is_right_above, line_before
from mpdoctor.semantics.source.layers.model_layers import policies_of_layer
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_bare
from mpdoctor.semantics.source.optimizers.wrappers import compiles_of
from mpdoctor.semantics.source.programs.models import TRAINING
from mpdoctor.semantics.source.trainings.loaded_layers import models_that_train, trains_half
from mpdoctor.semantics.source.trainings.saved_files import (
    ending_of,
    loads,
    policies_in_file,
    text_of,
    training_of,
    writers_of,
    written_elsewhere,
)

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
EXPLAINS = {"MP106": "model"}
FULL_PRECISION = frozenset((None, "float32"))


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for load in loads(facts):
        policies = facts.policies_at(load)
        if load.context.guarded or any(policy is UNSURE or policy in HALF_POLICIES for policy in policies):
            continue
        if not _holds_float16(policies_in_file(facts, load)):
            continue
        is_alone = _learns_alone(facts, load)
        if not is_alone and not _is_unscaled_as_part(facts, load):
            continue
        now = listed_policies(policies)
        yield Finding(
            f"This model was saved with float16 layers, but the global policy is {now} here: its layers stay float16, "
            "and training continues without loss scaling.",
            'Set the policy before loading, `set_global_policy("mixed_float16")`, or compile the model with '
            "`LossScaleOptimizer(…)`.",
            load.location,
            fix=_fix(facts, load) if is_alone else None,
        )


def _fix(facts: SourceFacts, load: Call) -> Fix | None:
    """The edit that sets mixed_float16 before the model is loaded, or in the place of the policy that is set right
    above. Not for a part of another model: the layers around it would follow the policy too."""
    settings = [call for call in facts.policy_calls if is_right_above(facts, call.location, load.location)]
    given = settings[0].argument(0, "policy") if len(settings) == 1 else None
    named = literal_replaced(facts, given.location, "mixed_float16") if given is not None else None
    if named is not None:
        return unsafe_fix("Load the model under mixed_float16", named)
    setter = keras_name(facts, "mixed_precision.set_global_policy")
    line = line_before(facts, load.location, f'{setter}("mixed_float16")') if setter is not None else None
    return unsafe_fix("Set the policy before loading", line)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if model.call.kind in ("none", "predict") or not _is_trained_unscaled(model):
        return
    for load in model.loads:
        half = [layer for layer in model.loaded_by(load) if _learns_in_float16(layer)]
        if half and load.policy != "mixed_float16":
            yield Finding(
                f"`{load.file}` was saved with float16 layers ({len(half)}, `{half[0].path}` first), but the global "
                f"policy was {load.policy} when it was loaded: they stay float16, and {model.optimizer[0].class_name} "
                "trains them without loss scaling. Gradients below 3e-08 become 0.",
                'Set the policy before loading, `set_global_policy("mixed_float16")`, or compile the loaded model with '
                "`LossScaleOptimizer(…)`.",
                load.location,
                model=model.id,
                layer=load.part or None,
                evidence={"file": load.file, "policy": load.policy, "float16 layers": [layer.path for layer in half]},
            )


def _learns_in_float16(layer: LayerFacts) -> bool:
    return layer.compute_dtype == "float16" and layer.has_trainable_weights


def _holds_float16(policies: Collection[object]) -> bool:
    return "mixed_float16" in policies and UNSURE not in policies


def _is_trained_unscaled(model: ModelFacts) -> bool:
    scales = model.wrapper is not None or any(link.loss_scale_factor for link in model.optimizer)
    return bool(model.optimizer) and not scales


def listed_policies(policies: tuple[object, ...]) -> str:
    return " or ".join(sorted({str(policy or "float32") for policy in policies}))


def _keeps_bare_optimizer(keras: Keras, load: Call) -> bool:
    """Whether the file restores a bare optimizer without a wrapper: in Keras 2 a .keras file, since TensorFlow 2.13."""
    if known(load.keyword("compile")) is False:
        return False
    if keras.is_keras3:
        return True
    is_old = keras.package == "tf.keras" and keras.tensorflow_release < (2, 13)
    return not is_old and ending_of(load.argument(0, "filepath")).endswith(".keras")


def _learns_alone(facts: SourceFacts, load: Call) -> bool:
    return _is_unscaled(facts, load) and trains_half(facts, load, load)


def _is_unscaled(facts: SourceFacts, load: Call) -> bool:
    """Whether the loaded model is trained, certainly by an optimizer that scales nothing."""
    calls = [call for call in training_of(facts, load) if any(option is load for option in options(call.receiver))]
    compiled = [call for call in calls if call.method == "compile"]
    if len(compiled) == len(calls):
        return False  # compiled to be evaluated, perhaps
    if compiled and _may_restore_policy(facts, load):
        return False
    if compiled:
        return all(is_bare(call.argument(0, "optimizer"), call.open) for call in compiled)
    return _keeps_bare_optimizer(facts.keras, load) and _is_saved_with_bare_optimizer(facts, load)


def _may_restore_policy(facts: SourceFacts, load: Call) -> bool:
    """Whether compile() may see the policy that the model itself was saved with, and wrap the optimizer for it: that of
    a SavedModel in Keras 2, and of a class of the user's, whose configuration has it."""
    if any(class_of(model) is not None for model in writers_of(facts, load)):
        return True
    if facts.keras.is_keras3:
        return False
    path = load.argument(0, "filepath")
    return not any(text.endswith((".h5", ".hdf5", ".keras")) for text in (ending_of(path), text_of(path)))


def _is_unscaled_as_part(facts: SourceFacts, load: Call) -> bool:
    return any(_is_unscaled_outside(facts, model) for model in models_that_train(facts, load))


def _is_unscaled_outside(facts: SourceFacts, model: Call) -> bool:
    """Whether a model that holds the loaded one is trained, certainly by such an optimizer: no policy gives it a loss
    scale either."""
    calls = [call for call in facts.method_calls(*TRAINING) if call.receiver is model]
    compiled = [call for call in calls if call.method == "compile"]
    if not compiled or len(compiled) == len(calls) or not FULL_PRECISION.issuperset(policies_of_layer(facts, model)):
        return False
    return all(is_bare(call.argument(0, "optimizer"), call.open) for call in compiled)


def _is_saved_with_bare_optimizer(facts: SourceFacts, load: Call) -> bool:
    compiles = [compiles_of(facts, writer) for writer in writers_of(facts, load)]
    is_bare_elsewhere = all(file.is_bare for file in written_elsewhere(facts, load))
    return (
        is_bare_elsewhere
        and all(compiles)
        and all(is_bare(call.argument(0, "optimizer"), is_open=False) for by_hand in compiles for call in by_hand)
    )
