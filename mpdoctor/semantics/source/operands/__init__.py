"""What operations take: casts, and the tensors of two dtypes that meet in one, which TensorFlow refuses."""
