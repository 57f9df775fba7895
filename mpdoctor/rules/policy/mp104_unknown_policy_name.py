"""The program names a dtype policy that this Keras does not have.

## Why it matters
The line raises: `Cannot convert 'mixed_fp16' to a mixed precision DTypePolicy` in Keras 3, `Cannot convert
value mixed_fp16 to a mixed precision Policy` in Keras 2. There are two mixed policies, `mixed_float16` and
`mixed_bfloat16`; the full name of every dtype (`float32`) is a policy as well. `half`, `float` and `double` are
names in Keras 2 only. `set_global_policy` and `Policy` refuse a dtype object (`tf.float16`), a number and a list in
every Keras; Keras 3 also refuses to set None, and "int8_from_mixed_float16", a quantization of float16.
`set_floatx` takes "float16", "float32", "float64", and in Keras 3 "bfloat16": no policy, no dtype object.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_fp16")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
```

## Versions
All. Tried in Keras 3.3, 3.8 and 3.15, tf_keras 2.21 and TensorFlow 2.15; `set_floatx` in TensorFlow 2.4, 2.10 and
2.15, tf_keras 2.21 and Keras 3.15.

## Where users met it
Short names come over from PyTorch and from settings files (`fp16`, `bf16`, `half`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF, MIXED
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import POLICY, is_layer_class
from mpdoctor.knowledge.policy_names import is_floatx, is_policy_name, meant_by
from mpdoctor.program.command_line import is_from_command_line
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import SET_FLOATX
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, known, options
from mpdoctor.semantics.source.edits.expressions import literal_replaced, replaced, safe_fix
from mpdoctor.semantics.source.edits.policies import policy_instead
from mpdoctor.semantics.source.programs.asked_settings import asked_about, is_own_name
from mpdoctor.semantics.source.programs.branches import is_ruled_out
from mpdoctor.semantics.wording import place_of, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
EXPLAINS = {"MP107": "line"}
REFUSED = (
    r"Cannot convert (?:value )?'?(.+?)'? to a mixed precision \w*Policy\.",
    r"Cannot convert (?:the argument `type_value`:|value) '(mixed_\w+)' to a TensorFlow DType",
)
REFUSED_FLOATX = r"Unknown `?floatx`? (?:value|type): (<[^>]+>|[^\s<]+?)\.?(?: Expected|$)"
REFUSED_DTYPE = (
    r"Invalid `policy` argument\. Expected the string name .* Received: policy=<dtype: '(\w+)'>",
    r"'name' must be a string, not a DType\. Instead, pass DType\.name\. (?:Received: name=|Got: )(\w+)",
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _refused_floatx(facts)
    for call, given, to_layer in _policies_given(facts):
        name = known(given)
        if isinstance(name, str) and not is_policy_name(name, facts.keras) and (name or not to_layer):
            meant = meant_by(name)
            if call.context.guarded and (to_layer or _is_known_elsewhere(name)):
                continue
            fix = safe_fix(f'Write "{meant}"', literal_replaced(facts, given.location, meant))
            is_hidden = call.context.guarded  # what the right name leaves there is MP110
            help = f'Write `"{meant}"`' + (", and outside of the `try`." if is_hidden else ".")
            yield Finding(_message(name, facts, call), help, call.location, fix=None if is_hidden else fix)
        elif not to_layer and _is_dtype(given) and not call.context.guarded:
            named = dtype_named(given)
            better = f"mixed_{named}" if named in HALF else named
            yield Finding(
                f"A policy is named by a string, and `{named}` is a dtype object here: this line raises.",
                f'Write `"{better}"`.',
                call.location,
                fix=safe_fix(f'Write "{better}"', replaced(facts, given.location, f'"{better}"')),
            )
        elif not to_layer and not call.context.guarded and _is_no_name(facts, call, given):
            text = text_at(facts, given.location) or "this"
            yield Finding(
                f"A policy is named by a string, which `{text}` is not: this line raises.",
                'Write the name of a policy, such as `"mixed_float16"`'
                + (', or `"float32"` to set it back.' if text == "None" else "."),
                call.location,
            )


def _is_no_name(facts: SourceFacts, call: Call, given: Value) -> bool:
    """Whether it is written as a number, a list or the like, or as a None that Keras 3 is to set: no Keras makes a
    policy of them. (Keras 2 sets the policy back for None, and a DTypePolicy of None is the global one.)"""
    if isinstance(given, Collection):
        return True
    if not isinstance(given, Known):
        return False
    sets_none = given.value is None and facts.keras.is_keras3 and call in facts.policy_calls
    return isinstance(given.value, (int, float)) or (sets_none and call.argument(0, "policy") is given)


def _refused_floatx(facts: SourceFacts) -> Iterator[Finding]:
    """A finding for each `set_floatx` of what it does not take: a policy, a dtype object, and bfloat16 in Keras 2."""
    for call in facts.calls_of(SET_FLOATX):
        given = call.argument(0, "value") if not call.context.guarded and not is_ruled_out(call.context) else None
        choices = options(given)
        for choice in choices:
            dtype, name = dtype_named(choice) if _is_dtype(choice) else None, known(choice)
            is_refused = dtype is not None or (isinstance(name, str) and not is_floatx(name, facts.keras))
            if is_refused and (len(choices) == 1 or not _is_asked_about(facts, call, given, choice)):
                yield _finding_of_floatx(facts, call, choice, dtype)


def _finding_of_floatx(facts: SourceFacts, call: Call, given: Value, dtype: str | None) -> Finding:
    """`dtype`: of a dtype object, None for a string."""
    name = known(given)
    meant = meant_by(str(name)) if dtype is None else f"mixed_{dtype}" if dtype in HALF else dtype
    if dtype is None:
        message = f'"{name}" is no floatx of {facts.keras}: this line raises.'
    else:
        message = f"set_floatx takes a string, and `{dtype}` is a dtype object here: this line raises."
    if meant in MIXED:
        fix = safe_fix(f'Set the policy "{meant}"', policy_instead(facts, call, meant))
    else:
        fix = safe_fix(f'Write "{meant}"', replaced(facts, given.location, f'"{meant}"'))
    return Finding(message, _help_for_floatx(meant), call.location, fix=fix)


def _help_for_floatx(meant: str) -> str:
    return f'Set the policy instead: `set_global_policy("{meant}")`.' if meant in MIXED else f'Write `"{meant}"`.'


def _policies_given(facts: SourceFacts) -> Iterator[tuple[Call, Value, bool]]:
    """Each call that is given a policy name, with the value, and whether it is the `dtype` of a layer."""
    for call, dtype in _calls_that_name(facts):
        is_tried = call.context.guarded and call.context.swallowed is None
        if isinstance(call.callee, Api) and not is_tried and not is_ruled_out(call.context):
            to_layer = dtype is not None and _makes_a_layer(call.callee)
            named = dtype if to_layer else _policy_given(facts, call)
            choices = (*options(named), *_behind_an_option(call, named))
            for given in choices:
                if len(choices) == 1 or not _is_asked_about(facts, call, named, given):
                    yield call, given, to_layer
    for call, given in _dtypes_of_own_layers(facts):
        yield call, given, True


def _behind_an_option(call: Call, named: Value | None) -> Iterator[Value]:
    """What a table holds for the arguments of the command line that are no defaults: `{"fp16": …}[args.precision]`, but
    where an `if` asks for the argument, which may keep some of them away."""
    for choice in options(named):
        if isinstance(choice, Item) and isinstance(choice.of, Collection) and is_from_command_line(choice):
            is_whole = choice.of.kind == "dict" and not choice.of.open
            if is_whole and isinstance(choice.index, (Api, Attribute)) and not _asks_for(call, choice.index.name):
                yield from choice.of.items


def _asks_for(call: Call, argument: str) -> bool:
    """Whether an `if` around the call asks for this argument of the command line, `args.precision`."""
    return any(isinstance(value, (Api, Attribute)) and value.name == argument for value in call.context.asked())


def _dtypes_of_own_layers(facts: SourceFacts) -> Iterator[tuple[Call, Value]]:
    """The calls that make layers of the program's own, with each `dtype` that reaches Keras."""
    for own in facts.classes:
        if own.is_layer:
            for call in facts.makings_of(own):
                is_its_own = class_of(call) is own and not call.context.guarded
                choices = options(call.keyword("dtype") if is_its_own else None)
                yield from ((call, given) for given in choices if _reaches_keras(facts, own, given))


