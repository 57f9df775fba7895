"""`mpdoctor explain loop`: correct custom training loops for one Keras, as Markdown."""

from __future__ import annotations

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.correct_loops import FEATURES, correct_loop

NOT_TOGETHER = "xla"  # with several replicas
SCALING = {
    True: (
        "Call `scale_loss` inside the tape, and `apply` (or `apply_gradients`) outside of it: the wrapper divides the "
        "gradients, skips a step whose gradients are not finite, and adjusts the scale. Anything that needs unscaled "
        "gradients, such as clipping, is a setting of the optimizer inside. Call `build` before the first "
        "`tf.function` is traced; otherwise the trace keeps the initial scale forever."
    ),
    False: (
        "Call `get_scaled_loss` inside the tape, `get_unscaled_gradients` outside of it, and then `apply_gradients`, "
        "which skips a step whose gradients are not finite, and adjusts the scale. Anything that needs unscaled "
        "gradients, such as clipping, goes between the last two."
    ),
}
PENALTY = "The inner gradient also goes through float16 layers: its output is scaled, and the gradient divided again."
NOTES = {
    ("replicas", True): (
        "The wrapper of Keras 3 checks only the first replica's gradients (`mpdoctor explain MP315`): in float16 an "
        "overflow on another replica is written into the weights. So this loop trains in bfloat16, which needs no "
        "loss scale."
    ),
    ("penalty", True): PENALTY,
    ("penalty", False): PENALTY,
    ("accumulate", True): (
        "The optimizer inside adds up gradients that are already divided, and a skipped step adds nothing."
    ),
    ("accumulate", False): (
        "The gradients are divided before they are added up, because the scale may change between two batches. A batch "
        "that overflows makes the sum infinite, and the whole update is skipped."
    ),
    ("xla", False): "In TensorFlow 2.4 `jit_compile` is still called `experimental_compile`.",
}


def markdown_of_loops(keras: Keras) -> str:
    """The loop alone, with each thing that loops do besides, and with all of them together."""
    is_keras3 = keras.is_keras3
    together = [feature for feature in FEATURES if feature != NOT_TOGETHER]
    parts = [
        f"# A correct custom loop for {keras}",
        SCALING[is_keras3],
        "`mpdoctor check train.py` measures whether your own loop is correct: it trains one batch at two loss scales, "
        "and the update must not depend on the scale (MP912).",
        _section("The loop", keras, []),
        *(_section(text.capitalize(), keras, [feature]) for feature, text in FEATURES.items()),
        _section("Everything except XLA", keras, together),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, keras: Keras, features: list[str]) -> str:
    note = NOTES.get((features[0], keras.is_keras3), "") if len(features) == 1 else ""
    package = "tf_keras" if keras.package == "tf_keras" else ""
    code = correct_loop("3" if keras.is_keras3 else "2", features, package)
    return "\n\n".join(filter(None, [f"## {title}", note, f"```python\n{code}```"]))
