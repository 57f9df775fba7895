"""The program uses a LossScaleOptimizer, but no layer of the model computes in float16.

## Why it matters
Loss scaling keeps small float16 gradients from becoming zero. Under float32 or mixed_bfloat16 there is nothing
to protect, and the wrapper only checks every gradient and skips a step where one overflows. Either the policy
should have been set to mixed_float16 and never was, so that everything runs in float32 at float32's speed, or
the wrapper can go. compile() adds none under mixed_bfloat16, so that `model.optimizer.loss_scale`, or in Keras 2
`self.optimizer.get_scaled_loss(loss)` in a `train_step`, raises AttributeError there.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam()), "mse")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.optimizers.Adam(), "mse")
```

## Versions
All.

## Where users met it
tensorflow/models#9262, tensorflow/tensorflow#43273, tensorflow/tensorflow#34406.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import OF_WRAPPER
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.loops.idle_wrappers import asked_where_none_is_made, idle_wrappers
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
HELP = "Set the policy `mixed_float16` before the layers are made, or leave the LossScaleOptimizer out."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call, policy in idle_wrappers(facts):
        reason = f"under the policy {policy}" if policy else "no policy is ever set, so"
        yield Finding(
            f"This LossScaleOptimizer has nothing to do: {reason} no layer computes in float16.",
            _help(facts, call),
            call.location,
            fix=_fix(facts, call),
        )
    for read, policy in asked_where_none_is_made(facts):
        yield Finding(
            f"Under the policy {policy} compile() makes no LossScaleOptimizer, and no other optimizer has "
            f"`{read.name}`: this line raises AttributeError.",
            "Leave it out: what computes in no float16 needs no loss scale. Or ask first, with "
            "`isinstance(optimizer, LossScaleOptimizer)`.",
            read.location,
            severity=Severity.ERROR,
        )


def _fix(facts: SourceFacts, wrapper: Call) -> Fix | None:
    if _asked_for(facts, wrapper):
        return None
    return unsafe_fix("Leave the wrapper out", passed_on(facts, wrapper.location, 0, "inner_optimizer", "optimizer"))


def _help(facts: SourceFacts, wrapper: Call) -> str:
    asked_for = _asked_for(facts, wrapper)
    if not asked_for:
        return HELP
    goes = "goes" if len(asked_for) == 1 else "go"
    return f"{HELP} {listed(asked_for)} {goes} with it: the optimizer in it has no such thing."


def _asked_for(facts: SourceFacts, wrapper: Call) -> list[str]:
    """What the program asks the wrapper for and the optimizer in it has not."""
    reads = (read for read in facts.reads if any(of is wrapper for of in options(read.of)))
    return list(dict.fromkeys(f"`{read.name}`" for read in reads if read.name in OF_WRAPPER))


def in_model(model: ModelFacts) -> Iterator[Finding]:
    wrapper = model.wrapper
    if wrapper is None or not model.may_train or not model.layers or model.graphs_rewritten:
        return
    if model.policy != "mixed_float16" and not any("float16" in _dtypes(layer) for layer in model.layers):
        computes = " and ".join(
            sorted({layer.compute_dtype for layer in model.layers if layer.floating}) or ["float32"]
        )
        yield Finding(
            f"This LossScaleOptimizer has nothing to do: every layer computes in {computes}, none in float16.",
            HELP,
            wrapper.made_at,
        )


def _dtypes(layer: LayerFacts) -> set[str]:
    of_variables = (dtype for dtype, *_ in layer.variables)
    return {layer.compute_dtype, layer.variable_dtype, *layer.output_dtypes, *of_variables}
