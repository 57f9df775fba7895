"""Reports of a mended program: as text with a patch that `git apply` takes, and as JSON."""
