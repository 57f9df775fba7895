"""Optimizers, the LossScaleOptimizer around them, and gradients from the tape to `apply_gradients()`."""
