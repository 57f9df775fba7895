"""The files of autograph, which holds its copies of the user's functions in them: kept in the scratch directory.

TensorFlow makes them in the temporary directory and removes them at an orderly end of the process, which an examination
has not. TensorFlow 2.4 gives them no name of their own.
"""

from __future__ import annotations

import os
import tempfile
from types import ModuleType, SimpleNamespace
from typing import Any, Callable

LOADER = "tensorflow.python.autograph.pyct.loader"
PREFIX = "__autograph_generated_file"
OF_COPY = "tf__"  # with which the name of a copied function begins


def kept_in(folder: str) -> Callable[[ModuleType], None]:
    """What is to be done to the module LOADER once it is imported. `folder` is made when it is first needed."""

    def named_temporary_file(**options: Any) -> Any:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return tempfile.NamedTemporaryFile(**{**options, "dir": folder, "prefix": PREFIX})

    def act(module: ModuleType) -> None:
        module.tempfile = SimpleNamespace(NamedTemporaryFile=named_temporary_file)  # type: ignore[attr-defined]

    return act
