"""The loops of Keras 2, text by text."""

from __future__ import annotations

from mpdoctor.knowledge.correct_loops.loop import Loop, named


class Keras2Loop(Loop):
    """`get_scaled_loss`, `get_unscaled_gradients` and `apply_gradients`."""

    def optimizer_lines(self, model: str) -> list[str]:
        name = named(model, "optimizer")
        lines = [f"{name} = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(1e-3))"]
        lines += self.sum_lines(model)
        if "ema" in self.has:
            lines += [
                f"{named(model, 'averages')} = [",
                "    tf.Variable(tf.identity(variable), trainable=False)",
                f"    for variable in {model}.trainable_variables",
                "]",
            ]
        return lines

    def scaling(self, model: str) -> list[str]:
        return [f"scaled_loss = {named(model, 'optimizer')}.get_scaled_loss(loss)"]

    def scaled(self, model: str) -> str:
        return "scaled_loss"

    def scaled_output(self) -> str:
        return "optimizer.get_scaled_loss(model(x, training=True))"

    def unscaled_slope(self) -> str:
        return "optimizer.loss_scale"

    def unscaling_lines(self, model: str) -> list[str]:
        return [f"gradients = {named(model, 'optimizer')}.get_unscaled_gradients(gradients)"]

    def apply_lines(self, model: str) -> list[str]:
        lines = []
        if "clip" in self.has:
            lines.append("gradients, _ = tf.clip_by_global_norm(gradients, 1.0)  # after the division")
        lines.append(f"{named(model, 'optimizer')}.apply_gradients(zip(gradients, {model}.trainable_variables))")
        if "ema" in self.has:
            lines += [
                f"for average, variable in zip({named(model, 'averages')}, {model}.trainable_variables):",
                "    average.assign(0.99 * average + 0.01 * variable)",
            ]
        return lines
