"""What a program shows: what it prints, logs and hands to metrics, and the values in that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.values import Api, Collection, Known, Value, known, options

LOGGING = ("builtins.print", "tensorflow.print", "tensorflow.summary.scalar", "wandb.log", "mlflow.log_metric")
LOGGING_PLACES = ("logging.", "absl.logging.")
# Methods of metrics, of a SummaryWriter, of tqdm's bars and of a logger.
REPORTING = ("update_state", "add_scalar", "set_postfix", "set_description")
TELLING = ("debug", "info", "warning")


def values_shown(value: Value) -> Iterator[Value]:
    """The value itself; for a dict, a list, a tuple or a dataclass the values in it, except under a key that says
    "scaled"."""
    waiting, seen = [*options(value)], set[int]()
    for option in waiting:
        if id(option) in seen:
            continue
        seen.add(id(option))
        inside = _named_values(option)
        if inside is None:
            yield option
            continue
        waiting += [part for name, item in inside if "scale" not in name.lower() for part in options(item)]


def _named_values(value: Value) -> list[tuple[str, Value]] | None:
    """The values in a collection, a record or a formatted text, each with its name, "" where it has none."""
    if isinstance(value, Call) and _is_record(value):
        return [*zip(_fields(value), value.args, strict=False), *value.keywords]
    if isinstance(value, Collection):
        keys = value.keys or (Known(),) * len(value.items)
        names = [key.value if isinstance(key, Known) and isinstance(key.value, str) else "" for key in keys]
        return list(zip(names, value.items, strict=True))
    if isinstance(value, Operation) and (value.operator == "f-string" or _text(value) is not None):
        return [("", part) for part in value.operands]
    if isinstance(value, Call) and _text(value) is not None:
        return [*(("", part) for part in value.args), *value.keywords]
    return None


def _text(value: Value) -> Known | None:
    """The text that `"…".format(loss)` or `"…" % loss` puts values into."""
    if isinstance(value, Call):
        text = value.receiver if value.method == "format" else None
    else:
        text = value.operands[0] if isinstance(value, Operation) and value.operator == "%" else None
    return text if isinstance(text, Known) and isinstance(text.value, str) else None


def _is_record(call: Call) -> bool:
    """Whether it is an object that only stores its arguments: a dataclass or a named tuple."""
    own = class_of(call)
    if own is not None:
        return own.kind is None and own.find_method("__init__") is None
    return is_call_of(call.callee, "collections.namedtuple")


def _fields(record: Call) -> Sequence[str]:
    own = class_of(record)
    if own is not None:
        return [name for name in own.attributes if not name.startswith("_")]
    made = record.callee.argument(1, "field_names") if isinstance(record.callee, Call) else None
    names = known(made)
    if isinstance(names, str):
        return names.replace(",", " ").split()
    return [str(known(item)) for item in made.items] if isinstance(made, Collection) else ()


def logs(call: Call) -> bool:
    if isinstance(call.callee, Api):
        return call.callee.is_(*LOGGING) or call.callee.name.startswith(LOGGING_PLACES)
    if call.method in REPORTING or (call.method in TELLING and is_call_of(call.receiver, "logging.getLogger")):
        return True
    return any(_is_metric(option) for option in options(call.callee))


def _is_metric(value: Value) -> bool:
    own = class_of(value)
    if own is not None:
        return own.kind == "metric"
    return isinstance(value, Call) and isinstance(value.callee, Api) and kind_of_class(value.callee.name) == "metric"


def says_scaled(call: Call) -> bool:
    """Whether the log message itself calls it a scaled loss."""
    texts = [argument.value for value in call.given for argument in _near(value)]
    for metric in (*options(call.callee), *options(call.receiver)):
        made_with = [value for _, value in metric.keywords] if isinstance(metric, Call) else []
        texts.extend(argument.value for argument in made_with if isinstance(argument, Known))
        texts.append(getattr(metric, "name", ""))
    return any("scale" in text.lower() for text in texts if isinstance(text, str))


def _near(value: Value) -> Iterator[Known]:
    for part in (value, _text(value), *(getattr(value, "operands", ())), *(getattr(value, "keys", ()))):
        if isinstance(part, Known):
            yield part
