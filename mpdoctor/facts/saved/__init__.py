"""What was saved: a model in a file, and an inference graph."""
