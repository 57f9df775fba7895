"""Keras 3 checks only the first replica's gradients, so an overflow on another replica reaches the weights.

## Why it matters
Under mixed_float16 gradients overflow now and then, by design: the step is skipped and the scale halved. With
several replicas Keras 3 asks only the first one whether its gradients are finite. A NaN on replica 0 left the
weights alone; the same NaN on replica 1 was applied, and every weight was NaN after one step (Keras 3.15, two
devices). tf_keras sums the gradients before it checks them, and skipped the step in both cases.

## Flagged
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
    model.compile("adam", "mse")
```

## Fixed
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
    model.compile("adam", "mse")
```

## Versions
Keras 3, with MirroredStrategy or MultiWorkerMirroredStrategy over more than one device.

## Where users met it
Found by measuring; there is no report on GitHub.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import policies_set_by
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, is_api, options, walk
from mpdoctor.semantics.source.optimizers.wrappers import wrappings
from mpdoctor.semantics.source.programs.branches import exclude_each_other

SEVERITY = Severity.WARNING
KERAS = ("3",)
CONFIRMED_LIVE = True
HELP = (
    'Use the policy "mixed_bfloat16", which needs no loss scale, or train with tf_keras '
    "(`TF_USE_LEGACY_KERAS=1`), which sums the gradients of all replicas before it checks them."
)
STARTING = ("absl.app.run", "typer.run")  # start the program
TRAINING = ("fit", "train", "apply", "gradient")  # beginnings of the names of methods that train
STRATEGIES = (
    "tensorflow.distribute.MirroredStrategy",
    "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy",
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    strategies = [] if _only_evaluates(facts) else facts.calls_of(*STRATEGIES)
    strategies = [call for call in strategies if _may_have_replicas(call)]
    wrapping = [call for call, _ in wrappings(facts)] if strategies and _sets_mixed_float16(facts) else []
    for strategy in strategies:
        own = [call for call in wrapping if _belongs(facts, strategy, call)]
        if any(not exclude_each_other(strategy.context, call.context) for call in own):
            yield Finding(
                "With several replicas under mixed_float16 Keras 3 checks only the first replica's gradients: an "
                "overflow on another replica is written into the weights as inf or NaN.",
                HELP,
                strategy.location,
            )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    is_keras_own = model.wrapper is not None and not model.wrapper.module.startswith("mpdoctor.")
    if model.may_train and is_keras_own and model.replicas > 1 and model.computes_in_float16:
        yield Finding(
            f"{model.replicas} replicas train in float16, and Keras 3 checks only the first replica's gradients: an "
            "overflow on another replica is written into the weights as inf or NaN.",
            HELP,
            model.call.location,
            evidence={"strategy": model.strategy, "replica_count": model.replicas},
        )


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    escaped = training.escaped_steps
    if not escaped:
        return
    replicas = " and ".join(str(replica) for replica in training.steps[escaped[0]].nonfinite_replicas)
    weights = " The weights now hold inf or NaN." if training.weights_finite is False else ""
    yield Finding(
        f"At step {escaped[0] + 1} the gradients on replica {replicas} were inf or NaN and those on replica 0 were "
        f"not. Keras 3 checks only replica 0, so the step was applied to the weights instead of skipped.{weights}",
        HELP,
        training.model.call.location,
        model=training.model.id,
        severity=Severity.ERROR,
        evidence={
            "steps": [n + 1 for n in escaped],
            "replicas": sorted({replica for n in escaped for replica in training.steps[n].nonfinite_replicas}),
            "gradient": training.steps[escaped[0]].first_nonfinite,
        },
    )


def in_light_of(finding: Finding, training: TrainingFacts) -> Finding:
    """The finding as advice, where the strategy found one device: another machine may have more."""
    model = training.model
    if model.replicas > 1 or training.replicas > 1 or f"tensorflow.distribute.{model.strategy}" not in STRATEGIES:
        return finding
    return dataclasses.replace(
        finding,
        message=f"{finding.message} On this machine the strategy has one device, so that nothing escapes here.",
        severity=Severity.INFO,
    )


def _only_evaluates(facts: SourceFacts) -> bool:
    """Whether the program evaluates or predicts, and nothing in it may train."""
    calls = (call for call in facts.calls if not is_api(call.callee, *STARTING))
    trains = any(call.method.startswith(TRAINING) or call.method in ("run", "minimize") for call in calls)
    return not trains and any(True for _ in facts.method_calls("evaluate", "predict", "predict_on_batch"))


def _may_have_replicas(strategy: Call) -> bool:
    """Whether the strategy may have several devices; False where the program gives it only one."""
    devices = strategy.argument(0, "devices")
    one_device = all(
        isinstance(option, Collection) and not option.open and len(option.items) == 1 for option in options(devices)
    )
    return not strategy.context.guarded and (devices is None or not one_device)


def _sets_mixed_float16(facts: SourceFacts) -> bool:
    return any("mixed_float16" in policies_set_by(call) for call in facts.policy_calls)


def _belongs(facts: SourceFacts, strategy: Call, wrapping: Call) -> bool:
    """Whether the optimizer is wrapped in the strategy's scope, or steps are run by the strategy."""
    if any(value_inside is strategy for value in wrapping.context.withs for value_inside in walk(value)):
        return True
    return any(option is strategy for run in facts.method_calls("run") for option in options(run.receiver))
