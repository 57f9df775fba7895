"""Which Keras a program's own source is written for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mpdoctor.facts.versions import LEGACY_KERAS, LEGACY_KERAS_ON, KerasPackage
from mpdoctor.knowledge.api_names import LIBRARIES
from mpdoctor.program.events import Call, Operation, Use, Write
from mpdoctor.program.values import Api, Collection, Either, Known, Value, known, walk

_KERAS3_ONLY = (
    "keras.ops",
    "keras.config",
    "keras.random",
    "keras.distribution",
    "keras.tree",
    "keras.dtype_policies",
    "keras.DTypePolicy",
    "keras.KerasTensor",
    "keras.quantizers",
)
_GRAPHCORE = "tensorflow.python.ipu"  # only in Graphcore's TensorFlow, which is 2.6 at most
_ENVIRONMENT = {"os.environ", "os.environ.get", "os.getenv"}


def declared_keras(
    path: str, uses: Sequence[Use], calls: Iterable[Call], writes: Iterable[Write]
) -> KerasPackage | None:
    """ "tf_keras", "keras", "tf.keras" (Keras 2 in TensorFlow), or None where the text of this file does not tell, or
    tells different things on different paths. Events of functions that were followed into other files are among those
    given."""
    libraries = [use for use in uses if use.api.root in LIBRARIES]
    first_import = min((use.order for use in libraries), default=None)
    legacy = _legacy_settings(calls, writes)
    if any(first_import is None or order < first_import for order in legacy):
        return "tf_keras"
    libraries = [use for use in libraries if use.location.path == path]
    if any(_is_within(use.api.spelled, _GRAPHCORE) and not use.context.guarded for use in libraries):
        return "tf.keras"
    if any(use.context.guarded or use.context.branches for use in libraries if use.is_import):
        return None
    return _package_of_uses(
        [use for use in libraries if use.api.name == "keras" or use.api.name.startswith("keras.")], bool(legacy)
    )


def _package_of_uses(keras: Sequence[Use], is_legacy_later: bool) -> KerasPackage | None:
    """The Keras package that the names used in a file belong to. `is_legacy_later`: whether the file asks for Keras 2
    only after its first import."""
    roots = {use.api.root for use in keras}
    if roots == {"tf_keras"}:
        return "tf_keras"
    if "tf_keras" in roots or is_legacy_later:
        return None
    is_keras3 = any(_is_within(use.api.name, name) for use in keras if not use.context.guarded for name in _KERAS3_ONLY)
    return "keras" if is_keras3 else None


def _legacy_settings(calls: Iterable[Call], writes: Iterable[Write]) -> list[int]:
    """The places in program order that switch TF_USE_LEGACY_KERAS on, on every path or unless it is set already."""
    orders = [
        write.order
        for write in writes
        if known(write.index) == LEGACY_KERAS and _is_environment(write.of) and known(write.value) in LEGACY_KERAS_ON
        if _is_certain(write)
    ]
    return orders + [call.order for call in calls if _switches_on(call) and _is_certain(call)]


def _switches_on(call: Call) -> bool:
    """Whether a call of `os` sets the variable to what TensorFlow takes for yes."""
    name = call.callee.name if isinstance(call.callee, Api) else ""
    if name in ("os.environ.setdefault", "os.putenv"):
        return known(call.argument(0)) == LEGACY_KERAS and known(call.argument(1)) in LEGACY_KERAS_ON
    if name == "os.environ.update":
        given = call.argument(0)
        is_given = isinstance(given, Collection) and known(given.entry(LEGACY_KERAS)) in LEGACY_KERAS_ON
        return is_given or known(call.keyword(LEGACY_KERAS)) in LEGACY_KERAS_ON
    return False


def _is_certain(event: Call | Write) -> bool:
    return all(_asks_for_setting(branch.test) for branch in event.context.branches)


def _asks_for_setting(test: Value) -> bool:
    """Whether an `if` asks for nothing but this variable: `"TF_USE_LEGACY_KERAS" not in os.environ`,
    `os.environ.get("TF_USE_LEGACY_KERAS") != "1"`."""
    parts = list(walk(test))
    names = [part.name for part in parts if isinstance(part, Api)]
    return (
        any(known(part) == LEGACY_KERAS for part in parts)
        and all(isinstance(part, (Known, Operation, Call, Api, Either)) for part in parts)
        and set(names) <= _ENVIRONMENT
    )


def _is_environment(value: object) -> bool:
    return isinstance(value, Api) and value.name == "os.environ"


def _is_within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")
