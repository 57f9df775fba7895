"""Which dtype policies the configuration of a saved model names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.examiner.saved.configuration import policies_in, policy_of_model

pytestmark = pytest.mark.fast

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEYS = st.text(max_size=5) | st.sampled_from(["class_name", "config", "name", "dtype"])
CONFIGURATIONS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=20,
)
PATHS = st.lists(st.integers(0, 5) | st.text(max_size=5), max_size=30)


def buried(value: Any, path: list[int | str]) -> Any:
    """The value below lists (numbers) and dicts (texts)."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [None] * (step % 3) + [value]
    return value


def layer(class_name: str = "Dense", **config: Any) -> dict[str, Any]:
    return {"class_name": class_name, "config": config}


def keras2(name: str) -> dict[str, Any]:
    return {"class_name": "Policy", "config": {"name": name}}


def keras3(name: str) -> dict[str, Any]:
    return {"module": "keras", "class_name": "DTypePolicy", "config": {"name": name}, "registered_name": None}


@given(CONFIGURATIONS)
def test_no_configuration_breaks_the_search(configuration: Any) -> None:
    assert all(isinstance(name, str) for pair in policies_in(configuration) for name in pair)
    policy = policy_of_model(configuration)
    assert policy is None or policy.endswith("float16")


@given(PATHS, st.sampled_from(["mixed_float16", "mixed_bfloat16"]))
def test_a_policy_is_found_however_deep_it_lies(path: list[int | str], name: str) -> None:
    assert policy_of_model(buried(keras3(name), path)) == name


@pytest.mark.parametrize(
    ("configuration", "policy"),
    [
        # Keras 2 keeps no policy of the model in a file: most of its 16-bit layers decide
        (layer("Sequential", layers=[layer(dtype=keras2("mixed_float16")), layer(dtype="float32")]), "mixed_float16"),
        (layer("Sequential", layers=[layer(dtype=keras2("mixed_bfloat16"))]), "mixed_bfloat16"),
        (
            layer("Functional", layers=[layer(dtype=keras2(f"mixed_{n}")) for n in ("bfloat16", "float16", "float16")]),
            "mixed_float16",
        ),
        (layer("Sequential", layers=[layer(dtype="float32")]), None),
        (layer("Sequential", layers=[layer(dtype="float16")]), None),
        (layer("Sequential", layers=[]), None),
        # a SavedModel of Keras 2 keeps it beside the configuration
        ({"dtype": keras2("mixed_float16"), **layer("Sub")}, "mixed_float16"),
        ({"dtype": "float32", **layer("Sequential", layers=[layer(dtype=keras2("mixed_float16"))])}, None),
        # Keras 3 keeps it in the configuration: by a class, or before 3.4 by its name
        (layer("Sequential", dtype=keras3("mixed_float16"), layers=[layer(dtype=keras3("float32"))]), "mixed_float16"),
        (layer("Sequential", dtype="mixed_bfloat16", layers=[]), "mixed_bfloat16"),
        (layer("Sequential", dtype=keras3("float16"), layers=[]), "float16"),
        # mixed layers in a float32 model: compile() will not scale, and loading it must not mend that
        (layer("Functional", dtype=keras3("float32"), layers=[layer(dtype=keras3("mixed_float16"))]), None),
    ],
)
def test_the_policy_of_a_model(configuration: Any, policy: str | None) -> None:
    assert policy_of_model(configuration) == policy
