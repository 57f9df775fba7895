"""Fixes applied: the edits that rules give, put into files, notebooks and standard input, or shown as a diff.

Everything is done in memory, in rounds, until a round changes nothing; only then files are written, each at once, and
none that was changed by somebody else meanwhile.
"""
