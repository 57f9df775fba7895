"""The meaning of an examination: verdicts, errors, causes of a broken step, devices."""
