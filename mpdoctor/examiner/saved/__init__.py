"""What lies in a saved file, read without loading it."""
