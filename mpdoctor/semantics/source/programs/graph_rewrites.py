"""TensorFlow's own mixed precision, which rewrites graphs independently of Keras policies."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Write
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, Value, known, options

REWRITES = (
    "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite",
    "tensorflow.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite",
    "tensorflow.compat.v1.train.experimental.enable_mixed_precision_graph_rewrite",
    "tensorflow.mixed_precision.enable_mixed_precision_graph_rewrite",
)
OPTIONS = "tensorflow.config.optimizer.set_experimental_options"
VARIABLES = ("TF_ENABLE_AUTO_MIXED_PRECISION", "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE")


def rewrites(facts: SourceFacts) -> Iterator[tuple[Call | Write, str]]:
    """(where, what) for everything that certainly switches the rewrite of graphs on."""
    for call in facts.calls_of(*REWRITES):
        yield call, call.method
    for call in facts.calls_of(OPTIONS):
        choices = options(call.argument(0, "options"))
        if choices and all(map(_switches_on, choices)):
            yield call, "auto_mixed_precision"
    for event, name, value in _environment_variables(facts):
        if name in VARIABLES and _is_on(known(value)):
            yield event, str(name)


def _switches_on(given: Value) -> bool:
    """Whether it is `{"auto_mixed_precision": True}`."""
    return isinstance(given, Collection) and bool(known(given.entry("auto_mixed_precision")))


def _environment_variables(facts: SourceFacts) -> Iterator[tuple[Call | Write, object, Value | None]]:
    """(event, name, value) of the environment variables that a program sets."""
    for call in facts.calls_of("os.environ.setdefault", "os.putenv"):
        yield call, known(call.argument(0)), call.argument(1)
    for call in facts.calls_of("os.environ.update"):
        yield from ((call, name, value) for name, value in call.keywords)
        written = call.argument(0)
        if isinstance(written, Collection):
            yield from ((call, known(key), value) for key, value in zip(written.keys, written.items, strict=False))
    for write in facts.writes:
        yield write, known(write.index), write.value


def _is_on(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("1", "true")
