"""Whole programs: models, data, branches, saved files."""
