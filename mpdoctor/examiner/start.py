"""Started by path in the user's interpreter: makes the package visible, and nothing else of the tool's environment.

python .../mpdoctor/examiner/start.py REQUEST.json
python .../mpdoctor/examiner/start.py --foreground REQUEST.json    by hand: one process, events and tracebacks printed
"""

import sys

STARTED_WITH = frozenset(sys.modules)  # what a plain run of a script begins with
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    sys.path.pop(0)  # this file's own folder

import os  # noqa: E402 - which Python has loaded, as it has what comes next; nothing is to be looked for in this folder
from _frozen_importlib import ModuleSpec, module_from_spec  # noqa: E402


def _make_package_visible() -> None:
    """Put `mpdoctor` into sys.modules without its folder's parent on sys.path, where the tool's own
    site-packages (another Python's, often) would come along."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = ModuleSpec("mpdoctor", None, is_package=True)
    spec.submodule_search_locations = [package]
    sys.modules["mpdoctor"] = module_from_spec(spec)


if __name__ == "__main__":
    _make_package_visible()
    from mpdoctor.examiner.own_imports import OwnImports

    imports = OwnImports(STARTED_WITH)
    imports.begin()
    from mpdoctor.examiner.main import main

    main(sys.argv[-1], imports, foreground="--foreground" in sys.argv[1:-1])
