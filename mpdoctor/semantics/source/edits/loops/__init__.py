"""Edits of training loops of the program's own."""
