"""At the current loss scale, gradients become 0 in float16 that are not 0 in float32.

## Why it matters

Numbers below 3e-8 are 0 in float16. A loss scale lifts gradients above that limit. Where the scale is too low,
or there is none, they are lost in the backward pass: the loss falls slowly or not at all, nothing is inf and
nothing raises.

To find out, a batch of the training is run twice, as the model is and with all layers in float32, with the same
weights and random numbers, and the gradient elements are counted that are 0 only in float16. This is done with
the last batch where every step changed some weights and left others unchanged, and with three batches under
`mpdoctor check --reference`. Where neither was done and the loss scale never exceeds 128, the report says that
this rule did not look. Variables whose gradient is below 1e-4 of the norm of the whole gradient are left
out: theirs are rounding errors in both runs. A variable is reported if it loses 5 % or more (with three
batches, on two of them). It is not reported if the loss of the whole training, repeated in float32, is the same
and the remaining gradient points in the same direction (a cosine of 0.9999 on each batch), as with one
saturated unit of sixteen.

Between 3e-8 and 6e-5 a float16 number is not 0, but has fewer digits than usual, down to none. If that turns
the whole gradient (its cosine to the float32 gradient is below 0.95 on two batches), and a larger loss scale
was seen to correct it (to at most a fifth of the distance from 1), that is reported too.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(640, 8).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(32, "tanh"),
        tf.keras.layers.Dense(16, "tanh"),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(1e-3), initial_scale=1.0)
model.compile(optimizer, "mse", loss_weights=[1e-7])
model.fit(x, x[:, :1], batch_size=32, epochs=5)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(640, 8).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(32, "tanh"),
        tf.keras.layers.Dense(16, "tanh"),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(1e-3))
model.compile(optimizer, "mse", loss_weights=[1e-7])
model.fit(x, x[:, :1], batch_size=32, epochs=5)
```

## Versions

All.

## Where users met it

Micikevicius et al., Mixed Precision Training (2018), section 3.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE
from mpdoctor.facts.reference import FAR, ReferenceFacts, ScaleRoom, cosine_text, power_text
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.scale_to_write import ScaleToWrite, scale_to_write
from mpdoctor.semantics.live.verdict import finds_its_scale

SEVERITY = Severity.WARNING
EXPLAINS = {"MP908": "model"}
BATCHES = 2  # on how many a variable must lose its gradient: on one batch an element of a short bias may cancel out
NAMED = 3
TURNED = 0.95  # cosine of the whole gradient: below it a third of the gradient points elsewhere
AS_FAR = 5  # times as far from 1 as at a larger loss scale
SAME_WAY = 0.9999  # cosine: what was lost is too small to matter to the loss
RIGHT = 0.5  # an exponent nearer to 0 than this: the loss scale is applied to the gradients and divided out again


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    reference = training.reference
    if reference is None or reference.dtype != "float16" or not _is_by_scale(training):
        return
    lost = _shares_lost(reference)
    turned = _turned(reference) if not lost else []
    if not lost and not turned:
        return
    begins = next((step.begins for step in reference.steps if step.begins), "")
    scale, room = _scale_of_gradients(training, reference), reference.room
    yield Finding(
        _story(lost, scale, reference, begins) if lost else _turned_story(turned, scale, reference),
        _remedy(training, room, scale),
        training.model.call.location,
        model=training.model.id,
        layer=begins or None,
        evidence={
            "flushed": lost,
            "scale": scale,
            "begins": begins,
            "room": None if room is None else [room.lowest, room.highest],
            "steps": [step.step + 1 for step in reference.steps],
            **({"cosines": turned} if turned else {}),
        },
    )


def _scale_of_gradients(training: TrainingFacts, reference: ReferenceFacts) -> float | None:
    """The loss scale that the gradients carry; None where the program never multiplies its loss by the scale that its
    optimizer has."""
    depends = training.scale_dependence
    is_never_scaled = depends is not None and depends.loss is not None and not depends.is_scaled
    return None if is_never_scaled else reference.steps[-1].loss_scale


def _is_by_scale(training: TrainingFacts) -> bool:
    """Whether the scale has settled, and the gradients were multiplied by it."""
    depends = training.scale_dependence
    if depends is not None and abs(depends.median) > RIGHT:
        return False
    reference = training.reference
    if reference is None or _is_wrong_before(reference):
        return False
    return finds_its_scale(training)


def _is_wrong_before(reference: ReferenceFacts) -> bool:
    """Whether a layer's output differs from that in float32, which makes gradients 0 that no loss scale can
    preserve."""
    room = reference.room
    outputs = [layer.apart or 0.0 for step in reference.steps for layer in step.layers]
    return max(outputs, default=0.0) >= FAR and (room is None or room.is_empty)


def _shares_lost(reference: ReferenceFacts) -> dict[str, float]:
    """The share that each variable loses, the largest first."""
    missed = _missed(reference)
    losing = [v for step in reference.steps for v in step.variables if v.underflows and v.path in missed]
    batches = Counter(variable.path for variable in losing)
    often = [variable for variable in losing if batches[variable.path] >= min(BATCHES, len(reference.steps))]
    shares = {path: max(v.flushed for v in often if v.path == path) for path in {v.path for v in often}}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def _missed(reference: ReferenceFacts) -> set[str]:
    """The variables that may lose more than elements too small to matter."""
    divergence = reference.divergence
    of_all = [variable for step in reference.steps for variable in step.variables]
    if divergence is None or not divergence.single or divergence.is_apart:
        return {variable.path for variable in of_all}
    return {variable.path for variable in of_all if variable.cosine is None or variable.cosine < SAME_WAY}


def _turned(reference: ReferenceFacts) -> list[float]:
    """Cosines of the batches whose gradients point elsewhere at the current loss scale and not at a larger one, because
    they have too few digits."""
    room = reference.room
    if room is None or room.cosine is None or room.middle is None:
        return []
    smaller = [step for step in reference.steps if step.loss_scale is not None and step.loss_scale < room.middle]
    most = 1 - AS_FAR * (1 - room.cosine)
    cosines = [step.cosine for step in smaller if step.cosine is not None and step.cosine < min(TURNED, most)]
    return cosines if len(cosines) >= min(BATCHES, len(reference.steps)) else []


def _turned_story(cosines: list[float], scale: float | None, reference: ReferenceFacts) -> str:
    room = reference.room
    assert scale is not None and room is not None and room.middle is not None and room.cosine is not None
    return (
        f"At the loss scale {power_text(scale)}, gradients are so small in float16 that they lose digits: their cosine "
        f"to float32's gradient is {cosine_text(min(cosines))}. At {power_text(room.middle)} it is "
        f"{cosine_text(room.cosine)} ({len(reference.steps)} batches compared)."
    )


def _story(lost: dict[str, float], scale: float | None, reference: ReferenceFacts, begins: str) -> str:
    named = ", ".join(f"{share:.0%} of `{path}`" for path, share in list(lost.items())[:NAMED])
    more = f" and parts of {len(lost) - NAMED} more" if len(lost) > NAMED else ""
    where = "Without a loss scale" if scale is None else f"At the loss scale {power_text(scale)}"
    batches = len(reference.steps)
    compared = f"{batches} batch{'es' if batches > 1 else ''} compared"
    way = f" In the backward pass the zeros begin at the output of `{begins}`." if begins else ""
    return f"{where}, gradients become 0 in float16 that are not 0 in float32: {named}{more} ({compared}).{way}"


def _remedy(training: TrainingFacts, room: ScaleRoom | None, scale: float | None) -> str:
    if scale is None:
        if training.reference is not None and training.reference.steps[-1].loss_scale is not None:
            return "Multiply the loss by the loss scale of the optimizer before it is differentiated."
        return "Give the optimizer a loss scale: `LossScaleOptimizer(optimizer)`."
    if room is None:
        return "Raise the loss scale. (No other scale was tried.)"
    to_write = scale_to_write(training)
    if to_write is None or room.lowest is None or room.highest is None:
        over = ", ".join(f"`{path}`" for path in room.overflowing[:NAMED]) or "a gradient"
        way = 'Not tried: `dtype="float32"` for layers on that path.'
        return f"No loss scale fits: none keeps these and stays two powers of 2 below where {over} overflows. {way}"
    return (
        f"{_written(to_write)} keeps them: from {power_text(room.lowest)} to {power_text(room.highest)} "
        "nothing overflowed on the batches tried, and no variable lost 5 % of its gradient."
    )


def _written(to_write: ScaleToWrite) -> str:
    if to_write.text is None:
        return f"The default (leave out `{to_write.argument}`), {power_text(DEFAULT_SCALE)},"
    begins = f", which starts at {power_text(DEFAULT_SCALE)}," if to_write.is_default else ""
    return f"`{to_write.argument}={to_write.text}`{begins}"
