"""What --show-output shows of a saved file commands neither a terminal nor a CI; a script's output is as it is."""

from __future__ import annotations

import io

import pytest

from mpdoctor.examination.shown_output import stream_to_show

PRINTED = (
    b"\x1b]0;owned\x07\n::error::of the file\n  ::set-output::x\n##vso[task.x]\r\nloss:\t\xc3\xbc \xe2\x80\xae\xff\n"
)


def shown(kind: str) -> bytes:
    stream = io.BytesIO()
    harmless = stream_to_show(kind, stream)
    for line in io.BytesIO(PRINTED):
        harmless.write(line)
        harmless.flush()
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["saved-model", "keras-file", "hdf5-file"])
def test_a_saved_files_output_is_harmless(kind: str) -> None:
    assert shown(kind).decode().splitlines() == [
        r"| \x1b]0;owned\x07",
        "| ::error::of the file",
        "|   ::set-output::x",
        r"| #\#vso[task.x]",
        "| loss:\tü \\u202e�",
    ]


def test_a_scripts_output_is_its_own() -> None:
    assert shown("script") == PRINTED
