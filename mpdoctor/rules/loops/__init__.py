"""Custom training loops: scale, unscale, clip, apply."""