def _reaches_keras(facts: SourceFacts, own: ClassFacts, dtype: Value) -> bool:
    """Whether a layer of the program's own hands the `dtype` that it is made with on to Keras as it is."""
    if not isinstance(known(dtype), str):
        return False
    constructors = [above.methods["__init__"] for above in own.lineage() if "__init__" in above.methods]
    return not constructors or any(
        call.context.function is constructors[-1]
        and option.location == dtype.location
        and known(option) == known(dtype)
        for call in facts.method_calls("__init__")
        for option in options(call.keyword("dtype"))
    )


def _calls_that_name(facts: SourceFacts) -> Iterator[tuple[Call, Value | None]]:
    """Calls of libraries that are given a `dtype`, with that, and those that set or make a policy."""
    naming = {*facts.policy_calls, *facts.calls_of(POLICY)}
    for call in facts.library_calls:
        dtype = call.keyword("dtype") if call.keywords else None
        if dtype is not None or call in naming:
            yield call, dtype


def _is_asked_about(facts: SourceFacts, call: Call, named: Value | None, given: Value) -> bool:
    """Whether an `if` around the call tests this same value: the default of a flag may mean "no policy"; or the program
    asks about it elsewhere, and it is a name of its own."""
    if any(value is given for value in call.context.asked()):
        return True
    name = known(given)
    return isinstance(name, str) and (id(given) in asked_about(facts) or is_own_name(facts, named, name))


