"""The user's own training, shortened and observed."""
