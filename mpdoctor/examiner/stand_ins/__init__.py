"""Stand-ins for datasets and weights that cannot be downloaded."""
