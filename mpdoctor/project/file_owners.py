"""Owners of files, who else may change them, and extended attributes. Where a system keeps no owners (Windows), every
file is one's own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_KNOWS_OWNERS = os.name == "posix"


def is_own(status: os.stat_result, path: Path) -> bool:
    """Whether the file at `path`, which has this status, belongs to this user, and nobody else may write to it."""
    return not _KNOWS_OWNERS or (status.st_uid == os.geteuid() and not _others_may_write(status, path))


def is_own_or_of_the_system(status: os.stat_result, path: Path) -> bool:
    """Whether a file belongs to this user or the administrator, and nobody else may write to it."""
    return belongs_to_user_or_system(status) and not (_KNOWS_OWNERS and _others_may_write(status, path))


def belongs_to_user_or_system(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or the administrator, whoever may write to it."""
    return not _KNOWS_OWNERS or status.st_uid in (0, os.geteuid())


def _others_may_write(status: os.stat_result, path: Path) -> bool:
    if stat.S_ISLNK(status.st_mode):  # a link's permissions say nothing: who owns it decides where it leads
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_group_of_one(status, path)


def _is_group_of_one(status: os.stat_result, path: Path) -> bool:
    """Whether the group is one user's own: many systems give each user such a group, and let it write. Where an access
    control list stands behind the group's permissions, it may name others."""
    import grp  # where a group may write, which is not everywhere
    import pwd

    try:
        user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    if (user.pw_gid, user.pw_name) != (group.gr_gid, group.gr_name) or set(group.gr_mem) - {user.pw_name}:
        return False
    return "system.posix_acl_access" not in extended_attributes(path)


def extended_attributes(path: Path) -> list[str]:
    """The names of a file's extended attributes; none where the system or the disk has no such thing."""
    try:
        return os.listxattr(path) if hasattr(os, "listxattr") else []
    except OSError:
        return []
