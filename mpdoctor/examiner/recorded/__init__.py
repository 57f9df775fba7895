"""The batch that a monitor kept on the disk beside a run: read from its file, and trained on first."""
