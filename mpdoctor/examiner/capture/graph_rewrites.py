"""Whether TensorFlow's own mixed precision is switched on: it rewrites graphs, and no layer shows it."""

from __future__ import annotations

import os
import sys


def rewrites_graphs() -> bool:
    """Whether the rewrite is switched on by the environment or by its option, which
    `enable_mixed_precision_graph_rewrite` sets too."""
    if os.environ.get("TF_ENABLE_AUTO_MIXED_PRECISION", "").lower() in ("1", "true"):
        return True
    config = getattr(sys.modules.get("tensorflow"), "config", None)  # there is none with another backend of Keras 3
    options = getattr(getattr(config, "optimizer", None), "get_experimental_options", None)
    return options is not None and bool(options().get("auto_mixed_precision"))
