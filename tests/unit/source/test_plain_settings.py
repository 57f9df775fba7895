"""Settings in files become plain values, whatever the file says besides."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from mpdoctor.source.plain_settings import UNREAD, settings_in

YAML = """\
# A run of the small model.
---
seed: 7
train:
  precision: mixed_float16   # or float32
  lr: 1e-3
  amp: yes
  resume: ~
  since: 2026-11-28
model:
    name: 'small # one'
    layers: [64, 32, relu]
    blocks:
      - kind: conv
        width: 3
      - plain
    shared: &base
      a: 1
    note: >
      several lines
      of text
"""
AS_READ: Any = {
    "seed": 7,
    "train": {
        "precision": "mixed_float16",
        "lr": "1e-3",
        "amp": True,
        "resume": None,
        "since": datetime.date(2026, 11, 28),
    },
    "model": {
        "name": "small # one",
        "layers": [64, 32, "relu"],
        "blocks": [{"kind": "conv", "width": 3}, "plain"],
        "shared": {"a": 1},
        "note": "several lines of text\n",
    },
}
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize(
    ("text", "ending", "expected"),
    [
        (YAML, ".yaml", AS_READ),
        ('{"precision": "mixed_float16"}', ".json", {"precision": "mixed_float16"}),
        ('[train]\nprecision = "mixed_float16"\n', ".toml", {"train": {"precision": "mixed_float16"}}),
        ("", ".yml", None),
        ("just a text", ".yaml", "just a text"),
    ],
    ids=["yaml", "json", "toml", "empty", "text"],
)
def test_what_is_read(text: str, ending: str, expected: Any) -> None:
    assert settings_in(text, ending) == expected


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("a: 1\n---\nb: 2\n", ".yml"),
        ("a: 1\n  b: 2\n c: 3\n", ".yaml"),
        ("\ta: 1\n", ".yaml"),
        ("a: &base\n  b: 1\nc:\n  <<: *base\n", ".yaml"),
        (BOMB, ".yaml"),
        ("# @package _global_\na: 1\n", ".yaml"),
        ("a: !!python/object/apply:os.system ['echo ran']\n", ".yaml"),
        ("a: !own 1\n", ".yaml"),
        ("? [1, 2]\n: {[3]: 4}\n", ".yaml"),
        ("a: 1" + "0" * 9000, ".yaml"),
        ("a: !!bool maybe\n", ".yaml"),
        ("a: !!int ''\n", ".yaml"),
        ("a: !!timestamp never\n", ".yaml"),
        ("[" * 50_000, ".yaml"),
        ("- " * 40_000, ".yaml"),
        ("[" * 90_000, ".json"),
        ("{not json", ".json"),
        ("a = = 1", ".toml"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_not_read(text: str, ending: str) -> None:
    assert settings_in(text, ending) is UNREAD
