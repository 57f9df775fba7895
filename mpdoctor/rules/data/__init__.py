"""What the model is fed."""