def _makes_a_layer(api: Api) -> bool:
    return api.name.startswith("keras.") and is_layer_class(api.name)


def _policy_given(facts: SourceFacts, call: Call) -> Value | None:
    """The argument of a call that names a policy."""
    assert isinstance(call.callee, Api)
    if call in facts.policy_calls and not call.callee.is_(SET_FLOATX):
        return call.argument(0, "policy") or call.keyword("dtype_policy")
    return call.argument(0, "name") if call.callee.is_(POLICY) else None


def _is_dtype(value: Value) -> bool:
    """Whether it is a dtype object, `tf.float16` or `np.float16`, rather than a string."""
    is_name = isinstance(value, Api) and value.name.endswith((".name", ".floatx"))
    return isinstance(value, Api) and not is_name and dtype_named(value) is not None


def _is_known_elsewhere(name: str) -> bool:
    """Whether some Keras takes this name: a program may try it."""
    return any(is_policy_name(name, keras) for keras in (Keras("tf_keras"), Keras("keras")))


def _message(name: str, facts: SourceFacts, call: Call) -> str:
    more = " (Keras 2 took it)" if facts.keras.is_keras3 and name in ("half", "float", "double") else ""
    hides = call.context.swallowed if call.context.guarded else None
    then = f", and `except` ({place_of(facts, hides, call.location)}) hides that" if hides is not None else ""
    return f'"{name}" is no dtype policy of {facts.keras}{more}: this line raises{then}.'


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    said = failure.said_by_library
    floatx = re.search(REFUSED_FLOATX, said)
    if floatx is not None:
        named = re.sub(r"<(?:dtype: '|class 'numpy\.)(\w+)'>", r"\1", floatx[1])
        meant = f"mixed_{named}" if named in HALF else meant_by(named)
        said = f"set_floatx does not take {floatx[1]}, and the program stops there."
        yield Finding(said, _help_for_floatx(meant), failure.location)
        return
    refused = next(filter(None, (re.search(words, said) for words in REFUSED)), None)
    given = next(filter(None, (re.search(words, said) for words in REFUSED_DTYPE)), None)
    if given is not None:
        named = f"mixed_{given[1]}" if given[1] in HALF else given[1]
        yield Finding(
            f"A policy is named by a string, and the dtype object `{given[1]}` is given.",
            f'Write `"{named}"`.',
            failure.location,
        )
    elif refused is not None and refused[1] not in MIXED:  # a policy where a dtype is asked for is MP119's
        yield Finding(
            f'"{refused[1]}" is no dtype policy{f" of {failure.keras}" if failure.keras else ""}, '
            "and the program stops there.",
            f'Write `"{meant_by(refused[1])}"`.',
            failure.location,
        )
