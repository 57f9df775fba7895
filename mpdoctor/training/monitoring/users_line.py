"""A warning that points to the user's line that trains: the innermost frame outside of libraries."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

TRAINING = Path(__file__).parents[1]
STANDARD_LIBRARY = Path(os.__file__).parent
INSTALLED = {"site-packages", "dist-packages"}
TRAINERS = ("tensorflow", "keras", "tf_keras")  # wherever they are installed: by `pip install --target`, say


def warn_of_training(words: str) -> None:
    """Warn at the innermost frame outside of libraries; where there is none, at the caller's."""
    frame: Any = sys._getframe(1)
    level = 2  # as `warnings.warn` counts from here
    while frame is not None and is_of_library(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, UserWarning, stacklevel=2 if frame is None else level)


def is_of_library(file: str) -> bool:
    """Whether a file belongs to mpdoctor's training, the standard library or an installed package. A notebook's cell
    does not."""
    path = Path(file)
    modules = (sys.modules.get(name) for name in TRAINERS)
    trainers = {Path(module.__file__).parent for module in modules if module is not None and module.__file__}
    return bool(INSTALLED & set(path.parts)) or not {TRAINING, STANDARD_LIBRARY, *trainers}.isdisjoint(path.parents)
