"""Reporters: pure functions from a diagnosis to text, one module a format, each with a `render`."""
