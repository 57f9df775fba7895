"""Gradients of loops by hand: from the tape to `apply_gradients()`, scaled and unscaled, clipped, summed and kept."""
