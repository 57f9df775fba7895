"""Remedies, tried: a failing step is run again with layers in float32, until the fewest are found that heal it."""
