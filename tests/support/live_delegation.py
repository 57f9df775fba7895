"""What the LossScaleOptimizer of the Keras at hand answers for its inner optimizer, and what its constructor refuses:
measured, printed as JSON.

`mpdoctor/knowledge/wrapper_delegation.py` holds what this prints; `python tests/support/live_delegation.py` makes it
again, with TF_USE_LEGACY_KERAS=1 for tf_keras. It needs TensorFlow and no other file of this project.
"""

from __future__ import annotations

import inspect
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Private names that users have read from a wrapper (keras-team/keras#16218, tensorflow/models#9262 and others).
PRIVATE = ("_decayed_lr", "_hyper", "_hypers_created", "_get_hyper", "_set_hyper", "_variables", "_weights")


WRAPPED = "keras.mixed_precision.LossScaleOptimizer({})"
SGD = "keras.optimizers.SGD(0.1)"
GIVEN = (
    SGD,
    SGD + ", dynamic=True",
    SGD + ", dynamic=False",
    SGD + ", dynamic=False, initial_scale=1024.0",
    SGD + ", dynamic=False, initial_scale=1024.0, dynamic_growth_steps=10",
    SGD + ", True",
    SGD + ", 'dynamic'",
    SGD + ", 1024.0",
    SGD + ", initial_scale=1024.0",
    SGD + ", dynamic_growth_steps=100",
    SGD + ", name='scaling'",
    SGD + ", clipnorm=1.0",
    SGD + ", weight_decay=0.1",
    SGD + ", use_ema=True",
    SGD + ", loss_scale='dynamic'",
    SGD + ", growth_interval=100",
    "inner_optimizer=" + SGD,
    "'sgd'",
    "None",
    "keras.optimizers.SGD",
    "tf.compat.v1.train.GradientDescentOptimizer(0.1)",
    WRAPPED.format(SGD),
)


def refused():
    """{expression: name of the exception that it raises, None where it is accepted}"""
    import tensorflow as tf

    found = {}
    for given in GIVEN:
        expression = WRAPPED.format(given)
        try:
            eval(expression, {"tf": tf, "keras": tf.keras})  # of the list above
        except Exception as error:
            found[expression] = type(error).__name__
        else:
            found[expression] = None
    return found


def measured():
    """{wrapper: {"has": [names], "missing": [names], "own": [names], "lost": [names]}} for every wrapper of this Keras.

    has: the wrapper answers for it around at least one optimizer of this Keras.
    missing: some optimizer of this Keras has it, at once or when it is built, and the wrapper raises AttributeError.
    own: the wrapper answers with a value of its own, whatever the inner optimizer holds.
    lost: an assignment succeeds and never reaches the inner optimizer.
    """
    import tensorflow as tf

    optimizers = tf.keras.optimizers
    wrap = tf.keras.mixed_precision.LossScaleOptimizer
    groups = [optimizers]
    keras3 = hasattr(wrap, "scale_loss")  # its `optimizers.legacy` holds only classes that raise
    if not keras3 and getattr(optimizers, "legacy", None) is not None and hasattr(optimizers.legacy, "Adam"):
        groups.append(optimizers.legacy)
    return {_wrapper_name(wrap(group.Adam())): _answers(wrap, _optimizer_classes(group)) for group in groups}


def _wrapper_name(wrapper):
    return type(wrapper).__module__.split(".")[0] + "." + type(wrapper).__name__


def _optimizer_classes(group):
    found = []
    for name, value in sorted(vars(group).items()):
        if inspect.isclass(value) and name not in ("Optimizer", "LossScaleOptimizer"):
            try:
                value()
            except Exception:  # Optimizer itself, MultiOptimizer: they need arguments and add no hyper-parameter
                continue
            found.append(value)
    return found


def _answers(wrap, classes):
    has, missing, own, lost = set(), set(), set(), set()
    for optimizer_class in classes:
        has |= {name for name in dir(wrap(optimizer_class())) if not name.startswith("_")}
        built = _built(optimizer_class)
        missing |= {name for name in _lists_of(built) if not hasattr(wrap(built), name)}
        names = [name for name in dir(optimizer_class()) if not name.startswith("_") or name in PRIVATE]
        for name in names:
            inner = optimizer_class()
            try:
                value = getattr(inner, name)
            except Exception:
                continue
            wrapper = wrap(inner)
            (has if hasattr(wrapper, name) else missing).add(name)
            if callable(value) or hasattr(value, "dtype"):
                continue
            marker = _other(value)
            if marker is None or not _set(inner, name, marker):
                continue
            if hasattr(wrapper, name) and not _equal(getattr(wrapper, name), marker):
                own.add(name)
            fresh = optimizer_class()
            wrapper = wrap(fresh)
            if _set(wrapper, name, marker) and not _equal(getattr(fresh, name), marker):
                lost.add(name)
    return {"has": sorted(has), "missing": sorted(missing), "own": sorted(own), "lost": sorted(lost)}


def _built(optimizer_class):
    """With the lists of variables that it makes for what it trains; SGD only if it has momentum."""
    import tensorflow as tf

    try:
        optimizer = optimizer_class(momentum=0.9)
    except (TypeError, ValueError):
        optimizer = optimizer_class()
    make_variable = getattr(tf.keras, "Variable", tf.Variable)
    if hasattr(optimizer, "build"):  # a classic one makes them at the first step, and keeps no such lists
        optimizer.build([make_variable([1.0, 2.0])])
    return optimizer


def _lists_of(optimizer):
    return [name for name, value in vars(optimizer).items() if isinstance(value, list) and not name.startswith("_")]


def _other(value):
    if isinstance(value, bool):
        return not value
    if value is None:
        return 0.75
    if isinstance(value, (int, float)):
        return value + 0.25 if isinstance(value, float) else value + 1
    return None


def _set(target, name, value):
    try:
        setattr(target, name, value)
    except Exception:
        return False
    return True


def _equal(left, right):
    try:
        return bool(abs(float(left) - float(right)) < 1e-6)
    except (TypeError, ValueError):
        return left == right


if __name__ == "__main__":
    json.dump({"wrappers": measured(), "refused": refused()}, sys.stdout, indent=1)
    print()
