"""Whole programs: models, losses and metrics, data, branches."""
