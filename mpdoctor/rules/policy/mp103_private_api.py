"""The program uses a private mixed-precision name of TensorFlow or Keras.

## Why it matters
Private names move without notice. TensorFlow 2.4 has `_register_wrapper_optimizer_cls`; in 2.10, 2.15 and 2.21
importing it raises `ImportError: cannot import name '_register_wrapper_optimizer_cls'`. A private name that
still imports may belong to code that your model does not use: `tensorflow.python.keras.mixed_precision` in
TensorFlow 2.21 is an unused copy, and no layer reads the policy that it sets. The finding is an error where the
name no longer exists, and a warning where it does.

## Flagged
```python
from tensorflow.python.training.experimental.mixed_precision import _register_wrapper_optimizer_cls
```

## Fixed
```python
from tensorflow.keras import mixed_precision

mixed_precision.set_global_policy("mixed_float16")
```

## Versions
All. Which names exist depends on the version: `keras.mixed_precision.policy` and `loss_scale_optimizer` are modules of
Keras 2.6 to 2.12, where they are not reported; in Keras 2.13 and later, in tf_keras and in `tf.keras` of any release
importing them raises.

## Where users met it
keras-team/keras#15366, tensorflow/models#11216: a stale `keras` package beside a newer TensorFlow.
Reinstall the `keras` that belongs to your TensorFlow if the line is not your own.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_history import (
    FIRST_WITHOUT_EXPERIMENTAL,
    FIRST_WITHOUT_MODULES,
    GONE_WITH_EXPERIMENTAL,
    PRIVATE,
    below,
    is_at_or_below,
    is_private,
    module_inside,
)
from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.program.events import Use
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.names import named_instead
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.ERROR
FIXES = ("safe",)
ABOUT_MIXED_PRECISION = ("mixed_precision", "loss_scale", "lossscale", "dtype_polic", "dtypepolic", "autocast")
OWNERS = ("keras", "tf_keras", "keras_core", "tensorflow", "tensorflow_core")
PUBLIC = {
    "LossScaleOptimizer": "keras.mixed_precision.LossScaleOptimizer",
    "LossScaleOptimizerV3": "keras.mixed_precision.LossScaleOptimizer",
    "Policy": POLICY,
    "DTypePolicy": POLICY,
    "global_policy": "keras.mixed_precision.global_policy",
    "dtype_policy": "keras.config.dtype_policy",
    "set_policy": "keras.mixed_precision.set_global_policy",
    "set_global_policy": "keras.mixed_precision.set_global_policy",
    "set_dtype_policy": "keras.config.set_dtype_policy",
}

# A module that holds several private names has no single public name in its place.
MODULES = {"keras.src.dtype_policies.dtype_policy": "a name of `keras.config`"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.package.partition(".")[0] in OWNERS:
        return  # Keras and TensorFlow may use their own private names
    for use, gone, instead in _private_uses(facts):
        if use.api.root in facts.libraries_held:
            continue  # and so may their tests
        last, module = use.api.spelled.rpartition(".")[2], module_inside(use.api.spelled)
        what = f"`{module}` is a private module" if module else f"`{last}` is private"
        yield Finding(
            f"{what}, and {_release_named(use.api, facts.keras)} does not have it: this line raises."
            if gone
            else f"`{use.api.spelled}` is private: another release may move it without notice.",
            _advice(last, _named_below(facts, use) or instead),
            use.location,
            severity=Severity.ERROR if gone else Severity.WARNING,
            fix=_fix(facts, use, instead or PUBLIC.get(last, "")),
        )


def _fix(facts: SourceFacts, use: Use, public: str) -> Fix | None:
    """The edit that writes the public name of the same object."""
    name = public.removeprefix("tf.").removeprefix("keras.")
    if not all(part.isidentifier() for part in name.split(".")) or "." not in name:
        return None
    return safe_fix(f"Use `{name}`", named_instead(facts, use, name))


def _private_uses(facts: SourceFacts) -> Iterator[tuple[Use, bool, str]]:
    """Each certain lookup of a private mixed-precision name, whether this version lacks it, and its replacement. A name
    that was imported exists wherever its file uses it; a name read through an imported module may not."""
    imported_by: dict[str, list[str]] = {}
    missing_in: dict[str, list[str]] = {}
    begun = {facts.path, *(use.location.path for use in facts.uses if use.is_import)}
    for use in facts.uses:
        spelled, path = use.api.spelled, use.location.path
        if path not in begun:
            continue  # in a function of another file, whose imports were followed before: told of that file
        imported, missing = imported_by.setdefault(path, []), missing_in.setdefault(path, [])
        if not _is_private(spelled, facts.keras):
            continue
        gone, instead = (True, "") if module_inside(spelled) else _whether_gone(use.api, facts.keras)
        is_new = not is_at_or_below(spelled, imported)
        is_first_to_fail = gone and bool(use.dotted) and not is_at_or_below(spelled, missing)
        if use.is_import:
            imported.append(spelled)
        if use.context.guarded or not _is_certain(facts, use):
            continue
        if is_new or is_first_to_fail:
            yield use, gone, instead
        if gone:
            missing.append(spelled)


def _is_private(spelled: str, keras: Keras) -> bool:
    """Whether it is a private name of mixed precision; a module of `keras.mixed_precision` itself only where it is
    missing: elsewhere Keras uses it."""
    is_about_it = any(part in spelled.lower() for part in ABOUT_MIXED_PRECISION)
    return is_about_it and (is_private(spelled) or _lacks_module(module_inside(spelled), keras))


def _is_certain(facts: SourceFacts, use: Use) -> bool:
    """Whether it is looked up here: an import, or a name in a module that is no other one on any path."""
    others = (other.api.spelled for other in facts.uses if other.location == use.location)
    return use.is_import or (use.dotted > 0 and all(spelled == use.api.spelled for spelled in others))


def _lacks_module(module: str, keras: Keras) -> bool:
    """Whether this Keras certainly lacks a private module that some release of `keras.mixed_precision` had."""
    root, _, name = module.partition(".mixed_precision.")
    if root != "keras" or keras.package != "tf.keras":
        return bool(module)
    is_older = name in GONE_WITH_EXPERIMENTAL
    return keras.tensorflow_release >= (FIRST_WITHOUT_EXPERIMENTAL if is_older else FIRST_WITHOUT_MODULES)


def _named_below(facts: SourceFacts, use: Use) -> str:
    """The public names of all that a file uses of a private module; "" where that is nothing, or one has none."""
    module = use.api.spelled + "."
    if use.api.spelled not in (*MODULES, module_inside(use.api.spelled)):
        return ""
    below_it = (
        other.api.spelled
        for other in facts.uses
        if other.location.path == use.location.path and other.api.spelled.startswith(module)
    )
    names = [PUBLIC.get(name.removeprefix(module)) for name in dict.fromkeys(below_it)]
    return listed([f"`{name}`" for name in names if name]) if names and all(names) else ""


def _advice(last: str, instead: str) -> str:
    """The help text. `last` is the private name without its modules; an empty `instead` means that PUBLIC has it."""
    if instead.startswith("nothing"):
        return f"Leave it out: {instead}."
    serves = instead or PUBLIC.get(last) or "a name of `keras.mixed_precision`"
    return f"Use {serves if serves.startswith(('`', 'a name')) else f'`{serves}`'} instead."


def _whether_gone(api: Api, keras: Keras) -> tuple[bool, str]:
    """Whether the target certainly lacks this private name, and its replacement ("" where PUBLIC has it)."""
    spelled, release = api.spelled, keras.tensorflow_release
    if keras.package != "tf.keras":
        release = release or (2, 16)
    for name, first, last, instead in PRIVATE:
        if below(spelled.partition(".python.")[2] + ".", name + "." if not name.endswith(".") else name):
            return bool(release) and (release < first or (bool(last) and release >= last)), instead
    if spelled.startswith("keras.src.mixed_precision"):
        return keras.is_keras3, ""
    in_keras3 = spelled.startswith(("keras.src.optimizers.loss_scale", "keras.src.dtype_policies"))
    return in_keras3 and keras.package == "tf.keras", MODULES.get(spelled, "")


def _release_named(api: Api, keras: Keras) -> str:
    if api.root == keras.package:
        return str(keras)
    return f"TensorFlow {keras.tensorflow}" if keras.tensorflow else "the TensorFlow of today"
