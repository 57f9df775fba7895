"""Repeats a training from its first weights, with the layers in float32 that made its failing batches finite."""
