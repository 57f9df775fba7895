"""From findings to what is reported: which finding is the primary one, suppressions, order, excerpts."""
