"""Messages of protocol buffers, counted before they are parsed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from checking import needs_tensorflow

from mpdoctor.examiner.exceptions import Unusable

pytestmark = needs_tensorflow
TAIL = "which is as many as mpdoctor reads: no model has so many. Write it again"


@pytest.fixture(autouse=True)
def lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    from mpdoctor.examiner.saved import counted_messages

    monkeypatch.setattr(counted_messages, "MOST_MESSAGES", counted_messages.MOST_MESSAGES // 100)
    monkeypatch.setattr(counted_messages, "MOST_FIELDS", counted_messages.MOST_FIELDS // 100)


def inside(number: int, content: bytes) -> bytes:
    """A message as the field of this number."""
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def refused(folder: Path, content: bytes) -> str:
    from mpdoctor.examiner.saved.directories import saved_directory_from_path

    (folder / "saved_model.pb").write_bytes(content)
    with pytest.raises(Unusable) as told:
        saved_directory_from_path(str(folder))
    return str(told.value)


# Fields of a SavedModel: 2 a graph; of that: 2 a GraphDef, 4 a collection, 6 an asset; of a GraphDef: 1 a node; of a
# node: 5 an attribute, 3 the name of an input.
MANY = b"\x0a\0" * 50_000


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(inside(2, inside(2, MANY)), id="nodes"),
        pytest.param(inside(2, inside(2, inside(1, b"\x2a\0" * 50_000))), id="attributes"),
        pytest.param(inside(2, b"\x32\0" * 50_000), id="assets"),
        pytest.param(inside(2, inside(2, MANY)) + b"\xff", id="damaged"),
        pytest.param(b"\x1b\x1c" + inside(2, inside(2, MANY)), id="behind-a-group"),
        pytest.param(inside(2, b"\x23" + inside(2, MANY) + b"\x24"), id="in-a-group"),
    ],
)
def test_more_messages_than_any_model_has_are_not_parsed(tmp_path: Path, content: bytes) -> None:
    assert f"saved_model.pb holds more than 40,000 messages, {TAIL}" in refused(tmp_path, content)


def test_more_fields_than_any_model_has_are_not_parsed(tmp_path: Path) -> None:
    names = inside(2, inside(2, inside(1, b"\x1a\0" * 125_000)))
    assert f"saved_model.pb holds more than 120,000 fields, {TAIL}" in refused(tmp_path, names)


def test_keras_metadata_is_counted_as_well(tmp_path: Path) -> None:
    pytest.importorskip("tf_keras")
    import tensorflow as tf

    from mpdoctor.examiner.saved.directories import SavedDirectory

    directory = SavedDirectory(str(tmp_path), tf.compat.v1.MetaGraphDef(), (), MANY)
    with pytest.raises(Unusable, match=r"keras_metadata\.pb holds more than 40,000 messages"):
        directory.keras_file("tf_keras")


def graph() -> Any:
    """With messages in messages, maps, texts and numbers of every kind."""
    import tensorflow as tf

    with tf.Graph().as_default() as made:
        given = tf.compat.v1.placeholder(tf.float32, [None, 3])
        tf.nn.softmax(tf.matmul(given, tf.constant([[1.0, 2.0]] * 3)))
    return made.as_graph_def(add_shapes=True)


def messages_in(message: Any) -> int:
    count = 0
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            is_message = field.message_type.fields_by_name["value"].message_type is not None
            count += len(value) + (sum(1 + messages_in(value[key]) for key in value) if is_message else 0)
        else:
            for one in [value] if hasattr(value, "ListFields") else value:
                count += 1 + messages_in(one)
    return count


def test_each_message_is_counted_once() -> None:
    from mpdoctor.examiner.saved.counted_messages import counted

    made = graph()
    messages, fields = counted(made.SerializeToString(), made.DESCRIPTOR)
    assert messages == messages_in(made) > 20
    assert fields > messages


def test_damaged_bytes_are_counted_to_an_end() -> None:
    from mpdoctor.examiner.saved.counted_messages import counted

    made = graph()
    whole, numbers = made.SerializeToString(), random.Random(1)
    for _ in range(300):
        bent = bytearray(whole[: numbers.randrange(len(whole))])
        for _ in range(min(3, len(bent))):
            bent[numbers.randrange(len(bent))] = numbers.randrange(256)
        messages, fields = counted(bytes(bent), made.DESCRIPTOR)
        assert 0 <= messages <= fields <= len(bent)
