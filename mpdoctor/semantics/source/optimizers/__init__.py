"""Optimizers, and the LossScaleOptimizer around them."""
