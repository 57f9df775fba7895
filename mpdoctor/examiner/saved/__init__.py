"""Reads the contents of a saved file without loading it."""
