"""The calls that custom training loops make on a LossScaleOptimizer, by Keras."""

from __future__ import annotations

# Keras 2's, gone in Keras 3, and what to write there.
KERAS2_LOOP = {
    "get_scaled_loss": "`{of}.scale_loss(loss)`",
    "get_unscaled_gradients": "nothing: `apply` and `apply_gradients` unscale by themselves",
    "minimize": "a GradientTape, `{of}.scale_loss(loss)` inside it, and `{of}.apply(gradients, variables)`",
}
SCALING = ("scale_loss", "get_scaled_loss")
APPLYING = ("apply_gradients", "apply")
