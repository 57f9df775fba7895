"""Measured causes of steps that failed, changed no weight or diverged."""
