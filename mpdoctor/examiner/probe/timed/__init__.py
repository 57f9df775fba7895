"""A timed training: its compiled step, without anything added by the probe."""
