"""A LossScaleOptimizer gets arguments that its Keras refuses, or that break the first step.

## Why it matters
`dynamic=False` raises in Keras 3 (`LossScaleOptimizer no longer supports dynamic=False`) and, without an
`initial_scale`, in Keras 2 (`"initial_scale" must be specified`). Other arguments are accepted and fail later:
`"dynamic"` as a second argument becomes Keras 3's initial scale and raises at the first step; a scale of 0
writes NaN into the weights at the first step; a negative scale changes the sign of the loss and changes it back
in the gradients, so that SGD moves the weights as with the same positive scale. For a fixed scale in Keras 3,
give the inner optimizer a `loss_scale_factor`.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(), dynamic=False)
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(), initial_scale=1024.0)
```

## Versions
All, with different arguments: Keras 2 takes `(inner_optimizer, dynamic, initial_scale, dynamic_growth_steps)`,
Keras 3 takes `(inner_optimizer, initial_scale, dynamic_growth_steps, name)`.

## Where users met it
aws-samples/deep-learning-models#49, tensorflow/models#9262, horovod/horovod#2349.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import holds
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import library_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Either, Unknown, Value
from mpdoctor.semantics.source.edits.expressions import (
    safe_fix,
    unsafe_fix,
    with_keyword,
    without_keyword,
    without_positional,
)
from mpdoctor.semantics.source.optimizers.wrapper_arguments import (
    INNER_ONLY,
    problem_in_experimental,
    problem_in_keras2,
    problem_in_keras3,
    problem_in_message,
    problem_with_numbers,
)
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, inner_argument
from mpdoctor.semantics.source.programs.branches import is_ruled_out
from mpdoctor.semantics.source.texts.written import argument_text

SEVERITY = Severity.ERROR
FIXES = ("safe", "unsafe")
FAILS_IN = ("model", "training")
EXPLAINS = {"MP102": "line", "MP309": "line", "MP903": "training", "MP907": "training"}
CONFIRMED_LIVE = True
OWN = ("dynamic", "initial_scale", "dynamic_growth_steps", "loss_scale")
WITHOUT_EXPERIMENTAL = (2, 9)  # where MP102 reports the class


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    calls = list(facts.calls_of(WRAPPER))
    lasting = {call.location for call in calls if not _is_experimental(call)}  # of `try: import … except ImportError:`
    for call in calls:
        is_keras2 = not facts.keras.is_keras3 or library_of(call.callee, facts.keras) == "tf_keras"
        look = problem_in_keras2 if is_keras2 else problem_in_keras3
        if _is_experimental(call):
            look = problem_in_experimental
        is_left_out = facts.keras.tensorflow_release >= WITHOUT_EXPERIMENTAL or call.location in lasting
        if call.context.asks_what_exists or (_is_experimental(call) and is_left_out):
            continue
        problem = look(_without_asked_options(call))
        if problem is not None and not _is_asked_about(call):
            yield Finding(problem[0], problem[1], call.location, fix=_fix(facts, call, problem[0]))


def _is_experimental(call: Call) -> bool:
    return isinstance(call.callee, Api) and ".experimental." in call.callee.name


def _is_asked_about(call: Call) -> bool:
    """Whether a test around it lets through other values than the program is seen to hold: behind
    `if scale == "dynamic": return …`"""
    inner = inner_argument(call)
    are_written_out = all(holds(call.location, value.location) for value in call.given if value is not inner)
    return is_ruled_out(call.context) and not are_written_out


def _without_asked_options(call: Call) -> Call:
    """The call without the values of options of the command line that an `if` around it tests: 0 may mean "no
    scale"."""
    asked = set(map(id, call.context.asked()))
    keywords = tuple((name, _unless_asked(value, asked)) for name, value in call.keywords)
    args = tuple(_unless_asked(value, asked) for value in call.args)
    return Call(call.location, call.callee, args, keywords, call.context, call.order, call.open)


def _unless_asked(value: Value, asked: set[int]) -> Value:
    is_asked = isinstance(value, Either) and value.default is not None and id(value.default) in asked
    return Unknown(value.location) if is_asked else value


def _fix(facts: SourceFacts, call: Call, problem: str) -> Fix | None:
    """The edits that drop the reported argument, or move it to the inner optimizer if that takes it."""
    given = dict(call.keywords)
    named = [name for name in given if re.search(rf"`{name}\b", problem)]
    if not named:
        drop = without_positional(facts, call.location, 1) if "second argument" in problem else None
        return safe_fix("Drop the second argument", drop) if drop is not None else None
    name = named[0]
    inner = inner_argument(call)
    of_inner = name in INNER_ONLY or name == "learning_rate"
    if of_inner and isinstance(inner, Call) and holds(call.location, inner.location):
        text = argument_text(facts, call.location, name)
        moved = with_keyword(facts, inner.location, name, text) if text is not None else None
        return safe_fix(f"Give `{name}` to the optimizer", without_keyword(facts, call.location, name), moved)
    if name not in OWN:
        return None
    make = safe_fix if "raises" in problem else unsafe_fix
    return make(f"Drop `{name}`", without_keyword(facts, call.location, name))


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    problem = problem_in_message(failure.said_by_library, failure.inside == "loss scaling")
    if problem is not None:
        yield Finding(*problem, failure.location)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    wrapper = model.wrapper
    if wrapper is None:
        return
    problem = problem_with_numbers(_value(wrapper.initial_scale), _value(wrapper.growth_interval), wrapper.dynamic)
    if problem is not None:
        yield Finding(problem[0], problem[1], wrapper.made_at, evidence={"initial_scale": wrapper.initial_scale})


def _value(text: str | None) -> object:
    """The number or string behind a repr() text; None for everything else, which is not judged."""
    if text is None:
        return None
    if text[:1] in "'\"":
        return text[1:-1]
    try:
        return float(text)
    except ValueError:
        return None
