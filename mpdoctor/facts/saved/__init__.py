"""Saved models: a model in a file, or an inference graph."""
