"""The loops of Keras 3, text by text."""

from __future__ import annotations

from collections.abc import Collection

from mpdoctor.knowledge.correct_loops.loop import Loop, named


class Keras3Loop(Loop):
    """`scale_loss` and `apply`. The wrapper looks at the first replica's gradients alone, so that several replicas are
    right in bfloat16, which wants no loss scale (MP315)."""

    def __init__(self, features: Collection[str]) -> None:
        super().__init__(features)
        self.is_scaled = "replicas" not in self.has
        self.policy = "mixed_float16" if self.is_scaled else "mixed_bfloat16"

    def optimizer_lines(self, model: str) -> list[str]:
        options = ["1e-3"]
        options += ["global_clipnorm=1.0"] if "clip" in self.has else []
        options += ["gradient_accumulation_steps=4"] if "accumulate" in self.has and not self.adds_up else []
        options += ["use_ema=True", "ema_momentum=0.99"] if "ema" in self.has else []
        inner = f"keras.optimizers.Adam({', '.join(options)})"
        wrapped = f"keras.mixed_precision.LossScaleOptimizer({inner})" if self.is_scaled else inner
        name = named(model, "optimizer")
        return [
            f"{name} = {wrapped}",
            f"{name}.build({model}.trainable_variables)  # before the first tf.function is traced",
            *self.sum_lines(model),
        ]

    @property
    def adds_up(self) -> bool:
        """Whether the loop adds gradients up itself: the inner optimizer does, but for several replicas, where its
        condition stands between them."""
        return {"accumulate", "replicas"} <= self.has

    def scaling(self, model: str) -> list[str]:
        return [f"scaled_loss = {named(model, 'optimizer')}.scale_loss(loss)"] if self.is_scaled else []

    def scaled(self, model: str) -> str:
        return "scaled_loss" if self.is_scaled else "loss"

    def scaled_output(self) -> str:
        return "optimizer.scale_loss(model(x, training=True))" if self.is_scaled else "model(x, training=True)"

    def unscaled_slope(self) -> str:
        return "optimizer.dynamic_scale" if self.is_scaled else "1.0"

    def apply_lines(self, model: str) -> list[str]:
        comment = "  # divides by the scale, or skips the step" if self.is_scaled else ""
        return [f"{named(model, 'optimizer')}.apply(gradients, {model}.trainable_variables){comment}"]

    def after_training(self) -> list[str]:
        if "ema" not in self.has:
            return []
        return [
            f"{named(model, 'optimizer')}.finalize_variable_values({model}.trainable_variables)"
            for model in self.models
        ]
