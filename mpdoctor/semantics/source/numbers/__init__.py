"""Numbers and tensors of a program: constants, reductions, losses, their dtypes."""
