"""`mpdoctor explain loop`: custom training loops that are right in one Keras, as Markdown."""

from __future__ import annotations

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.correct_loops import FEATURES, correct_loop

NAME = "loop"
NOT_TOGETHER = "xla"  # with several replicas
SCALING = {
    True: (
        "`scale_loss` inside the tape, and `apply` (or `apply_gradients`) outside of it: the wrapper divides the "
        "gradients, skips a step whose gradients are not finite, and moves the scale. What is to happen to unscaled "
        "gradients, clipping above all, is a setting of the optimizer inside. `build` before the first `tf.function` "
        "is traced, else the trace keeps the initial scale for ever."
    ),
    False: (
        "`get_scaled_loss` inside the tape, `get_unscaled_gradients` outside of it, and then `apply_gradients`, which "
        "skips a step whose gradients are not finite, and moves the scale. What is to happen to unscaled gradients, "
        "clipping above all, stands between the last two."
    ),
}
PENALTY = "The inner gradient goes back through float16 layers, too: its output is scaled, and the slope divided."
NOTES = {
    ("replicas", True): (
        "The wrapper of Keras 3 looks at the gradients of the first replica alone (`mpdoctor explain MP315`): in "
        "float16 an overflow on another one is written into the weights. So this one trains in bfloat16, which wants "
        "no loss scale."
    ),
    ("penalty", True): PENALTY,
    ("penalty", False): PENALTY,
    ("accumulate", True): (
        "The optimizer inside adds up what was divided already, and a step that is skipped adds nothing."
    ),
    ("accumulate", False): (
        "What is added up was divided first, because the scale may move between two batches. A batch that overflows "
        "makes the sum infinite, and the whole update is skipped."
    ),
    ("xla", False): "In TensorFlow 2.4 `jit_compile` is still called `experimental_compile`.",
}


def markdown_of_loops(keras: Keras) -> str:
    """The loop alone, with each thing that loops do besides, and with all of them together."""
    is_keras3 = keras.is_keras3
    together = [feature for feature in FEATURES if feature != NOT_TOGETHER]
    parts = [
        f"# A custom loop that is right in {keras}",
        SCALING[is_keras3],
        "`mpdoctor check train.py` measures whether a loop of yours is: it trains one batch at two loss scales, and "
        "the update must not depend on them (MP912).",
        _section("The loop", keras, []),
        *(_section(text.capitalize(), keras, [feature]) for feature, text in FEATURES.items()),
        _section("All of it, but for XLA", keras, together),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, keras: Keras, features: list[str]) -> str:
    note = NOTES.get((features[0], keras.is_keras3), "") if len(features) == 1 else ""
    package = "tf_keras" if keras.package == "tf_keras" else ""
    code = correct_loop("3" if keras.is_keras3 else "2", features, package)
    return "\n\n".join(filter(None, [f"## {title}", note, f"```python\n{code}```"]))
