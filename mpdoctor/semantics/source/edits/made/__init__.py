"""Edits at the calls that make layers, models, optimizers, tensors and weights."""
