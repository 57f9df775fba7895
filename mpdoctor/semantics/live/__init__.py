"""What an examination means: verdicts, errors, what broke in a step, devices."""
