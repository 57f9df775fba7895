"""The program uses a mixed-precision name or argument that its TensorFlow or Keras has removed, or does not have yet.

## Why it matters
The line raises an error: `AttributeError: module 'tensorflow.keras.mixed_precision' has no attribute
'experimental'` since TensorFlow 2.9, and `ImportError: keras.optimizers.legacy is not supported in Keras 3`
since TensorFlow 2.16. Inside a `try` it is worse: the program carries on in float32 and nobody notices.

## Flagged
```python
import tensorflow as tf

tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
```

## Fixed
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
```

## Versions
`mixed_precision.experimental` and `tf.train.experimental.*LossScale` were removed in TensorFlow 2.9,
`tf.train.experimental.enable_mixed_precision_graph_rewrite` by 2.8, and `tf.contrib` in 2.0. `Policy` has not
taken `loss_scale`, nor had it, since the class left `experimental` in 2.4. `keras.optimizers.legacy` does not work
in Keras 3. `keras.config.set_dtype_policy`, `keras.dtype_policies` and `keras.optimizers.LossScaleOptimizer` came with
Keras 3, and no Keras 2 has them. If a project uses removed names and nothing says which TensorFlow it is written
for, it is judged by the newest release that has all of them, and all lines that would raise with Keras 3 are
reported as one finding.

## Where users met it
keras-team/autokeras#1675, aws-samples/deep-learning-models#49, tensorflow/docs-l10n#600,
tensorflow/tensorflow#32905, google-parfait/tensorflow-federated#2856.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_history import (
    CAME_WITH_KERAS3,
    IN_EXPERIMENTAL,
    KERAS3_ONLY,
    REMOVED,
    below,
    is_at_or_below,
    is_private,
)
from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.program.events import Call, Use
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, options
from mpdoctor.semantics.source.edits.expressions import safe_fix, without_keyword, without_part
from mpdoctor.semantics.source.edits.names import keras_name, named_instead

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
LEGACY = "keras.optimizers.legacy."
LEGACY_NAMES = ("Adagrad", "Adam", "Ftrl", "Optimizer", "RMSprop", "SGD")
EXPERIMENTAL = "keras.mixed_precision.experimental"
# What is in it, and goes by another name, or is called in another way, one level higher.
CHANGED = (
    ("set_policy", "`set_policy` is called `set_global_policy` there"),
    ("get_layer_policy", "`get_layer_policy(layer)` is `layer.dtype_policy`"),
    ("LossScaleOptimizer", "`LossScaleOptimizer` is given no `loss_scale` there"),
)
LOSS_SCALE_OF_POLICY = (
    "`Policy(…, loss_scale=…)` raises TypeError: a policy has carried no loss scale since TensorFlow 2.4.",
    "Drop `loss_scale`: compile() scales the loss under mixed_float16. To choose the scale yourself, wrap the "
    "optimizer: `LossScaleOptimizer(optimizer, initial_scale=…)`.",
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for use, since, instead in _uses_of_what_is_gone(facts):
        yield Finding(
            f"`{use.api.spelled}` was removed {since}; this line raises.",
            instead,
            use.location,
            evidence={"gone_since": since.partition(" ")[2]},
            fix=_fix(facts, use, instead),
        )
    yield from _scales_of_policies(facts)
    yield from _legacy_optimizers(facts)
    yield from _not_there_yet(facts)
    for call in facts.calls_of(POLICY):
        given = call.keyword("loss_scale")
        old_class = isinstance(call.callee, Api) and ".experimental." in call.callee.name
        if given is not None and not old_class and not call.context.asks_what_exists:
            fix = safe_fix("Drop `loss_scale`", without_keyword(facts, call.location, "loss_scale"))
            yield Finding(*LOSS_SCALE_OF_POLICY, call.location, fix=fix)


def _scales_of_policies(facts: SourceFacts) -> Iterator[Finding]:
    """A finding for each `policy.loss_scale`, of a policy that is not of the module experimental."""
    for read in facts.reads:
        made = options(read.of) if read.name == "loss_scale" and not read.context.asks_what_exists else ()
        # A policy that is given one raises where it is made.
        policies = [of for of in made if isinstance(of, Call) and of.keyword("loss_scale") is None]
        made_by = (policy.callee for policy in policies if isinstance(policy.callee, Api))
        names = [callee.name for callee in made_by if callee.is_(POLICY)]
        if made and len(names) == len(made) and not any(".experimental." in name for name in names):
            scale = "dynamic_scale" if facts.keras.is_keras3 else "loss_scale"
            yield Finding(
                "A policy has had no `loss_scale` since TensorFlow 2.4: this line raises AttributeError.",
                f"Ask the LossScaleOptimizer for it, `optimizer.{scale}`.",
                read.location,
            )


def _fix(facts: SourceFacts, use: Use, instead: str) -> Fix | None:
    """The edit for a name that was renamed or moved; a name whose replacement is another call gets none."""
    moved = re.fullmatch(r"Write `(mixed_precision\.(?:Policy|\w*global_policy))`\.", instead)
    if use.api.name.endswith(".experimental"):
        return None  # what the module is asked for is written elsewhere
    return safe_fix(f"Write `{moved[1]}`", named_instead(facts, use, moved[1])) if moved is not None else None


def _uses_of_what_is_gone(facts: SourceFacts) -> Iterator[tuple[Use, str, str]]:
    """Each use of a removed name, with the release that removed it and what to write instead. Where the import is
    reported, the uses of the imported name are not."""
    imported: list[str] = []
    for use in facts.uses:
        if not _may_be_gone(use.api.name) or use.context.asks_what_exists or is_private(use.api.spelled):
            continue
        gone = None if _is_stub(use.api) else _gone(use, facts.keras)
        if gone is None or is_at_or_below(use.api.spelled, imported):
            continue
        if use.is_import:
            imported.append(use.api.spelled)
        since, instead = gone
        yield use, since, _without_experimental(facts) if use.api.name == EXPERIMENTAL else instead


def _without_experimental(facts: SourceFacts) -> str:
    """What to write for the whole module: nearly all that is in it goes by the same name one level higher."""
    used = {
        use.api.name.removeprefix(f"{EXPERIMENTAL}.") for use in facts.uses if below(use.api.name, f"{EXPERIMENTAL}.")
    }
    changes = [change for name, change in CHANGED if name in used]
    return "; ".join(("Use `mixed_precision` itself, without `experimental`", *changes)) + "."


def _not_there_yet(facts: SourceFacts) -> Iterator[Finding]:
    """Names of Keras 3 where the program runs with Keras 2. (`import keras` may find another Keras than
    TensorFlow's.)"""
    for use in () if facts.keras.is_keras3 else facts.uses:
        instead = CAME_WITH_KERAS3.get(use.api.name) if use.api.root != "keras" else None
        if instead is None or not use.looks_up(use.api.name.rpartition(".")[2]) or use.context.asks_what_exists:
            continue
        written = keras_name(facts, instead) or f"keras.{instead}"
        edit = named_instead(facts, use, instead)
        yield Finding(
            f"`{use.api.spelled}` came with Keras 3, and this program runs with Keras 2: this line raises.",
            f"Write `{written}`.",
            use.location,
            fix=safe_fix(f"Write `{written}`", edit) if edit is not None else None,
        )


def _legacy_optimizers(facts: SourceFacts) -> Iterator[Finding]:
    """The legacy optimizers that the program makes or derives classes from in Keras 3, which keeps their names as
    stubs, so that `isinstance` with one of them raises nothing (measured in 3.15)."""
    if facts.keras.is_keras3:
        makings = (call for call in facts.library_calls if _makes_stub(facts, call))
        yield from (_raising(facts, call.callee, call.location) for call in makings)
        yield from (_raising(facts, base, base.location) for base in _certain_bases(facts) if _is_stub(base))


def _makes_stub(facts: SourceFacts, call: Call) -> bool:
    """Whether a call makes a legacy optimizer, on every path through the program."""
    if not isinstance(call.callee, Api) or not _is_stub(call.callee) or call.context.asks_what_exists:
        return False
    others = (library_call.callee for library_call in facts.library_calls if library_call.location == call.location)
    return all(isinstance(other, Api) and _is_stub(other) for other in others)


def _certain_bases(facts: SourceFacts) -> Iterator[Api]:
    """The library classes that the program derives from, outside any code that handles their absence."""
    certain = {use.location for use in facts.uses if not use.context.asks_what_exists}
    bases = (base for own in facts.classes for base in own.bases if isinstance(base, Api))
    return (base for base in bases if base.location in certain)


def _raising(facts: SourceFacts, stub: Value, location: Location) -> Finding:
    name = stub.spelled if isinstance(stub, Api) else ""
    return Finding(
        f"`{name}` does not work in Keras 3: the name still exists, but making one, or an object of a subclass, raises "
        "ImportError.",
        f"Use `keras.optimizers.{name.rpartition('.')[2]}`, or tf_keras with TF_USE_LEGACY_KERAS=1.",
        location,
        evidence={"gone_since": "Keras 3"},
        fix=safe_fix("Leave out `legacy`", without_part(facts, location, "legacy")),
    )


def _is_stub(api: Api) -> bool:
    return api.root != "tf_keras" and api.name.startswith(LEGACY) and api.name[len(LEGACY) :] in LEGACY_NAMES


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    said = failure.said_by_library
    missing = re.search(r"module '([\w.]+)' has no attribute '(\w+)'", said)
    name = _public_name(f"{missing[1]}.{missing[2]}") if missing else ""
    removed = (entry for entry in REMOVED if below(name + ".", entry[0]) or name == entry[0])
    gone = next((entry for entry in removed if _is_past(entry[1], failure.keras or Keras())), None)
    if gone is not None:
        below_it = re.search(rf"\b{name.rpartition('.')[2]}\.(\w+)", failure.failing_line)
        instead = gone[2].format(last=below_it[1] if below_it else "set_global_policy")
        yield Finding(f"`{name}` was removed from this version, and the program stops there.", f"Write `{instead}`.",
                      failure.location)  # fmt: skip
    elif re.search(r"Policy\.__init__\(\) got an unexpected keyword argument 'loss_scale'", said):
        yield Finding(*LOSS_SCALE_OF_POLICY, failure.location)


def _is_past(since: tuple[int, ...], keras: Keras) -> bool:
    """Whether this Keras is at or past the release that removed a name."""
    return keras.is_keras3 if since == KERAS3_ONLY else keras.is_keras3 or keras.tensorflow_release >= since


def _public_name(private: str) -> str:
    """The public name of a module: `keras.mixed_precision` for "tf_keras.api._v2.keras.mixed_precision"."""
    name = re.sub(r"^tensorflow\._api\.v2\.", "tensorflow.", private)
    return re.sub(r"^.*\bkeras\.(?:api\.)?(?=mixed_precision|optimizers)", "keras.", name)


@cache
def _may_be_gone(name: str) -> bool:
    """Whether some version has removed this name; a removed module counts as well as the names in it."""
    return any(_is_of(entry, name) for entry, *_ in REMOVED)


def _entry(name: str) -> tuple[str, tuple[int, ...], str] | None:
    return next((entry for entry in REMOVED if _is_of(entry[0], name)), None)


def _is_of(entry: str, name: str) -> bool:
    return below(name, entry) or name == entry.rstrip(".")


def _gone(use: Use, keras: Keras) -> tuple[str, str] | None:
    """The release that removed this name and what to write instead; None if this Keras has it, or may have it."""
    removed = _entry(use.api.name)
    if removed is None:
        return None
    entry, since, instead = removed
    last = use.api.name[len(entry) :].partition(".")[0]
    if not use.looks_up(last if since == KERAS3_ONLY else entry.rstrip(".").rpartition(".")[2]):
        return None
    if _never_was_there(entry, last):
        return None
    if since == KERAS3_ONLY:
        # Keras 3 still has the module, with classes that raise as soon as an object of them is made
        if not keras.is_keras3 or use.api.root == "tf_keras" or not last:
            return None
        to_write = f"Use `{instead.format(last=last or 'Adam')}`, or tf_keras with TF_USE_LEGACY_KERAS=1."
        return "in Keras 3", to_write
    if not _is_released(keras, since):
        return None
    number = ".".join(map(str, since))
    return f"in TensorFlow {number}", f"Write `{instead.format(last=last or 'set_global_policy')}`."


def _never_was_there(entry: str, name: str) -> bool:
    """Whether the old mixed_precision module never had this name; MP101 reports those."""
    return entry == "keras.mixed_precision.experimental." and bool(name) and name not in IN_EXPERIMENTAL


def _is_released(keras: Keras, since: tuple[int, ...]) -> bool:
    """Whether the TensorFlow is known to be that one or a later one, as it is beside Keras 3 and tf_keras."""
    release = keras.tensorflow_release if keras.package == "tf.keras" else (2, 16)
    return bool(release) and release >= since
