"""Numbers: constants, losses, metrics."""
