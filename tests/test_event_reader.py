"""The line from the examiner, which a script can write into: what the examiner tells arrives as it was told, and
whatever else stands there is passed over and counted."""

from __future__ import annotations

import contextlib
import json
import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mpdoctor.examination import event_reader
from mpdoctor.examination.event_reader import EventReader, Told, event_from_line
from mpdoctor.examiner.protocol.event_kinds import EVENTS, FACTS, VALUES, End, Exited, Note, Stage, Steps
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.facts.environment import EnvironmentFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import StepFacts, TrainingFacts
from mpdoctor.facts.versions import Keras

GOOD = b'{"event": "stage", "text": "good"}\n'
MODEL = ModelFacts("m", "m", "Model", "float32", Keras())
TRAINING = TrainingFacts(MODEL, "real", "CPU", 50, (StepFacts(1.0, True),))
FAILURE = FailureFacts("raised", "script", location=Location("train.py", 3))


def facts(kind: str, told: Any, /, **others: Any) -> dict[str, Any]:
    return {"event": "facts", "kind": kind, "facts": {**asdict(told), **others}}


# --- what the examiner tells ----------------------------------------------------------------------------------------
def test_every_event_arrives_as_it_was_told(tmp_path: Path) -> None:
    events = Events(str(tmp_path / "events"))
    reader = EventReader(tmp_path / "events")
    events.stage("training")
    events.steps(3, 50)
    events.note(python="3.8.1", keras=vars(Keras("tf_keras", "2.15.0")))
    events.note(training_status=["skipped", "no training call"], stand_ins=["mnist"], files_written=[])
    events.note(crashed="Traceback …", not_restored="the optimizer")
    events.exited(9)
    events.exited(3 << 8)
    events.facts("failure", FAILURE)
    events.facts("built", MODEL)
    events.facts("training", TRAINING)
    events.end()
    assert reader.new() == [
        Stage("training"),
        Steps(3, 50),
        Note(python="3.8.1", keras=Keras("tf_keras", "2.15.0")),
        Note(training_status=("skipped", "no training call"), stand_ins=("mnist",), files_written=()),
        Note(crashed="Traceback …", not_restored="the optimizer"),
        Exited(9, None),
        Exited(None, 3),
        Told("failure", FAILURE),
        Told("built", MODEL),
        Told("training", TRAINING),
        End(),
    ]
    assert reader.passed_over == 0
    reader.close()


def with_known_values(kind: type) -> None:
    """Texts of which only a few are known."""
    known = {name: st.sampled_from(values) for name, values in VALUES[kind].items()}
    st.register_type_strategy(kind, st.builds(kind, **known))


with_known_values(Keras)
with_known_values(FailureFacts)
TEXTS = st.dictionaries(st.text(), st.text())
st.register_type_strategy(EnvironmentFacts, st.builds(EnvironmentFacts, packages=TEXTS, variables=TEXTS))


@pytest.mark.parametrize("kind", [kind for kind in FACTS if kind != "built"])
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_facts_arrive(kind: str, data: st.DataObject) -> None:
    told = data.draw(st.from_type(FACTS[kind]))
    line = json.dumps(facts(kind, told))
    assume(not re.search(r"\d{300}", line))
    event = event_from_line(line.encode())
    assert isinstance(event, Told), line
    assert json.dumps(facts(kind, event.facts)) == line  # NaN equals nothing


SINGLE = [
    ("growth_interval", 2000.0, 2000),
    ("initial_scale", 1024, 1024.0),
    ("dynamic", 1, True),
    ("jit_compile", None, False),
    ("device", None, ""),
    ("name", 7, "7"),
    ("initial_scale", float("inf"), float("inf")),
]


@pytest.mark.parametrize(("name", "told", "read"), SINGLE)
def test_what_a_program_gave_to_keras_is_read_as_the_type_says(name: str, told: object, read: object) -> None:
    event = event_from_line(json.dumps(facts("training", TRAINING, **{name: told})).encode())
    assert isinstance(event, Told)
    got = getattr(event.facts, name)
    assert (got, type(got)) == (read, type(read))


