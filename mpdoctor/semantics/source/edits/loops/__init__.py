"""Edits of custom training loops."""
