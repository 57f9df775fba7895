"""Saving, loading and converting models."""