# --- what a script tells --------------------------------------------------------------------------------------------
NO_EVENTS: dict[str, bytes | dict[str, Any]] = {
    "nothing": b"",
    "blank": b"   ",
    "no JSON": b"{event: end}",
    "cut": b'{"event": "sta',
    "no UTF-8": b'{"event": "stage", "text": "\xff\xfe"}',
    "null": b"null",
    "a list": b'["event"]',
    "a text": b'"event"',
    "NaN": b"NaN",
    "an integer of 100,000 digits": b'{"event": "steps", "done": ' + b"9" * 100_000 + b', "total": 1}',
    "100,000 brackets": b"[" * 100_000,
    "100,000 brackets in an event": b'{"event": "stage", "text": ' + b"[" * 100_000,
    "100,000 nested objects": b'{"event": ' * 100_000,
    "no kind": {"text": "x"},
    "an unknown kind": {"event": "curse"},
    "a kind that cannot be looked up": {"event": []},
    "a kind that is null": {"event": None},
    "a stage without text": {"event": "stage"},
    "a stage with a list": {"event": "stage", "text": ["x"]},
    "a stage with more": {"event": "stage", "text": "x", "more": 1},
    "steps without a total": {"event": "steps", "done": 1},
    "steps in words": {"event": "steps", "done": "1", "total": "2"},
    "steps of NaN": {"event": "steps", "done": float("nan"), "total": 1},
    "steps beyond all": {"event": "steps", "done": 10**400, "total": 1},
    "a note of something else": {"event": "note", "rumour": "x"},
    "a note of a wrong type": {"event": "note", "python": {}},
    "a note of letters": {"event": "note", "stand_ins": "mnist"},
    "a status of its own": {"event": "note", "training_status": ["great", ""]},
    "half a status": {"event": "note", "training_status": ["done"]},
    "an unknown Keras": {"event": "note", "keras": {"package": "theano"}},
    "an end with more": {"event": "end", "more": 1},
    "an exit in words": {"event": "exited", "signal": "KILL", "exit_code": None},
    "facts without a kind": {"event": "facts", "facts": {}},
    "facts of an unknown kind": facts("curse", FAILURE),
    "facts of no kind that can be looked up": {"event": "facts", "kind": {}, "facts": {}},
    "no facts": {"event": "facts", "kind": "failure"},
    "facts that are null": {"event": "facts", "kind": "model", "facts": None},
    "facts that are a list": {"event": "facts", "kind": "environment", "facts": []},
    "facts that are a text": {"event": "facts", "kind": "environment", "facts": "python"},
    "a model without an id": {"event": "facts", "kind": "model", "facts": {"name": "m"}},
    "a model with a list for a name": facts("model", MODEL, name=["m"]),
    "a model with letters for layers": facts("model", MODEL, layers="abc"),
    "a model with an unknown field": facts("model", MODEL, colour="red"),
    "a training with a model's name": facts("training", TRAINING, model="m"),
    "a training of NaN steps": facts("training", TRAINING, steps_wanted=float("nan")),
    "a training with half a pair": facts("training", TRAINING, not_looked=[["MP912"]]),
    "a failure of its own": facts("failure", FAILURE, kind="glorious"),
    "a failure at another time": facts("failure", FAILURE, during="lunch"),
    "a failure at a line in words": facts("failure", FAILURE, location={"path": "train.py", "line": "3"}),
    "an environment with lists": {"event": "facts", "kind": "environment", "facts": {"variables": {"A": [1]}}},
}


@pytest.mark.parametrize("told", NO_EVENTS.values(), ids=NO_EVENTS)
def test_what_is_no_event_is_passed_over_and_counted(told: bytes | dict[str, Any], tmp_path: Path) -> None:
    line = told if isinstance(told, bytes) else json.dumps(told).encode()
    with reader_of(tmp_path / "events", line + b"\n" + GOOD) as reader:
        assert reader.new() == [Stage("good")]
        assert reader.passed_over == 1


