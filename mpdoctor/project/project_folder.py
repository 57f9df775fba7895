"""What belongs to a project: the folder that is the whole of it, and whether a path leads out of that by a link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from mpdoctor.project.asked_of_system import is_file, is_link, is_named, is_there, names_like, real_path

REPOSITORY = ".git"
_DECLARED = "pyproject.toml"
_DECLARATIONS = (_DECLARED, "setup.py", "setup.cfg")
_MOST_MEMBERS = 8  # of a repository, each of which is looked in for every module
LEADS_OUT = "a link that leads out of the project"


def link_out(path: str, start: str) -> str | None:
    """The link by which a path below a folder comes to what does not belong to that folder's project, None where it
    stays. Links between the packages of one repository stay in it; what Git keeps for itself belongs to nobody's."""
    link = _link_in(path, start)
    return None if link is None or is_in_project(path, start) else link


def is_in_project(path: str, start: str) -> bool:
    """Whether a path, wherever its links lead, lies in the project around a folder, and not in what Git keeps there."""
    root = project_around(start)
    real = Path(real_path(path))
    return real.is_relative_to(root) and REPOSITORY not in real.relative_to(root).parts


class Marks(NamedTuple):
    """What a folder holds that says where a project is."""

    is_repository: bool
    is_project: bool
    members: tuple[Path, ...] = ()  # of a repository: its folders that are projects of their own


def import_roots(folder: Path, known: dict[Path, Marks], passed_over: dict[Path, None]) -> tuple[Path, ...]:
    """The directories that hold the packages of the projects around a folder, the nearest project first: its root and
    its `src`. A script in `examples/` imports them when the project is installed or its root is on PYTHONPATH, and so
    it does those that lie side by side in its repository, each with a setup.py of its own. Last the directory above
    that of a script: many put it on `sys.path`, as those of a repository that holds several programs.

    `known` keeps what was seen in a folder, for those who ask for many. A `src` that is a link out of the project is
    none, and `passed_over` gains it."""
    roots: list[Path] = []
    for above in (folder, *folder.parents):
        if above not in known:
            known[above] = _marks_in(above)
        if known[above].is_project:
            roots.append(above)
            packages = above / "src"
            if link_out(str(packages), str(above)) is None:
                roots.append(packages)
            else:
                passed_over[packages] = None
        if known[above].is_repository:
            roots += [member for member in known[above].members if member not in roots]
            break
    is_script_folder = not known[folder].is_project and not is_there(folder / "__init__.py")
    return (*roots, folder.parent) if is_script_folder and folder.parent not in roots else tuple(roots)


def declares_project(folder: Path) -> bool:
    """Whether a folder holds a file that declares it a Python project."""
    return any(is_file(folder / name) for name in _DECLARATIONS)


def _marks_in(folder: Path) -> Marks:
    is_repository = is_there(folder / REPOSITORY)
    members = _projects_in(folder) if is_repository else ()
    return Marks(is_repository, is_repository or declares_project(folder), members)


def _projects_in(repository: Path) -> tuple[Path, ...]:
    """The folders of a repository that hold a Python project each; () where there are none, or too many to look in."""
    try:
        names = names_like(("[!.]*",), repository)
    except OSError:
        return ()
    folders = [repository / name for name in names if "." not in name]
    projects = tuple(folder for folder in folders if not is_link(folder) and declares_project(folder))
    return projects if len(projects) <= _MOST_MEMBERS else ()


def _link_in(path: str, start: str) -> str | None:
    """The last one on the way from the folder to the path; the folder itself may be one."""
    while len(path) > len(start):
        if is_link(path):
            return path
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    return None


def project_around(folder: str) -> str:
    """The nearest folder upward that is a repository, else the nearest with a pyproject.toml, else the folder; its real
    path."""
    folder = real_path(folder)
    upward = [folder, *map(str, Path(folder).parents)]
    for marker in (REPOSITORY, _DECLARED):
        nearest = next((folder for folder in upward if is_named(os.path.join(folder, marker))), None)
        if nearest is not None:
            return nearest
    return folder
