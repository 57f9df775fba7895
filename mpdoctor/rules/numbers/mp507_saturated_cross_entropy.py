"""A cross-entropy is computed from 16-bit probabilities.

## Why it matters
In float16 the largest probability below 1 is 0.9995, in bfloat16 0.996: 0.9999 becomes 1.0. In Keras 3, with a
`sigmoid` and a loss object or a loss in compile(), a wrong answer at logit 10 costs 15.94 instead of 10.00 and
its gradient is 0: the model stops learning from its worst errors. A `softmax` keeps small probabilities, and
the loss is right within 1 %. But its gradient is the loss scale divided by the number of samples of a batch
(of its pixels or words, where each has a class) and by the probability of the right class, and float16 does not
hold that: with a scale of 32768 and 32 samples it was inf for probabilities below 0.016, and each such step is
skipped. bfloat16 holds it. (Keras 3.15.)

Keras 2, and loss functions of Keras 3 that a loop calls itself, find the logits behind a softmax or sigmoid
that is the model's last operation, and compute the right loss; that is not reported. For other probabilities
(clipped, cast, averaged) they cannot find the logits, and clip instead. So a layer `Activation("linear",
dtype="float32")` or a cast behind a 16-bit sigmoid or softmax does not help, in Keras 2 either: at a logit of 9 a wrong
sigmoid costs 15.94 (tf_keras 2.21: 15.25) and its gradient is 0, in bfloat16 as well.

A logarithm that a loop takes itself of a float16 softmax, or of the probability of an action, is -inf 18 below the
largest logit, where float32's is -18. With unscaled inputs not one of 200 steps was finite (TensorFlow 2.10 and 2.21).

## Flagged
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
loss_fn = keras.losses.BinaryCrossentropy()
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
```

## Fixed
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid", dtype="float32")])
loss_fn = keras.losses.BinaryCrossentropy()
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
```

## Versions
All; in Keras 2 only where the probabilities do not come straight from a softmax or sigmoid.

## Where users met it
tensorflow/tensorflow#38457.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import CROSS_ENTROPIES, PROBABILITIES
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Value, leaves
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.output_activations import activations_of, activations_of_outputs
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.late_casts import (
    Rounded,
    complements_rounded,
    rounded_outputs,
    rounded_tensor,
    unguarded_logarithms,
)
from mpdoctor.semantics.source.programs.cross_entropies import (
    calls_with_probabilities,
    name_of_cross_entropy,
    prediction_given,
    takes_probabilities,
)
from mpdoctor.semantics.source.programs.losses_and_metrics import compiled, compilings
from mpdoctor.semantics.source.programs.using_scripts import is_compiled_to_be_used

SEVERITY = Severity.WARNING
EXPLAINS = {"MP504": "line"}
NEVER_RAISES = True
ONLY_IN_HALF = True
# The losses that are right for the output of such a layer (Keras 3.15, tf_keras 2.21, TensorFlow 2.10 and 2.4).
RIGHT_FOR = {
    "softmax": ("categorical_crossentropy", "sparse_categorical_crossentropy"),
    "sigmoid": ("binary_crossentropy",),
}
SOFTMAX = (
    "The gradient of this float16 softmax's cross-entropy is {} divided by the number of samples or pixels and by the "
    "probability "
)
SOFTMAX_SCALED = (
    SOFTMAX.format("the loss scale")
    + "of the right class: at a scale of 32768 and 32 of them it is inf below 0.016, and the step is skipped."
)
SOFTMAX_UNSCALED = (
    SOFTMAX.format("1") + "of the right class: with 32 of them it is inf below 4.8e-07, and applied, as no "
    "LossScaleOptimizer skips the step."
)
HELP = (
    'Compute the {0} in float32 by giving its layer `dtype="float32"`, or return logits from the model and use '
    "`from_logits=True`."
)
LOGARITHM = (
    "This logarithm is taken of a float16 softmax, which is 0 where a logit lies 18 below the largest: the loss is inf "
    "or NaN there."
)
HELP_FOR_LOGARITHM = (
    "Return logits from the model and pick from `tf.nn.log_softmax(tf.cast(logits, tf.float32))`, or compute the "
    "softmax in float32; a cast behind it does not help."
)
LAST_BELOW_ONE = {"float16": "0.9995", "bfloat16": "0.996"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    yield from _findings_of_called(facts)
    yield from _findings_of_compiled(facts)
    yield from _findings_of_rounded(facts)
    for logarithm, softmax in unguarded_logarithms(facts):
        if softmax.dtype == "float16":
            yield Finding(LOGARITHM, HELP_FOR_LOGARITHM, logarithm.location, evidence={"activation": "softmax"})
    for sigmoid in dict.fromkeys(sigmoid for _, sigmoid in complements_rounded(facts)):
        yield from _findings_of_one_rounded(sigmoid, ["binary_crossentropy"])


def _findings_of_called(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for call in calls_with_probabilities(facts):
        if asks_for_dtype(call.context):
            continue
        prediction = prediction_given(call)
        dtype = precision.half(prediction, call.context)
        loss = call.callee if isinstance(call.callee, (Api, Call)) else None
        if dtype is not None and loss is not None:
            finds_logits = isinstance(loss, Api) or not facts.keras.is_keras3
            activations = activations_of(facts, prediction)
            yield from _findings(dtype, activations, name_of_cross_entropy(loss), finds_logits, call.location)


def _findings_of_compiled(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for call, given in compiled(facts, 1, "loss"):
        dtype = None if is_compiled_to_be_used(facts, call) else precision.of_model(call.receiver)
        if dtype in LAST_BELOW_ONE and dtype is not None and takes_probabilities(given):
            entropy = name_of_cross_entropy(given)
            activations = activations_of_outputs(facts, call.receiver, in_graph=True)
            fitting = {name for name in activations if entropy in RIGHT_FOR.get(name, ())}  # where outputs differ
            yield from _findings(dtype, fitting or activations, entropy, not facts.keras.is_keras3, call.location)


def _findings_of_rounded(facts: SourceFacts) -> Iterator[Finding]:
    """Probabilities that are float32 when the loss sees them, and were 16-bit before."""
    yield from _rounded_before_call(facts)
    yield from _rounded_before_fit(facts)


def _rounded_before_call(facts: SourceFacts) -> Iterator[Finding]:
    for call in calls_with_probabilities(facts):
        rounded = rounded_tensor(facts, prediction_given(call))
        if rounded is not None and isinstance(call.callee, (Api, Call)):
            yield from _findings_of_one_rounded(rounded, [name_of_cross_entropy(call.callee)])


def _rounded_before_fit(facts: SourceFacts) -> Iterator[Finding]:
    for call in compilings(facts):
        for output, losses in _losses_by_output(call, rounded_outputs(facts, call.receiver)):
            if output is not None and losses and all(map(takes_probabilities, losses)):
                yield from _findings_of_one_rounded(output, list(map(name_of_cross_entropy, losses)))


def _losses_by_output(call: Call, outputs: list[Rounded | None]) -> list[tuple[Rounded | None, list[Value]]]:
    """Each output of a compiled model with the losses that it may have: of a list its own, else all of them."""
    given = call.argument(1, "loss")
    if not isinstance(given, Collection):
        return [(output, list(leaves(given))) for output in outputs]
    if len(given.items) != len(outputs):
        return []
    if given.kind in ("list", "tuple"):
        return [(output, [loss]) for output, loss in zip(outputs, given.items, strict=True)]
    return [(output, list(leaves(given))) for output in outputs]


def _findings_of_one_rounded(rounded: Rounded, entropies: list[str]) -> Iterator[Finding]:
    """The finding for probabilities that are cast to float32 too late. `entropies`: those of the outputs of one model.
    The focal one is right for a softmax near 1, where it is 0."""
    fitting = [name for name in entropies if name in RIGHT_FOR[rounded.activation]]
    entropy = (fitting or entropies)[0]
    if (rounded.activation, entropy) != ("softmax", "categorical_focal_crossentropy"):
        yield from _findings(
            rounded.dtype, {rounded.activation}, entropy, finds_logits=False, location=rounded.by.location, late=True
        )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not (model.compiled and model.loss_takes_probabilities) or model.call.kind == "loop":
        return
    for activation in PROBABILITIES:
        dtype = model.half_output((activation,))
        if dtype is not None:
            entropy = model.loss if model.loss in CROSS_ENTROPIES else RIGHT_FOR[activation][0]
            told = _findings(dtype, {activation}, entropy, not model.keras.is_keras3, None, scaled=_is_scaled(model))
            findings = list(told)
            if findings:
                yield findings[0]
                return


def _is_scaled(model: ModelFacts) -> bool:
    return model.wrapper is not None or any(link.loss_scale_factor for link in model.optimizer)


def _findings(
    dtype: str,
    activations: set[str],
    entropy: str,
    finds_logits: bool,
    location: Location | None,
    late: bool = False,
    scaled: bool = True,
) -> Iterator[Finding]:
    """The findings for one loss. `activations` are the activations that the probabilities come from directly, "" for
    any other source; `entropy` is Keras' name of the loss function; `finds_logits` tells whether it uses the logits
    behind a softmax or sigmoid instead; `late`: the probabilities are cast to float32 behind the activation;
    `scaled`: the loss is."""
    is_right = bool(activations) and all(entropy in RIGHT_FOR.get(activation, ()) for activation in activations)
    if is_right and finds_logits:
        return
    if is_right and activations == {"softmax"}:
        if dtype == "float16":
            yield Finding(
                SOFTMAX_SCALED if scaled else SOFTMAX_UNSCALED,
                HELP.format("softmax"),
                location,
                evidence={"activation": "softmax"},
            )
        return
    usual = "sigmoid" if entropy.startswith("binary") else "softmax"
    activation = next(iter(activations - {""}), usual) if len(activations - {""}) == 1 else usual
    problem = f"This cross-entropy is computed from {dtype} probabilities"
    if late:
        problem = f"This {activation} gives {dtype} probabilities, to which the later cast to float32 adds no digits"
    yield Finding(
        f"{problem}, and the largest below 1 is {LAST_BELOW_ONE[dtype]}: where the model is confident, the loss "
        "saturates and the gradient is lost.",
        HELP.format(activation),
        location,
        evidence={"activation": activation},
    )
