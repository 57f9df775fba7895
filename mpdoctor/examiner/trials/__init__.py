"""Tries remedies: runs a failing step again with layers in float32, and finds the fewest that make it finite."""
