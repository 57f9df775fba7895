"""Reads live objects and hooks into them: models, layers, optimizers, data."""
