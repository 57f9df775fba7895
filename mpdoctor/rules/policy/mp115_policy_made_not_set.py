"""A mixed-precision policy is made, and nothing uses it: mixed precision is off.

## Why it matters
`Policy("mixed_float16")` is only an object. It has no effect until it is passed to `set_global_policy`, or to a
layer as its `dtype`. The program looks as if it used mixed precision, and trains in float32 at float32's speed.

## Flagged
```python
import keras

policy = keras.mixed_precision.Policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
```

## Fixed
```python
import keras

policy = keras.mixed_precision.Policy("mixed_float16")
keras.mixed_precision.set_global_policy(policy)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
```

## Versions
All.

## Where users met it
Scripts that leave out the second of the two lines that every tutorial shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import SET_POLICY
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import put_around, unsafe_fix
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.edits.statements import line_behind, statement_at
from mpdoctor.semantics.source.layers.model_layers import layer_name, policies_set
from mpdoctor.semantics.source.programs.graph_rewrites import rewrites
from mpdoctor.semantics.source.programs.models import TRAINING, is_model
from mpdoctor.semantics.source.programs.used_values import (
    attributes_unread,
    is_name_before,
    returned_to,
    text_before,
    used_values,
)
from mpdoctor.semantics.source.texts.written import text_of

SEVERITY = Severity.WARNING
EXPLAINS = {"MP309": "model"}
FIXES = ("unsafe",)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    made = [call for call in facts.calls_of(POLICY) if _makes_half_policy(call)]
    if not made or facts.is_imported or not _builds_models(facts) or _is_mixed_anyway(facts):
        return
    unread = attributes_unread(facts)
    used = used_values(facts, unread)
    for policy in made:
        place = _reported_at(facts, policy, unread) if id(policy) not in used else None
        if place is not None:
            name = policies_named(policy.argument(0, "name"))[0]
            yield Finding(
                f'This policy is made and never used: "{name}" is not in force, and everything computes in float32.',
                "Set it: `keras.mixed_precision.set_global_policy(…)`, before the first layer is made.",
                place,
                fix=_fix(facts, policy),
            )


def _fix(facts: SourceFacts, policy: Call) -> Fix | None:
    """The edit that sets the policy on the line that makes it."""
    setter = keras_name(facts, SET_POLICY.removeprefix("keras."))
    if setter is None or policy.context.callers or policy.location.path != facts.path:
        return None
    if policy.dropped:
        return unsafe_fix("Set the policy", put_around(facts, policy.location, f"{setter}(", ")"))
    name = facts.lines[policy.location.line - 1].partition("=")[0].partition(":")[0].strip()
    return unsafe_fix("Set the policy", line_behind(facts, policy.location, f"{setter}({name})"))


def _makes_half_policy(call: Call) -> bool:
    names = policies_named(call.argument(0, "name"))
    return not call.context.guarded and any(name in HALF_POLICIES for name in names)


def _is_mixed_anyway(facts: SourceFacts) -> bool:
    """Whether another policy (or its name) is set, or TensorFlow rewrites the graph, so that this one is a harmless
    leftover."""
    if any(rewrites(facts)):
        return True
    given = [policies_set(call) for call in facts.policy_calls]
    given += [policies_named(call.keyword("dtype")) for call in facts.calls if layer_name(call)]
    return any(name in HALF_POLICIES for names in given for name in names) or () in given[: len(facts.policy_calls)]


def _builds_models(facts: SourceFacts) -> bool:
    return any(is_model(call) or layer_name(call) for call in facts.calls) or any(facts.method_calls(*TRAINING))


def _reported_at(facts: SourceFacts, policy: Call, unread: frozenset[str]) -> Location | None:
    """The place at which an unused policy is reported: where `name = Policy(…)`, `self.name = Policy(…)` or a bare
    statement makes it; if a function of another file makes it, where that is called.

    None for others: a policy in a list, a class or a module's constant may be used from elsewhere. A policy made by a
    function of a file that is not at hand is judged by that function alone."""
    made = policy.location
    if policy.dropped:
        return made
    if not facts.lines_of(made.path):
        return made if policy.context.function is not None and not facts.incomplete else None
    place = returned_to(facts, policy)
    holder, _, written = text_before(facts, place).removesuffix("=").partition(".")
    attribute = written.partition(":")[0].strip()
    if holder == "self" and attribute in unread and not attribute.isupper():
        return made if place.path == made.path else place
    if place is not made and _is_dropped(facts, place):
        return made if place.path == made.path else place
    may_be_constant = place is not made or policy.context.function is None
    if not is_name_before(text_before(facts, place), may_be_constant):
        return None
    return made if place.path == made.path else place


def _is_dropped(facts: SourceFacts, place: Location) -> bool:
    """Whether the call there is a statement of its own, whose value nothing keeps."""
    statement = statement_at(facts, place)
    return statement is not None and statement.text == text_of(facts, place)
