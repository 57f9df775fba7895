"""Settings in files are read as Python's own readers read them, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from mpdoctor.source.plain_settings import UNREAD, settings_in

YAML = """\
# A run of the small model.
---
seed: 7
train:
  precision: mixed_float16   # or float32
  "loss scale": 1024.0
  lr: 1e-3
  decay: 1.0e-4
  amp: yes
  resume: ~
  clip:
model:
    width: 1_024
    name: 'small # one'
    layers: [64, 32, relu]
    stages:
    - 3
    - 4
    blocks:
      - kind: conv
        width: 3
      - plain
    empty: {}
    shared: &base
      a: 1
    note: >
      several lines
      of text
    after: end
url: http://localhost:80/x
off-by-one: -1
"""
AS_READ: Any = {
    "seed": 7,
    "train": {
        "precision": "mixed_float16",
        "loss scale": 1024.0,
        "lr": "1e-3",
        "decay": 1e-4,
        "amp": True,
        "resume": None,
        "clip": None,
    },
    "model": {
        "width": 1024,
        "name": "small # one",
        "layers": [64, 32, "relu"],
        "stages": [3, 4],
        "blocks": [UNREAD, "plain"],
        "empty": UNREAD,
        "shared": UNREAD,
        "note": UNREAD,
        "after": "end",
    },
    "url": "http://localhost:80/x",
    "off-by-one": -1,
}


def test_what_is_read_of_yaml() -> None:
    assert settings_in(YAML, ".yaml") == AS_READ


def test_yaml_says_the_same_where_it_is_read() -> None:
    yaml = pytest.importorskip("yaml")
    assert _agrees(AS_READ, yaml.safe_load(YAML.replace("# A run of the small model.\n", "")))


def _agrees(read: Any, said: Any) -> bool:
    if read is UNREAD:
        return True
    if isinstance(read, dict):
        return read.keys() == said.keys() and all(_agrees(read[key], said[key]) for key in read)
    if isinstance(read, list):
        return len(read) == len(said) and all(map(_agrees, read, said))
    return bool(read == said and type(read) is type(said))


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("", ".yaml"),
        ("just a text", ".yaml"),
        ("a: 1\n---\nb: 2\n", ".yml"),
        ("a: 1\n  b: 2\n c: 3\n", ".yaml"),
        ("\ta: 1\n", ".yaml"),
        ("{a: 1}", ".yaml"),
        ("a: &base\n  b: 1\nc:\n  <<: *base\n<<: {d: 1}\n", ".yaml"),
        ("{not json", ".json"),
        ("a = = 1", ".toml"),
    ],
)
def test_what_is_not_read(text: str, ending: str) -> None:
    found = settings_in(text, ending)
    assert found is UNREAD or found == {"a": UNREAD}


@pytest.mark.parametrize(
    "value", ["0x10", "012", "1:30", ".inf", "2026-11-28", "!!str 3", "*base", "a: b", "'it''s'", "#'b'"]
)
def test_a_value_that_is_not_read(value: str) -> None:
    assert settings_in(f"a: {value}\nb: 2\n", ".yaml") == {"a": UNREAD, "b": 2}


def test_lists_in_lists_and_keys_behind_them() -> None:
    assert settings_in("a:\n- -\n- 1\n-w: 2\nb:\n  - - 3\n", ".yaml") == {"a": [UNREAD, 1], "-w": 2, "b": [UNREAD]}


def test_json_and_toml() -> None:
    assert settings_in('{"precision": "mixed_float16"}', ".json") == {"precision": "mixed_float16"}
    assert settings_in('[train]\nprecision = "mixed_float16"\n', ".toml") == {"train": {"precision": "mixed_float16"}}
