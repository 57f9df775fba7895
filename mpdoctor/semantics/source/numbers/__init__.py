"""Numbers and tensors of a program: constants, reductions, shapes, bounds."""
