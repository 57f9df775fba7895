"""A text whose edits can be left out again, in any combination."""

from __future__ import annotations

import itertools
import random

import pytest

from mpdoctor.mending.layered_text import LayeredText

pytestmark = pytest.mark.fast


def test_an_edit_can_be_left_out_of_those_made_after_it() -> None:
    text = LayeredText("a = Dense(8)\nb = Dense(1)\n")
    assert text.make(1, [(11, 11, ', dtype="float32"')], ()) == frozenset()
    at = text.text((1,)).index("1")
    assert text.make(2, [(at, at + 1, "2, name='b'")], (1,)) == frozenset()
    assert text.text((1, 2)) == "a = Dense(8, dtype=\"float32\")\nb = Dense(2, name='b')\n"
    assert text.text((2,)) == "a = Dense(8)\nb = Dense(2, name='b')\n"
    assert text.text(()) == "a = Dense(8)\nb = Dense(1)\n"
    assert list(text.changes((1, 2))) == [(11, 11, ', dtype="float32"'), (23, 24, "2, name='b'")]
    assert list(text.changes((1, 2), (2,))) == [(23, 24, "2, name='b'")]


@pytest.mark.parametrize(
    ("first", "second", "below"),
    [
        ((2, 4, "XY"), (3, 4, "Z"), {1}),  # changes what was put in
        ((2, 4, "XYZ"), (3, 3, "-"), {1}),  # within it
        ((2, 4, "XY"), (4, 4, "-"), set()),  # behind it
        ((2, 4, "XY"), (2, 2, "-"), set()),  # before it
        ((2, 2, "XY"), (0, 6, ""), {1}),
        ((2, 4, ""), (2, 2, "-"), set()),
        ((2, 2, "XY"), (0, 1, "-"), set()),
    ],
)
def test_an_edit_builds_on_those_whose_text_it_changes(
    first: tuple[int, int, str], second: tuple[int, int, str], below: set[int]
) -> None:
    text = LayeredText("abcdef")
    text.make(1, [first], ())
    assert text.make(2, [second], (1,)) == below
    if not below:
        start, end, put_in = second
        shift = 0 if end <= first[0] else first[1] - first[0] - len(first[2])
        alone = "abcdef"[: start + shift] + put_in + "abcdef"[end + shift :]
        assert text.text((2,)) == alone


def test_with_all_edits_it_is_what_plain_replacing_makes_of_it_and_the_changes_make_the_same() -> None:
    rng = random.Random(7)
    for _ in range(300):
        plain = original = "".join(rng.choice("abc\n") for _ in range(12))
        text = LayeredText(original)
        for number in range(4):
            start = rng.randint(0, len(plain))
            end = min(len(plain), start + rng.randint(0, 3))
            put_in = rng.choice(("", "X", "YZ"))
            text.make(number, [(start, end, put_in)], range(number))
            plain = plain[:start] + put_in + plain[end:]
            assert text.text(range(number + 1)) == plain
        assert text.text(()) == original
        for kept in itertools.chain.from_iterable(itertools.combinations(range(4), size) for size in range(5)):
            made = original
            for start, end, put_in in reversed(list(text.changes(kept))):
                made = made[:start] + put_in + made[end:]
            assert made == text.text(kept)
