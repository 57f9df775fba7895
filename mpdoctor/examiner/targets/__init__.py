"""Runs each kind of target: a script, a factory, a saved model."""
