"""TensorFlow's own mixed precision, which rewrites graphs independently of Keras policies."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Write
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, known, options

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
        given = options(call.argument(0, "options"))
        if given and all(
            isinstance(options_given, Collection) and known(options_given.entry("auto_mixed_precision"))
            for options_given in given
        ):
            yield call, "auto_mixed_precision"
    for call in facts.calls_of("os.environ.setdefault", "os.putenv"):
        if known(call.argument(0)) in VARIABLES and _is_on(known(call.argument(1))):
            yield call, str(known(call.argument(0)))
    for call in facts.calls_of("os.environ.update"):
        variables = list(call.keywords)
        written = call.argument(0)
        if isinstance(written, Collection):
            variables += [(str(known(key)), value) for key, value in zip(written.keys, written.items, strict=False)]
        for name, value in variables:
            if name in VARIABLES and _is_on(known(value)):
                yield call, name
    for write in facts.writes:
        if known(write.index) in VARIABLES and _is_on(known(write.value)):
            yield write, str(known(write.index))


def _is_on(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("1", "true")
