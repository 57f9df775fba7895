"""Owners of files, and whether another user may change them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mpdoctor.project.file_owners import is_own, is_own_or_of_the_system

grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")

ME, SOMEBODY, MINE, STAFF, OF_TWO, NAMELESS = 1000, 1001, 1000, 20, 1002, 4711
GROUPS = {
    MINE: grp.struct_group(("me", "x", MINE, [])),
    STAFF: grp.struct_group(("staff", "x", STAFF, [])),
    OF_TWO: grp.struct_group(("me", "x", OF_TWO, ["me", "somebody"])),
    0: grp.struct_group(("root", "x", 0, ["root"])),
}
USERS = {
    ME: pwd.struct_passwd(("me", "x", ME, MINE, "", "/", "/bin/sh")),
    0: pwd.struct_passwd(("root", "x", 0, 0, "", "/", "/bin/sh")),
}


@pytest.mark.parametrize(
    ("owner", "group", "mode", "own", "of_the_system"),
    [
        (ME, STAFF, 0o700, True, True),
        (ME, STAFF, 0o755, True, True),
        (SOMEBODY, MINE, 0o700, False, False),
        (0, 0, 0o755, False, True),
        (0, 0, 0o775, False, True),
        (0, STAFF, 0o775, False, False),
        (0, 0, 0o1777, False, False),
        (ME, MINE, 0o777, False, False),
        (ME, MINE, 0o702, False, False),
        (ME, MINE, 0o775, True, True),  # a umask of 002, as many systems have it
        (ME, STAFF, 0o775, False, False),
        (ME, OF_TWO, 0o775, False, False),
        (ME, NAMELESS, 0o775, False, False),
        (ME, STAFF, stat.S_IFLNK | 0o777, True, True),
        (SOMEBODY, STAFF, stat.S_IFLNK | 0o777, False, False),
    ],
)
def test_what_others_may_have_changed_is_not_ones_own(
    monkeypatch: pytest.MonkeyPatch, owner: int, group: int, mode: int, own: bool, of_the_system: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    monkeypatch.setattr(pwd, "getpwuid", USERS.__getitem__)
    monkeypatch.setattr(grp, "getgrgid", GROUPS.__getitem__)
    status = os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
    place = Path("/")
    assert (is_own(status, place), is_own_or_of_the_system(status, place)) == (own, of_the_system)


@pytest.mark.skipif(not hasattr(os, "listxattr"), reason="no access control lists to see")
def test_an_access_control_list_may_name_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    monkeypatch.setattr(pwd, "getpwuid", USERS.__getitem__)
    monkeypatch.setattr(grp, "getgrgid", GROUPS.__getitem__)
    status = os.stat_result((0o775, 0, 0, 1, ME, MINE, 0, 0, 0, 0))
    for attributes, expected in ((["user.note"], True), (["system.posix_acl_access"], False)):
        monkeypatch.setattr(os, "listxattr", lambda _, named=attributes: named)
        assert is_own(status, Path("/")) is expected
