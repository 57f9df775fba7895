"""Runs first in each Python that an examined program starts: edited text there, too; then the user's sitecustomize."""

import os
import sys
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder, spec_from_file_location

FOLDER = os.path.dirname(os.path.abspath(__file__))


def _begin() -> None:
    """The program finds neither this folder nor mpdoctor."""
    sys.dont_write_bytecode = True
    place = os.path.join(os.path.dirname(FOLDER), "edited_source.py")
    spec = spec_from_file_location("mpdoctor.examiner.process.edited_source", place)
    assert spec is not None and spec.loader is not None
    edited_source = module_from_spec(spec)
    spec.loader.exec_module(edited_source)
    edited_source.install_in_child()
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != FOLDER]


def _go_on() -> None:
    """Run the sitecustomize that Python would have found without this file, under its name."""
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":  # and not where somebody imports it by its whole name
    _begin()
    _go_on()
