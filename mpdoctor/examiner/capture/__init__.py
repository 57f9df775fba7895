"""What is read from live objects and hooked into them: models, layers, optimizers, data."""
