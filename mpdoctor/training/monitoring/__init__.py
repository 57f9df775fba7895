"""Watches the loss scale of a training: readings, trouble, and the run file."""
