"""The calls that custom training loops make on a LossScaleOptimizer, by Keras."""

from __future__ import annotations

# Keras 2's, gone in Keras 3, and what to write there.
KERAS2_LOOP = {
    "get_scaled_loss": "Write `{of}.scale_loss(loss)`.",
    "get_unscaled_gradients": "Delete this call: `apply` and `apply_gradients` unscale by themselves.",
    "minimize": "Write out the step: a GradientTape, `{of}.scale_loss(loss)` inside it, then `{of}.apply(gradients, "
    "variables)`.",
}
# What Python says of an attribute that a LossScaleOptimizer has not.
WRAPPER_LACKS = r"'(?:LossScaleOptimizer|LossScaleOptimizerV[13])' object has no attribute '(\w+)'"
APPLYING = ("apply_gradients", "apply")
SCALING = ("scale_loss", "get_scaled_loss")
ONCE_BUILT = ("dynamic_scale", "step_counter")  # what Keras 3 makes when the wrapper is built
LOSS_SCALE_FACTOR = "loss_scale_factor"  # of any optimizer of Keras 3: fixed, and without it nothing is scaled
# What a LossScaleOptimizer has and a bare optimizer has not, in Keras 2 or in Keras 3 (3.15: there every optimizer has
# `scale_loss`).
OF_WRAPPER = (
    *("get_scaled_loss", "get_unscaled_gradients", "loss_scale", "dynamic", "dynamic_counter"),
    *("inner_optimizer", "initial_scale", "dynamic_growth_steps", "dynamic_scale", "step_counter"),
)
