"""Models that a program saves and loads again, and the policies on both sides."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.policy_settings import PolicyName
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Either, Known, Value, known, options, walk
from mpdoctor.semantics.source.layers.model_layers import TRAINING, policies_inside, trainings
from mpdoctor.semantics.source.optimizers.attribute_access import same_object

CHECKPOINT = "keras.callbacks.ModelCheckpoint"
FITTING = ("fit", "fit_generator")


def loads(facts: SourceFacts) -> Iterator[Call]:
    return facts.calls_of("keras.models.load_model")


def saved_models(facts: SourceFacts) -> Iterator[tuple[Value, Call, int]]:
    """(path, model, when) of every whole model that the program is seen to save, by `save` or by ModelCheckpoint."""
    for call in facts.method_calls("save", "export"):
        yield from _saved(call.argument(0, "filepath"), call.receiver, call)
    for call in facts.calls_of("keras.models.save_model"):
        yield from _saved(call.argument(1, "filepath"), call.argument(0, "model"), call)
    for call in facts.method_calls(*FITTING):
        for callback in walk(call.keyword("callbacks")):
            if (
                isinstance(callback, Call)
                and is_call_of(callback, CHECKPOINT)
                and not known(callback.keyword("save_weights_only"))
            ):
                yield from _saved(callback.argument(0, "filepath"), call.receiver, call)


def _saved(path: Value | None, model: Value | None, call: Call) -> Iterator[tuple[Value, Call, int]]:
    made = [option for option in options(model) if isinstance(option, Call)]
    if path is not None and len(made) == len(options(model)) == 1:
        yield path, made[0], call.order


def policies_in_file(facts: SourceFacts, load: Call) -> frozenset[PolicyName]:
    """The policies of the layers in the file that a call loads, where the program itself wrote it; else none."""
    path = load.argument(0, "filepath") or load.keyword("saved_model_dir")
    if path is None:
        return frozenset()
    written = [model for where, model, order in saved_models(facts) if order < load.order and same_text(where, path)]
    return policies_inside(facts, written[-1]) if written else frozenset()


def writer_of(facts: SourceFacts, load: Call) -> Call | None:
    """The model that was saved last where a call loads from."""
    path = load.argument(0, "filepath")
    written = [m for where, m, order in saved_models(facts) if path and order < load.order and same_text(where, path)]
    return written[-1] if written else None


def training_of(facts: SourceFacts, model: Call) -> list[Call]:
    """The calls that compile or train a loaded model, itself or as a part of another."""
    direct = [
        call
        for call in facts.method_calls(*TRAINING)
        if call.order > model.order and any(option is model for option in options(call.receiver))
    ]
    return direct or [call for call, outer in trainings(facts) if any(trained is model for trained in walk(outer))]


def same_text(one: Value, other: Value, depth: int = 8) -> bool:
    """Whether two values are certainly the same text or path: "m.keras" twice, one name twice, `os.path.join(d, "m")`
    written twice."""
    one, other = _without_str(one), _without_str(other)
    if one is other or _is_one_attribute(one, other):
        return True
    if isinstance(one, Known) and isinstance(other, Known):
        return isinstance(one.value, str) and bool(one.value == other.value)
    if depth == 0:
        return False
    if isinstance(one, Operation) and isinstance(other, Operation) and one.operator == other.operator:
        return _same_texts(one.operands, other.operands, depth)
    if isinstance(one, Call) and isinstance(other, Call) and isinstance(one.callee, Api):
        is_same = isinstance(other.callee, Api) and one.callee.name == other.callee.name
        is_path = one.callee.name.startswith(("os.path.", "pathlib.")) and not (one.keywords or other.keywords)
        return is_same and is_path and _same_texts(one.args, other.args, depth)
    return False


def _is_one_attribute(one: Value, other: Value) -> bool:
    """`args.path` twice, with or without a default."""
    if isinstance(one, Either) and isinstance(other, Either):
        pairs = list(zip(one.options, other.options, strict=True)) if len(one.options) == len(other.options) else []
        is_same = [a is b or _is_one_attribute(a, b) for a, b in pairs]
        return all(is_same) and any(isinstance(a, Attribute) for a, _ in pairs)
    return isinstance(one, Attribute) and isinstance(other, Attribute) and same_object(one, other)


def ending_of(path: Value | None) -> str:
    """The last part of a path, as far as it is written out: "model.keras" for `os.path.join(out, "model.keras")`."""
    while path is not None and not isinstance(path, Known):
        path = _without_str(path)
        parts = path.args if isinstance(path, Call) and isinstance(path.callee, Api) else ()
        parts = path.operands if isinstance(path, Operation) else parts
        path = parts[-1] if parts else None
    return path.value if isinstance(path, Known) and isinstance(path.value, str) else ""


def _same_texts(texts: tuple[Value, ...], other_texts: tuple[Value, ...], depth: int) -> bool:
    return len(texts) == len(other_texts) and all(
        same_text(a, b, depth - 1) for a, b in zip(texts, other_texts, strict=True)
    )


def _without_str(value: Value) -> Value:
    while isinstance(value, Call) and is_call_of(value, "builtins.str", "os.fspath", "pathlib.Path"):
        inside = value.argument(0)
        if inside is None:
            break
        value = inside
    return value
