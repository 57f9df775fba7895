"""Repeats a step with everything observed: what broke in it, and how the loss scale behaved."""
