"""A saved model, mended: a new file with other dtype policies and the same weights."""
