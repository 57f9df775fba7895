"""Arguments by position or by keyword: rules give the same findings for every spelling of a call."""

from __future__ import annotations

import ast
import importlib
import inspect
import time
from pathlib import Path

import pytest
from checking import keras_is_missing
from fuzzing import at_most
from judging import facts_of, findings_in

from mpdoctor import rules
from mpdoctor.knowledge.api_parameters import PARAMETERS

START = """\
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Mine(keras.layers.Layer):
    def call(self, x):
        {line}
"""


def codes(line: str) -> list[str]:
    return [finding.code for finding in findings_in(facts_of(START.format(line=line), "3"))]


@pytest.mark.parametrize(
    ("by_position", "by_name"),
    [
        ("return tf.reduce_sum(tf.abs(x))", "return tf.reduce_sum(input_tensor=tf.abs(x=x))"),
        ("return x + tf.ones([4])", "return tf.add(y=tf.ones([4]), x=x)"),
        ("return x + tf.cast(x > 0, self.dtype)", "return tf.add(x=x, y=tf.cast(x=x > 0, dtype=self.dtype))"),
        ("return x / (x + 1e-8)", "return tf.divide(x=x, y=tf.add(x=x, y=1e-8))"),
        ("return tf.cast(tf.range(0, 5000), x.dtype)", "return tf.cast(tf.range(start=0, limit=5000), x.dtype)"),
        ("return (1.0 - x) * -1e9", "return tf.multiply(x=tf.subtract(x=tf.ones_like(x), y=x), y=-1e9)"),
    ],
)
def test_a_name_is_as_good_as_a_position(by_position: str, by_name: str) -> None:
    assert codes(by_position)
    assert codes(by_name) == codes(by_position)


@pytest.mark.parametrize(
    "line",
    [
        "return tf()",
        "return keras()(x)",
        "return tf.reduce_sum(tf.abs())",
        "return tf.reduce_sum(tf.square(name='s'))",
        "return tf.multiply(tf.cast(), -1e9)",
        "return tf.cast(tf.range(limit=1e5), x.dtype)",
        "return tf.cast(tf.range(), x.dtype)",
        "return x * tf.cast(dtype=self.dtype)",
        "return tf.map_fn(fn=lambda y: tf.identity(), elems=x, fn_output_signature=tf.float32)",
        "keras.mixed_precision.set_global_policy(keras.dtype_policies.get())",
        "return tf.matmul(tf.transpose(), tf.reshape(x, [1]), transpose_b=True)",
        "return tf.einsum('bijc,bijd->bcd')",
        "return tf.concat()",
        "return tf.where(x=x)",
        "import functools\n        return functools.partial()(x)",
        "return tf.function()(x)",
        "return list(zip())[0] + list(enumerate())",
        "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=1" + "0" * 400 + ")",
        "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=10 ** 300 * 10 ** 300)",
        "return x * int('9' * 90) ** 9 / 10 ** 400",
    ],
)
def test_a_call_without_its_arguments_breaks_no_rule(line: str) -> None:
    codes(line)


def test_no_rule_takes_an_argument_of_which_nobody_knows_that_it_is_there() -> None:
    """`call.args[0]` is wrong in each rule that says it: `call.argument(0)` may be None, and mypy asks what then."""
    for path in Path(rules.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            taken = node.value if isinstance(node, ast.Subscript) else None
            assert not (isinstance(taken, ast.Attribute) and taken.attr in ("args", "keywords")), (path, node.lineno)


@pytest.mark.slow
def test_the_parameters_are_those_of_the_installed_libraries() -> None:
    for package, keras in (("tensorflow", "3"), ("keras", "3"), ("tf_keras", "tf_keras")):
        if keras_is_missing(keras):
            pytest.skip(keras_is_missing(keras))
        library = importlib.import_module(package)
        for name, expected in PARAMETERS.items():
            of_backend = name.startswith("keras.backend.")
            if package != ("tf_keras" if of_backend else name.partition(".")[0]):
                continue
            parameters = [
                parameter
                for parameter in inspect.signature(_found(library, name)).parameters
                if parameter not in ("name",)
            ]
            assert tuple(parameter for parameter in parameters if parameter != "layout")[: len(expected)] == expected, (
                name
            )


def _found(library: object, name: str) -> object:
    for places in (("",), ("math", "linalg")):
        for place in places:
            found = library
            for attribute in (*filter(None, [place]), *name.split(".")[1:]):
                found = getattr(found, attribute, None)
            if found is not None:
                return found
    raise AssertionError(name)


@pytest.mark.parametrize(
    "line",
    ["x = x + tf.cast(x, tf.float16)", "x = tf.concat([x, x], 0)"],
)
def test_a_computation_of_two_thousand_lines_is_judged_in_seconds(line: str) -> None:
    """Each line is made of those before it, twice over: what is asked of one is remembered."""
    started = time.process_time()
    codes("\n        ".join([line] * 2000))
    assert time.process_time() - started < 6


USES = "\n        ".join(
    ["y = 1 / x", "y = tf.reduce_sum(tf.square(x))", "y = x * -1e9", "y = x + tf.ones([3])", "y = tf.map_fn(f, x)"]
)


@pytest.mark.parametrize("first", ["pass", "x = np.zeros(3)", "x = self.w", "x = 1.0 - x"])
@pytest.mark.parametrize("line", ["x = x + x", "x = x * x", "x = tf.add(x, x)", "x = x[0] - x[1]"])
def test_a_value_that_holds_another_a_million_million_times_is_asked_about_once(first: str, line: str) -> None:
    with at_most(60):  # 40 lines took for ever
        codes("\n        ".join(["import numpy as np", "self.w = self.add_weight()", first, *[line] * 40, USES]))


NESTED = """
import numpy as np
import tensorflow as tf

x = np.zeros(3)
{lines}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=x, weighted_metrics=x)
model.fit(x, x)
y = tf.constant(x)
y = tf.reduce_sum(tf.square(tf.stack(x)))
"""


@pytest.mark.parametrize("keras", ["3", "tf_keras"])
@pytest.mark.parametrize(
    "line", ["x = [x, x]", "x = (x, [x])", "x = {'a': x, 'b': x}", f"x = [{', '.join(['x'] * 64)}]"]
)
def test_a_structure_that_holds_another_a_million_million_times_is_asked_about_once(line: str, keras: str) -> None:
    with at_most(60):  # 30 lines took for ever
        findings_in(facts_of(NESTED.format(lines="\n".join([line] * 40)), keras))
