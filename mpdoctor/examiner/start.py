"""Started by path in the user's interpreter: makes the package visible, and nothing else of the tool's environment.

python .../mpdoctor/examiner/start.py REQUEST.json
"""

import importlib.machinery
import importlib.util
import os
import sys


def _make_package_visible() -> None:
    """Put `mpdoctor` into sys.modules without its folder's parent on sys.path, where the tool's own
    site-packages (another Python's, often) would come along."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.machinery.ModuleSpec("mpdoctor", None, is_package=True)
    spec.submodule_search_locations = [package]
    sys.modules["mpdoctor"] = importlib.util.module_from_spec(spec)


if __name__ == "__main__":
    sys.path.pop(0)  # this file's own folder
    _make_package_visible()
    from mpdoctor.examiner.main import main

    main(sys.argv[1])
