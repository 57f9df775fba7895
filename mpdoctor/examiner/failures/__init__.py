"""Turns an exception into facts: the tensors combined, the place, and the library call that raised."""
