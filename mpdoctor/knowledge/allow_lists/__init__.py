"""Explicit lists of what a saved file may name and contain: everything else is refused."""