@contextlib.contextmanager
def reader_of(path: Path, content: bytes) -> Iterator[EventReader]:
    path.write_bytes(content)
    with contextlib.closing(EventReader(path)) as reader:
        yield reader


WORDS = [*EVENTS, *FACTS, "event", "facts", "kind", "text", "done", "total", "id", "name", "location", "line"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=5),
    max_leaves=12,
)
LINES = st.binary() | JSON.map(lambda told: json.dumps(told).encode()) | st.sampled_from([GOOD[:-1], GOOD[:20]])


@given(st.lists(LINES))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, told: list[bytes]) -> None:
    content = b"".join(line.replace(b"\n", b"") + b"\n" for line in told)
    with reader_of(tmp_path_factory.mktemp("events") / "events", content + GOOD) as reader:
        events = reader.new()
        assert events[-1] == Stage("good")
        assert len(events) + reader.passed_over == len(told) + 1


@given(st.sampled_from([MODEL, TRAINING, FAILURE]), st.data())
def test_a_field_of_another_type_is_no_event(told: Any, data: st.DataObject) -> None:
    """Whatever stands in for a field: it is read as its type says, or the whole is no event."""
    kind = next(kind for kind, of in FACTS.items() if of is type(told))
    name = data.draw(st.sampled_from([one.name for one in fields(told)]))
    event = event_from_line(json.dumps(facts(kind, told, **{name: data.draw(JSON)})).encode())
    if isinstance(event, Told):
        types = get_type_hints(type(told))[name]
        assert is_of(getattr(event.facts, name), types)


def is_of(value: Any, kind: Any) -> bool:
    if get_origin(kind) is UnionType:
        return any(is_of(value, one) for one in get_args(kind))
    return isinstance(value, get_origin(kind) or kind)


# --- much of it -----------------------------------------------------------------------------------------------------
def everything(reader: EventReader) -> list[Any]:
    found = reader.new()
    while reader.is_behind:
        found += reader.new()
    return found


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "events"
    with path.open("wb") as file:
        file.truncate(300_000_000)
    with path.open("ab") as file:
        file.write(b"\n" + GOOD)
    with contextlib.closing(EventReader(path)) as reader:
        tracemalloc.start()
        try:
            assert everything(reader) == [Stage("good")]
            assert tracemalloc.get_traced_memory()[1] < 5 * event_reader.LONGEST_LINE
        finally:
            tracemalloc.stop()
        assert reader.passed_over == 1


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_PASSED_OVER"])
def test_a_file_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(event_reader, limit, 1 << 22 if limit == "MOST_BYTES" else 1000)
    path = tmp_path / "events"
    path.write_bytes(b"{}\n" * 2000)
    with path.open("ab") as file:
        file.truncate(1 << 40)
    with contextlib.closing(EventReader(path)) as reader:
        assert everything(reader) == []
        assert reader.has_given_up


def test_one_look_reads_so_much_that_the_time_is_looked_at_in_between(tmp_path: Path) -> None:
    with reader_of(tmp_path / "events", GOOD * 100_000) as reader:
        first = reader.new()
        assert 0 < len(first) < 100_000 and reader.is_behind
        assert len(first) + len(everything(reader)) == 100_000


def test_an_event_half_written_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "events"
    reader = EventReader(path)
    assert reader.new() == []
    whole = b"".join(json.dumps({"event": "stage", "text": text}).encode() + b"\n" for text in ("one", "two", "three"))
    got = []
    for place in range(0, len(whole), 7):
        with path.open("ab") as file:
            file.write(whole[place : place + 7])
        got += reader.new()
    assert got == [Stage("one"), Stage("two"), Stage("three")]
    assert reader.new() == []
    reader.close()
