"""Edits by which a loss, an output or a softmax is computed in float32."""
