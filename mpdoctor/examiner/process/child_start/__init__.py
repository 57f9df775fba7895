"""A folder for PYTHONPATH: its sitecustomize runs whenever Python starts."""
