"""A setting is written to or read from a LossScaleOptimizer, but only the optimizer inside uses it.

## Why it matters
`optimizer.epsilon = 1e-4` succeeds, and the wrapper reports 1e-4 from then on, but Adam inside trains with 1e-7
(measured in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10). Nothing is printed. In Keras 3 reading misleads
too: `optimizer.clipnorm` is always the wrapper's own None, whatever the optimizer inside was given.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
optimizer.epsilon = 1e-4
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
optimizer.inner_optimizer.epsilon = 1e-4
```

## Versions
All. TensorFlow 2.4 to 2.10 (and `optimizers.legacy.*`) pass hyper-parameters such as `beta_1` and
`clipnorm` on; only `epsilon`, `amsgrad`, `nesterov` and `centered` are lost there.

## Where users met it
Found by measuring every attribute of every optimizer. There is no report on GitHub, because nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import CLIPPING
from mpdoctor.knowledge.wrapper_delegation import DEFAULTS, LOST, OWN
from mpdoctor.program.events import Call, Read, Write
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, agreed, known
from mpdoctor.semantics.source.edits.attributes import attribute_renamed, of_inner_optimizer
from mpdoctor.semantics.source.edits.expressions import safe_fix, unsafe_fix
from mpdoctor.semantics.source.edits.statements import line_behind, statement_at
from mpdoctor.semantics.source.optimizers.conditional_wrappers import wrapped_on_condition
from mpdoctor.semantics.source.optimizers.wrappers import kinds_of_wrapper, wrapped
from mpdoctor.semantics.source.programs.attribute_access import reads, same_object, writes
from mpdoctor.semantics.source.texts.written import owner_of_setting
from mpdoctor.semantics.wording import listed, name_of_optimizer, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe", "unsafe")
SOMEWHERE_LOST = frozenset().union(*LOST.values())
SOMEWHERE_OWN = frozenset().union(*OWN.values())
UNSET = ("None", "False", "0.99")  # values of the inner optimizer that make reading the wrapper's attribute harmless
CAUSES_DIVERGENCE = True
AT_EVERY_BATCH = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")
# Methods of a callback that fit() calls when it has trained (measured in Keras 3.15, tf_keras 2.21).
AFTER_A_STEP = ("on_epoch_begin", "on_epoch_end", *AT_EVERY_BATCH)
RENAMED = {"lr": "learning_rate"}  # Keras 3 optimizers have no `lr`; the wrapper does pass `learning_rate` on


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _set_on_wrapper(facts)
    yield from _read_from_wrapper(facts)


def _set_on_wrapper(facts: SourceFacts) -> Iterator[Finding]:
    for write in writes(facts, SOMEWHERE_LOST):
        of_wrapper = () if write.context.guarded else wrapped(facts, write.of, write)
        inside = of_wrapper or wrapped_on_condition(facts, write.of, write)
        if not inside or not _all_hold(LOST, write.name, inside, facts):
            continue
        of = owner_of_setting(facts, write)
        value = _written_value(facts, write)
        goes_on = _held(inside, write.name)
        name = name_of_optimizer(inside[0])
        yield Finding(
            f"`{of}.{write.name} = {value}` only sets an attribute of the LossScaleOptimizer; {name} "
            f"{'does not see it' if goes_on is None else f'keeps {goes_on}'}.",
            _help_for_write(facts, write, of, value, on_condition=not of_wrapper),
            write.location,
            evidence={"attribute": write.name, "inner_value": goes_on, "causes_divergence": write.name in CLIPPING},
            fix=_fix(facts, write) if of_wrapper else None,
        )


def _help_for_write(facts: SourceFacts, write: Write, of: str, value: str, on_condition: bool) -> str:
    if write.name in RENAMED:
        return f"Write `{of}.{RENAMED[write.name]} = {value}`, which the wrapper passes on."
    if on_condition:
        return (
            "The optimizer is wrapped on one path only: "
            f'`getattr({of}, "inner_optimizer", {of}).{write.name} = {value}`.'
        )
    also = _compiled_anew(write, of) + _read_there(facts, write)
    return f"Set it on the inner optimizer: `{of}.inner_optimizer.{write.name} = {value}`.{also}"


def _compiled_anew(write: Write, of: str) -> str:
    """A sentence about the step that fit() has compiled, with the old number, before it calls this callback."""
    method = _called_after_a_step(write)
    if not method:
        return ""
    is_the_same = isinstance(known(write.value), (int, float)) and not write.context.branches
    if method in AT_EVERY_BATCH and is_the_same:
        return (
            " Do that in `on_train_begin`: the step that is compiled keeps the old number, and is not to be compiled "
            "anew at every batch."
        )
    if method in AT_EVERY_BATCH:
        return (
            " The step that is compiled keeps the old number: where it changes, and not at every batch, call "
            f"`{_making_the_step(of)}`, which compiles the step anew."
        )
    return f" Then call `{_making_the_step(of)}`: the step that is compiled keeps the old number."


def _called_after_a_step(write: Write) -> str:
    """The method of a callback that it stands in and that fit() calls when it has compiled its step; "" elsewhere."""
    owner, method = write.context.owner, write.context.function
    if owner is None or owner.kind != "callback" or method is None or method.name not in AFTER_A_STEP:
        return ""
    return method.name


def _making_the_step(of: str) -> str:
    model = of.removesuffix(".optimizer") if of.endswith(".optimizer") else "self.model"
    return f"{model}.make_train_function(force=True)"


def _reads_of_it(facts: SourceFacts, write: Write) -> list[Read]:
    return [read for read in reads(facts, (write.name,)) if same_object(read.of, write.of)]


def _read_there(facts: SourceFacts, write: Write) -> str:
    """A sentence about the lines that read the value back from the wrapper, which then no longer has it."""
    lines = sorted({read.location.line for read in _reads_of_it(facts, write)} - {write.location.line})
    if not lines:
        return ""
    named = listed([str(line) for line in lines])
    return f" Read it there as well (line{'s' if len(lines) > 1 else ''} {named})."


def _written_value(facts: SourceFacts, write: Write) -> str:
    """`self.limit` in `optimizer.clipnorm = self.limit`; of another statement what is assigned, as it is written where
    it comes from."""
    statement = statement_at(facts, write.location)
    target, equals, value = statement.text.partition(" = ") if statement is not None else ("", "", "")
    if equals and target == text_at(facts, write.location):
        return value
    return text_at(facts, write.value.location) or "…"


def _read_from_wrapper(facts: SourceFacts) -> Iterator[Finding]:
    for read in reads(facts, SOMEWHERE_OWN):
        inside = () if read.context.guarded else wrapped(facts, read.of, read)
        if not inside or not _all_hold(OWN, read.name, inside, facts):
            continue
        held = _held(inside, read.name)
        if held in (None, *UNSET) or any(same_object(write.of, read.of) for write in writes(facts, (read.name,))):
            continue
        of = text_at(facts, read.location).rpartition("." + read.name)[0] or "optimizer"
        yield Finding(
            f"`{of}.{read.name}` reads the LossScaleOptimizer's own attribute, which is not in use: "
            f"{name_of_optimizer(inside[0])} has {held}.",
            f"Read it from the inner optimizer: `{of}.inner_optimizer.{read.name}`.",
            read.location,
            evidence={"attribute": read.name, "inner_value": held, "causes_divergence": False},
            fix=unsafe_fix("Read the setting from the inner optimizer", of_inner_optimizer(facts, read)),
        )


def _fix(facts: SourceFacts, write: Write) -> Fix | None:
    """The edits for the write and for the reads that follow it, which would no longer find the value on the wrapper."""
    both: tuple[Read | Write, ...] = (write, *_reads_of_it(facts, write))
    if write.name in RENAMED:
        right = RENAMED[write.name]
        return safe_fix(f"Write `{right}`", *(attribute_renamed(facts, event, right) for event in both))
    title, edits = "Set it on the inner optimizer", [of_inner_optimizer(facts, event) for event in both]
    method = _called_after_a_step(write)
    if method in AT_EVERY_BATCH:
        return None  # the step would keep the first number that it is compiled with
    if method:
        again = line_behind(facts, write.location, _making_the_step(owner_of_setting(facts, write)))
        return unsafe_fix(f"{title}, and compile the step anew", *edits, again)
    return safe_fix(title, *edits)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    wrapper = model.wrapper
    for write in wrapper.writes if wrapper else ():
        if not write.reached_inner:
            inner = model.optimizer[-1].class_name
            yield Finding(
                f"`{write.name}` was set to {write.value} on the LossScaleOptimizer; {inner} trains with "
                f"{write.inner_value}.",
                f"Set it on the inner optimizer: `optimizer.inner_optimizer.{write.name} = {write.value}`.",
                write.location,
                evidence={
                    "attribute": write.name,
                    "wrapper_value": write.value,
                    "causes_divergence": write.name in CLIPPING,
                    "inner_value": write.inner_value,
                },
            )


def _all_hold(table: dict[str, frozenset[str]], name: str, inside: tuple[Value, ...], facts: SourceFacts) -> bool:
    return all(name in table[kind] for optimizer in inside for kind in kinds_of_wrapper(optimizer, facts.keras))


def _held(inside: tuple[Value, ...], name: str) -> str | None:
    """The inner optimizer's certain value under this name, as repr(); None where it is not known."""
    held: set[str | None] = set()
    for optimizer in inside:
        given = _argument_named(optimizer, name) if isinstance(optimizer, Call) else None
        if given is not None:
            value = known(given)
            held.add(repr(value) if value is None or isinstance(value, (bool, int, float)) else None)
        else:
            class_name = optimizer.method if isinstance(optimizer, Call) and not optimizer.open else ""
            default = DEFAULTS.get(class_name, {}).get(name)
            held.add(None if default is None else repr(default))
    return agreed(held)


def _argument_named(optimizer: Call, name: str) -> Value | None:
    """What one of Keras' own optimizers is given by this name, or at its place: the momentum of `SGD(0.1, 0.9)`."""
    placed = list(DEFAULTS.get(optimizer.method, ()))
    return optimizer.argument(placed.index(name) + 1, name) if name in placed else optimizer.keyword(name)
