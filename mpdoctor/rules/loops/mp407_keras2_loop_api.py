"""Code that runs in Keras 3 calls a method that only Keras 2's LossScaleOptimizer has.

## Why it matters
The line raises: `'LossScaleOptimizer' object has no attribute 'get_scaled_loss'`. Since TensorFlow 2.16
`tf.keras` is Keras 3, so loops written after TensorFlow's own mixed-precision guide stop here.
`get_scaled_loss` is now `scale_loss`. `get_unscaled_gradients` has no successor, because `apply` and
`apply_gradients` unscale by themselves. `minimize` was removed from all optimizers: in a program with a 16-bit
policy it is reported for bare ones too, because what takes its place has to scale the loss.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def scaled(loss):
    return optimizer.get_scaled_loss(loss)
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())


def scaled(loss):
    return optimizer.scale_loss(loss)
```

## Versions
Keras 3. To keep the old loop, use tf_keras with TF_USE_LEGACY_KERAS=1.

## Where users met it
keras-team/keras#19479, keras-team/keras#20894, tensorflow/tensorflow#64124.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import KERAS2_LOOP, WRAPPER_LACKS
from mpdoctor.program.events import Call, Read
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, options
from mpdoctor.semantics.source.edits.attributes import attribute_renamed
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_bare
from mpdoctor.semantics.source.optimizers.wrappers import wrapped
from mpdoctor.semantics.source.programs.attribute_access import reads
from mpdoctor.semantics.source.texts.written import call_of
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
KERAS = ("3",)
EXPLAINS = {"MP102": "line", "MP301": "line"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for read in reads(facts, KERAS2_LOOP):
        if read.context.guarded or not _raises(facts, read):
            continue
        of = text_at(facts, read.location).rpartition("." + read.name)[0] or "optimizer"
        yield Finding(
            f"`{of}.{read.name}` exists only in Keras 2; {_optimizer(read)} of Keras 3 has no such method, and "
            "this line raises.",
            KERAS2_LOOP[read.name].format(of=of),
            read.location,
            fix=_fix(facts, read),
        )


def _optimizer(read: Read) -> str:
    return "an optimizer" if _is_made_by_keras3(read.of) else "the LossScaleOptimizer"


def _fix(facts: SourceFacts, read: Read) -> Fix | None:
    """The edit for Keras 3, which unscales when it applies gradients: the unscaling call is replaced by its
    argument."""
    if read.name == "get_scaled_loss":
        return safe_fix("Write `scale_loss`", attribute_renamed(facts, read, "scale_loss"))
    call = call_of(facts, read.location) if read.name == "get_unscaled_gradients" else None
    return safe_fix("Leave the gradients scaled", passed_on(facts, call, 0, "grads")) if call is not None else None


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    match = re.search(WRAPPER_LACKS, failure.said_by_library) if failure.exception == "AttributeError" else None
    if match is not None and match[1] in KERAS2_LOOP:
        yield Finding(
            f"`{match[1]}` exists only in Keras 2; the LossScaleOptimizer of Keras 3 has no such method.",
            KERAS2_LOOP[match[1]].format(of="optimizer"),
            failure.location,
        )


def _raises(facts: SourceFacts, read: Read) -> bool:
    if wrapped(facts, read.of, read, certain=False):
        return True
    if read.name == "minimize" and facts.shows_mixed_precision:
        # no optimizer of Keras 3 has it; compile() and the policy may be in other files
        return _is_optimizer_of_model(read.of) or _is_made_by_keras3(read.of)
    # No optimizer of Keras 3 has these two; many other libraries have a `minimize`.
    return read.name != "minimize" and all(_may_be_keras3(option) for option in options(read.of))


def _is_made_by_keras3(value: Value) -> bool:
    """Whether it is one of the library's optimizers, in whichever path of the program."""
    made = [option for option in options(value) if isinstance(option, Call)]
    return 0 < len(made) == len(options(value)) and all(map(_is_one_made_by_keras3, made))


def _is_one_made_by_keras3(value: Call) -> bool:
    return is_bare(value, is_open=False) and _may_be_keras3(value) and not _is_legacy(value)


def _is_legacy(value: Value) -> bool:
    """Whether it is a legacy optimizer, which Keras 3 does not make at all."""
    return isinstance(value, Call) and isinstance(value.callee, Api) and ".legacy." in value.callee.name


def _is_optimizer_of_model(value: Value) -> bool:
    """Whether it is `self.optimizer` of a Keras model, set by compile() and never by its class."""
    if not isinstance(value, Attribute) or value.name != "optimizer":
        return False
    own = class_of(value.of)
    if own is None or own.kind != "model" or own.find_method("compile") is not None:
        return False
    bases = list(own.library_bases())
    is_own = any("optimizer" in ancestor.attributes or ancestor.find_method("optimizer") for ancestor in own.lineage())
    return bool(bases) and not is_own and all(base.root in ("keras", "tensorflow") for base in bases)


def _may_be_keras3(value: Value) -> bool:
    """Whether nothing shows that it is of the user's own class or of another library, which may have such a method."""
    own = class_of(value)
    if own is not None:
        return False
    if isinstance(value, Call):
        return (
            isinstance(value.callee, Api) and value.callee.name.startswith("keras.") and value.callee.root != "tf_keras"
        )
    return not isinstance(value, Api)
