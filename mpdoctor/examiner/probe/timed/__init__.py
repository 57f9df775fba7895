"""A training that is timed: its compiled step, with nothing of the probe's in it."""
