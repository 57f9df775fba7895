"""Whether nothing has built a LossScaleOptimizer yet where a program reads what only a built one has (Keras 3)."""

from __future__ import annotations

from itertools import chain

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.events import Call, Read
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, is_api, known, options, walk
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, compile_wraps

LEAVES_UNBUILT = ("scale_loss", "print", "isinstance", "type", "id", "repr", "str")
LEAVES_MODEL = ("compile", "summary", "count_params", "get_weights", "get_layer", "get_config", "to_json")


def is_unbuilt(facts: SourceFacts, read: Read) -> bool:
    """Whether the program makes the LossScaleOptimizer, by itself or by compile(), and goes straight on to this
    read."""
    if read.context.run or read.context.loops:
        return False
    made = _wrapper_made_before(facts, read)
    return not _is_used(facts, made, read) if made is not None else _is_read_after_compile(facts, read)


def _wrapper_made_before(facts: SourceFacts, read: Read) -> Call | None:
    makers = options(read.of)
    made = next((call for call in facts.calls_of(WRAPPER) if len(makers) == 1 and call is makers[0]), None)
    return made if made is not None and made.context.branches == read.context.branches else None


def _is_used(facts: SourceFacts, made: Call, read: Read) -> bool:
    """Whether anything in between may have built the optimizer, or passed it to code that may. A user's object that
    stores it does nothing with it before a method of that object is called."""
    calls = _between(facts, made, read)
    touched = (value for call in calls if call.method not in LEAVES_UNBUILT for value in (call.receiver, *call.given))
    writes = [write for write in facts.writes if made.order < write.order < read.order]
    keeping = [write for write in writes if class_of(write.of) is not None and write.value is made]
    kept = (write.value for write in writes if write not in keeping)
    holders = {id(made), *(id(write.of) for write in keeping)}
    return any(id(part) in holders for value in chain(touched, kept) for part in walk(value))


def _is_read_after_compile(facts: SourceFacts, read: Read) -> bool:
    """Whether it is `model.optimizer` between the compile() that makes the wrapper anew and whatever is done with the
    model next: fit() builds it in its first step."""
    of = read.of
    if not isinstance(of, Attribute) or of.name != "optimizer" or len(options(of.of)) != 1:
        return False
    if read.context.function is not None and not read.context.callers:
        return False  # a function that is handed on, as to a LambdaCallback, runs at a later time
    (model,) = options(of.of)
    compiled = _last_compile(facts, model, read)
    if compiled is None or not _is_bare(compiled.argument(0, "optimizer")) or not compile_wraps(facts, compiled):
        return False
    calls = [call for call in _between(facts, compiled, read) if call.method not in LEAVES_MODEL]
    touched = (value for call in calls for value in (call.receiver, *call.given) if value is not None)
    return not any(part is model or class_of(part) is not None for value in touched for part in walk(value))


def _last_compile(facts: SourceFacts, model: Value, read: Read) -> Call | None:
    """The last compile() of a model before this read; None where that is on another path, or walked by itself."""
    compiled = [call for call in facts.method_calls("compile") if call.receiver is model and call.order < read.order]
    last = compiled[-1] if compiled else None
    is_on_path = last is not None and last.context.branches == read.context.branches and not last.context.run
    return last if is_on_path else None


def _is_bare(optimizer: Value | None) -> bool:
    """Whether it is a name of an optimizer, or one that is made there."""
    return all(
        isinstance(known(option), str)
        or (
            isinstance(option, Call)
            and isinstance(option.callee, Api)
            and kind_of_class(option.callee.name) == "optimizer"
            and not is_api(option.callee, WRAPPER)
        )
        for option in options(optimizer)
    )


def _between(facts: SourceFacts, made: Call, read: Read) -> list[Call]:
    """The calls after the one and before the read, without those in progress at it, whose bodies have run only in
    part."""
    around = set(read.context.callers)
    return [call for call in facts.calls if made.order < call.order < read.order and call.location not in around]
