"""Mends a saved model: writes a new file with other dtype policies and the same weights."""
