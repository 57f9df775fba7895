"""The kinds of targets, run: a script, a factory, a saved model."""
