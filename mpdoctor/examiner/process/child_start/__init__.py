"""A folder for PYTHONPATH: what lies in it runs when Python starts."""
