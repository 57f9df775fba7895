"""Remedies for modules that Python does not find, and for names that a module does not have."""

from __future__ import annotations

import re
from pathlib import PurePath

from mpdoctor.facts.failure import FailureFacts

OTHER_PYTHON = "for the Python that runs your program here, or name another Python with --python"


def package_of_project(failure: FailureFacts) -> str | None:
    """The remedy where a script imports a package of its project, which `python -m` or an installation would let it
    find."""
    missing = re.search(r"^No module named '(\w+)", failure.said_by_library)
    if missing is None or not failure.missing_module_in:
        return None
    folder = failure.missing_module_in
    place = "the working directory" if folder == "." else f"`{folder}`"
    return (
        f"`{missing[1]}` is in {place}, where Python does not look for this file's imports: "
        f"run the check with PYTHONPATH={folder}, or install the project for the Python that runs "
        "your program here."
    )


# Python's words where a module was found, and not the name in it.
_NO_SUCH_NAME = re.compile(
    r"^cannot import name '(?P<name>\w+)' from (?P<partial>partially initialized module )?'(?P<module>[\w.]+)'"
    r"[^/\\]* \((?:consider renaming ')?(?P<file>[^()']+)"
)
_LIBRARIES = ("site-packages", "dist-packages")


def remedy_of_missing_name(failure: FailureFacts) -> str | None:
    """The remedy for a name that a module does not have: none of it is missing, and nothing is to be installed."""
    wanted = _NO_SUCH_NAME.search(failure.said_by_library)
    if wanted is None:
        return None
    name, module, file = wanted["name"], wanted["module"], PurePath(wanted["file"])
    if wanted["file"] == "unknown location":
        return f"`{module}` is a folder without an `__init__.py`, and has no `{name}` in it: name the module that has."
    if not set(_LIBRARIES).isdisjoint(file.parts):
        return (
            f"`{module}` is installed, and has no `{name}`: import it from where this release has it, or name a Python "
            "that has the release for which the program is written (--python)."
        )
    importing = failure.location.path if failure.location is not None else ""
    if importing and file.parts[-len(PurePath(importing).parts) :] == PurePath(importing).parts:
        return f"`{file.name}` imports itself, because it has the name of the package `{module}`: rename the file."
    if wanted["partial"]:
        return (
            f"`{importing or 'The file'}` and `{file.name}` import each other, and `{file.name}` has not come to "
            f"`{name}` yet: move what both need into a third file, or import it inside of the function that uses it."
        )
    return f"`{file.name}` defines no `{name}`: correct the name, or rename the file if another `{module}` is meant."


# Modules that a service of notebooks brings, and no package index has
ONLY_ON_HOST = {"google.colab": "Colab", "kaggle_secrets": "Kaggle", "kaggle_datasets": "Kaggle"}
_NO_SUCH_MODULE = re.compile(r"^No module named '(?P<module>[\w.]+)'(?P<is_file>; '[\w.]+' is not a package)?")


def remedy_of_missing_module(failure: FailureFacts) -> str | None:
    """The remedy for a module that Python does not find. Where its name has a dot, Python has found the package before
    it."""
    missing = _NO_SUCH_MODULE.search(failure.said_by_library)
    if missing is None:
        return None
    module, importer = missing["module"], _importing_library(failure)
    package = module.rpartition(".")[0]
    if missing["is_file"]:
        return f"`{package}` is a file here, and no package: rename it if another `{package}` is meant."
    host = next((host for name, host in ONLY_ON_HOST.items() if f"{module}.".startswith(f"{name}.")), "")
    if host:
        return f"`{module}` is in {host} alone: run this check there, or import it in a `try` and go on without it."
    if package and importer:
        return (
            f"`{importer}` imports `{module}`, which the installed `{package}` does not have: install releases of "
            "both that fit each other, or name a Python that has them (--python)."
        )
    if package:
        return (
            f"`{package}` is there, and has no `{module}`: import it from where this release has it, or name a Python "
            "that has the release for which the program is written (--python)."
        )
    return f"Install `{module}`, which `{importer}` imports, {OTHER_PYTHON}." if importer else None


def _importing_library(failure: FailureFacts) -> str:
    """The installed package whose file raised, such as "keras_cv", or that file, where libraries lie elsewhere; "" for
    a file of the program's own."""
    innermost = failure.frames[-1] if failure.frames else None
    if innermost is None or innermost.own:
        return ""
    parts = PurePath(innermost.path.replace("\\", "/")).parts
    installed = next((number for number, part in enumerate(parts) if part in _LIBRARIES), len(parts))
    return PurePath(parts[installed + 1]).stem if installed + 1 < len(parts) else parts[-1]
