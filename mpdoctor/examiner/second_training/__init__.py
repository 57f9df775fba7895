"""A training, run once more from its first weights with the layers in float32 that healed its failing batches."""
