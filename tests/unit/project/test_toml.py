"""TOML of strangers: no text takes longer than its size allows."""

from __future__ import annotations

import time

import pytest

from mpdoctor.project.toml import table_from_toml

STEPS = 20_000
LONG = {
    "key": "a." * STEPS + "a = 1",
    "key with blanks": "a \t. " * STEPS + "a = 1",
    "quoted key": '"a\\"".\'b\'.' * STEPS + "a = 1",
    "table": "[" + "a." * STEPS + "a]",
    "table in a table": "x = {" + "a." * STEPS + "a = 1}",
}


@pytest.mark.parametrize("name", LONG)
def test_a_key_of_thousands_of_names_is_not_read(name: str) -> None:
    started = time.monotonic()
    with pytest.raises(RecursionError):
        table_from_toml(f"# settings\n{LONG[name]}\n")
    assert time.monotonic() - started < 2


def test_more_than_any_project_has_is_not_read() -> None:
    with pytest.raises(ValueError, match="more than 8,388,608 characters"):
        table_from_toml("a = 1\n" * 2_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "x = [" + "1.5, " * 200 + "2]",
        'x = "' + "www.example." * 200 + 'org"',
        "x = '" + "." * 500 + "'  # " + "." * 500,
        ".".join("abcdefgh") + " = 1",
        "[a.b.c.d]\n" + "".join(f"x{number}.y.z = 1.0\n" for number in range(300)),
    ],
    ids=["numbers", "a text", "dots", "eight names", "many lines"],
)
def test_many_dots_are_no_long_key(text: str) -> None:
    assert table_from_toml(text)
