"""Lists, tuples, sets and dicts: written out, read, changed in place, and made or asked by calls."""
