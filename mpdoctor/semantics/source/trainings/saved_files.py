"""Models that a program saves and loads again, and the policies on both sides."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.program.command_line import without_command_line
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Either, Known, Value, known, options, walk
from mpdoctor.semantics.source.layers.model_layers import policies_inside
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import exclude_each_other, happen_together
from mpdoctor.semantics.source.programs.models import TRAINING
from mpdoctor.semantics.source.trainings.trained_models import trainings

LOAD = "keras.models.load_model"
OF_TENSORFLOW = "tensorflow.saved_model.save"  # load_model refuses what it saves (TensorFlow 2.10, 2.15)
CHECKPOINT = "keras.callbacks.ModelCheckpoint"
FITTING = ("fit", "fit_generator")


class Save(NamedTuple):
    """A whole model that a program writes to a file; `call` is the one that writes it."""

    path: Value
    model: Value | None
    call: Call


def loads(facts: SourceFacts) -> Iterator[Call]:
    return facts.calls_of(LOAD)


def saves(facts: SourceFacts) -> Iterator[Save]:
    """Every save of a whole model in the program, by `save` or by ModelCheckpoint."""
    for call in facts.method_calls("save", "export"):
        yield from _saved(call.argument(0, "filepath"), call.receiver, call)
    for call in facts.calls_of("keras.models.save_model"):
        yield from _saved(call.argument(1, "filepath"), call.argument(0, "model"), call)
    for call in facts.method_calls(*FITTING):
        for callback in walk(call.keyword("callbacks")):
            if isinstance(callback, Call) and _keeps_models(callback):
                yield from _saved(callback.argument(0, "filepath"), call.receiver, call)


def _keeps_models(callback: Call) -> bool:
    return is_call_of(callback, CHECKPOINT) and not known(callback.keyword("save_weights_only"))


def _saved(path: Value | None, model: Value | None, call: Call) -> Iterator[Save]:
    if path is not None:
        yield Save(path, model, call)


def policies_in_file(facts: SourceFacts, load: Call) -> frozenset[PolicyName]:
    """The policies of the layers in the file that a call loads, where the program itself wrote it, or others of the
    project did, and all that may be in it are alike; else none."""
    policies: set[frozenset[PolicyName]] = {
        *(policies_inside(facts, model) for model in writers_of(facts, load)),
        *(frozenset(file.policies) for file in written_elsewhere(facts, load)),
    }
    return policies.pop() if len(policies) == 1 else frozenset()


def writers_of(facts: SourceFacts, load: Call) -> list[Call]:
    """The models of which one is in the file that a call loads: the one that was saved last before, in the same run;
    where there is none, all that other arms of the program save there."""
    path = _path_of(load)
    there = [] if path is None else [(m, save) for where, m, save in _readable(facts, load) if same_text(where, path)]
    before = [
        options(model)[0]
        for model, save in there
        if save.order < load.order and len(options(model)) == 1 and not exclude_each_other(save.context, load.context)
    ]
    made = [model for model in before if isinstance(model, Call)]
    return made[-1:] or _writers_in_other_arms(facts, load, there)


def _readable(facts: SourceFacts, load: Call) -> Iterator[Save]:
    """The saves whose files a call can load."""
    yield from saves(facts)
    for call in () if is_call_of(load, LOAD) else facts.calls_of(OF_TENSORFLOW):
        yield from _saved(call.argument(1, "export_dir"), call.argument(0, "obj"), call)


def written_elsewhere(facts: SourceFacts, load: Call) -> list[SavedFile]:
    """What other programs of the project save to the file that a call loads; none where this one saves to it, or before
    to a path that is not known."""
    files = facts.files_saved_elsewhere
    text = text_of(_path_of(load)) if files else ""
    saved = [(text_of(save.path), save.call) for save in saves(facts)] if text else []
    if any(own == text or (not own and call.order < load.order) for own, call in saved):
        return []
    return [file for file in files if file.path == text]


def _writers_in_other_arms(facts: SourceFacts, load: Call, there: list[tuple[Value | None, Call]]) -> list[Call]:
    """The models that an earlier run may have left in the file, by a path that is written out, if only as an argument's
    default: one of them is saved or made where the program does not load, and all are known, under a policy or under
    none. A model that was loaded from the file leaves it as it is."""
    path = _path_of(load)
    written = [(model, save) for value, save in there for model in options(value) if not is_load_of(model, path)]
    made = [model for model, _ in written if isinstance(model, Call)]
    apart = (
        exclude_each_other(context, load.context)
        for model, save in written
        if isinstance(model, Call)
        for context in (save.context, model.context)
    )
    is_clear = len(made) == len(written) and not any(is_doubtful(policies_inside(facts, model)) for model in made)
    return made if is_clear and text_of(_where_nothing_is_told(path)) and any(apart) else []


def text_written(facts: SourceFacts, read: Value) -> Value | None:
    """The text that a program reads from a file, where it has certainly written it there itself, by its only call that
    writes to that path; None for anything else."""
    path = _text_file(read, "read_text", "read")
    if path is None or not isinstance(read, Call):
        return None
    writing = [(call, _text_file(call, "write_text", "write")) for call in facts.method_calls("write_text", "write")]
    there = [call for call, where in writing if where is not None and same_text(where, path)]
    is_certain = len(there) == 1 and there[0].order < read.order and happen_together(there[0].context, read.context)
    return there[0].argument(0, "data") if is_certain else None


def _text_file(call: Value, whole: str, opened: str) -> Value | None:
    """The path of the file that a call reads or writes: of `path.read_text()`, and of `file.read()` where the program
    opens `file` by its path."""
    if not isinstance(call, Call) or call.method == whole:
        return call.receiver if isinstance(call, Call) else None
    file = call.receiver if call.method == opened else None
    if not isinstance(file, Call):
        return None
    is_opened = is_call_of(file, "builtins.open", "io.open", "tensorflow.io.gfile.GFile")
    return file.argument(0) if is_opened else file.receiver if file.method == "open" else None


def is_load_of(model: Value, path: Value | None) -> bool:
    """Whether a model was loaded from a path."""
    other = _path_of(model) if isinstance(model, Call) else None
    return is_call_of(model, LOAD) and path is not None and other is not None and same_text(path, other)


def _path_of(load: Call) -> Value | None:
    return load.argument(0, "filepath") or load.keyword("saved_model_dir")


def is_doubtful(policies: frozenset[PolicyName]) -> bool:
    """Whether a policy is not known, or set on some path only."""
    return UNSURE in policies or (None in policies and not policies.isdisjoint(HALF_POLICIES))


def training_of(facts: SourceFacts, model: Call) -> list[Call]:
    """The calls that compile or train a loaded model for certain, itself or as a part of another."""
    direct = [
        call
        for call in facts.method_calls(*TRAINING)
        if call.order > model.order and any(option is model for option in options(call.receiver))
        if happen_together(call.context, model.context)
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
    """Whether both are `args.path`, with or without a default."""
    if isinstance(one, Either) and isinstance(other, Either):
        pairs = list(zip(one.options, other.options, strict=True)) if len(one.options) == len(other.options) else []
        is_same = [a is b or _is_one_attribute(a, b) for a, b in pairs]
        return all(is_same) and any(isinstance(a, Attribute) for a, _ in pairs)
    return isinstance(one, Attribute) and isinstance(other, Attribute) and same_object(one, other)


def ending_of(path: Value | None) -> str:
    """The last part of a path, as far as it is written out: "model.keras" for `os.path.join(out, "model.keras")`, and
    for an argument with this default."""
    path = _where_nothing_is_told(path)
    while path is not None and not isinstance(path, Known):
        path = _without_str(path)
        parts = path.args if isinstance(path, Call) and isinstance(path.callee, Api) else ()
        parts = path.operands if isinstance(path, Operation) else parts
        path = _where_nothing_is_told(parts[-1]) if parts else None
    return path.value if isinstance(path, Known) and isinstance(path.value, str) else ""


def _where_nothing_is_told(path: Value | None) -> Value | None:
    """A path, or of an argument of the command line its default."""
    choices = without_command_line(path)
    return choices[0] if len(choices) == 1 else path


def text_of(path: Value | None) -> str:
    """A path that is written out, "runs/m.keras" also for `os.path.join("runs", "m.keras")`; "" for others."""
    path = _without_str(path) if path is not None else None
    if isinstance(path, Known):
        return posixpath.normpath(path.value) if path.value and isinstance(path.value, str) else ""
    parts: tuple[Value, ...] = path.operands if isinstance(path, Operation) and path.operator == "/" else ()
    if isinstance(path, Call) and is_call_of(path, "os.path.join", "pathlib.Path") and not path.open:
        parts = path.args
    texts = [text_of(part) for part in parts]
    return posixpath.normpath(posixpath.join(*texts)) if texts and all(texts) else ""


def _same_texts(texts: tuple[Value, ...], other_texts: tuple[Value, ...], depth: int) -> bool:
    return len(texts) == len(other_texts) and all(
        same_text(a, b, depth - 1) for a, b in zip(texts, other_texts, strict=True)
    )


def _without_str(value: Value) -> Value:
    while isinstance(value, Call) and is_call_of(value, "builtins.str", "os.fspath", "pathlib.Path"):
        inside = value.argument(0)
        if inside is None or len(value.args) > 1:
            break
        value = inside
    return value


def drops_dtype(facts: SourceFacts, config: FunctionFacts) -> bool:
    """Whether all that a `get_config` returns is a dict written out, without a dtype in it: what is loaded takes
    the global policy in force then."""
    returned = [option for event in facts.returns_of(config) for option in options(event.value)]
    return (
        bool(returned)
        and not any(call.context.function is config for call in facts.method_calls("get_config"))
        and all(
            isinstance(value, Collection)
            and value.kind == "dict"
            and not value.open
            and all(isinstance(key, Known) for key in value.keys)
            and value.entry("dtype") is None
            for value in returned
        )
    )


def holds_layers_without_dtype(facts: SourceFacts) -> bool:
    """Whether the program makes layers of its own whose configuration leaves out their dtype."""
    configs = (own.find_method("get_config") for own in facts.classes if own.is_layer and facts.makings_of(own))
    return any(config is not None and drops_dtype(facts, config) for config in configs)
