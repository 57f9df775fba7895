"""Which layers a configuration holds, and the same configuration with other policies."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from written_models import dtype, layer, model

from mpdoctor.mending.saved.saved_policies import entry_of, global_policy_of, layers_in, with_policies, with_their_parts

pytestmark = pytest.mark.fast

MIXED = "mixed_float16"
MAP = {"class_name": "DTypePolicyMap", "config": {"default_policy": {}, "policy_map": {}}}
QUANTIZED = {"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8", "source_name": MIXED}}


def wrapped(keras: str) -> dict[str, Any]:
    """All kinds of layers in layers."""
    made = lambda name, class_name="Dense", **config: layer(name, MIXED, keras, class_name, **config)  # noqa: E731
    cells = made("cells", "StackedRNNCells", cells=[made("c1", "GRUCell"), made("c2", "LSTMCell")])
    return model(
        made("a", kernel_initializer={"class_name": "GlorotUniform", "config": {"seed": None, "dtype": "float32"}}),
        made("bi", "Bidirectional", layer=made("lstm", "LSTM"), backward_layer=made("back", "LSTM")),
        made("rnn", "RNN", cell=cells),
        made("td", "TimeDistributed", layer=model(made("deep"), name="inside")),
        model(made("s1"), made("s2"), name="sub"),
        layer("head", "float32", keras),
        {**made("own", "mine>Own", parts={"first": made("p")}), "inbound_nodes": [{"dtype": MIXED}]},
    )


PATHS = """a bi bi/lstm bi/back rnn rnn/cells rnn/cells/c1 rnn/cells/c2 td td/inside td/inside/deep sub sub/s1 sub/s2
head own own/p"""


@pytest.mark.parametrize("keras", ["3", "tf_keras", "2"])
def test_layers_are_found_wherever_they_stand(keras: str) -> None:
    found = layers_in(wrapped(keras))
    assert [saved.path for saved in found] == ["", *PATHS.split()]
    assert {saved.path for saved in found if saved.is_model} == {"", "td/inside", "sub"}
    assert {saved.policy for saved in found if not saved.is_model} == {MIXED, "float32"}
    assert not any(saved.kept_because for saved in found if not saved.is_model)


@pytest.mark.parametrize(
    ("chosen", "inside"),
    [
        ("a", "a"),
        ("bi", "bi bi/lstm bi/back"),
        ("rnn", "rnn rnn/cells rnn/cells/c1 rnn/cells/c2"),
        ("td", "td td/inside"),  # what a model in it computes in is for its own layers to say
        ("own", "own own/p"),
        ("head a", "head a"),
        ("nobody", ""),
    ],
)
def test_a_layer_takes_its_parts_along(chosen: str, inside: str) -> None:
    assert with_their_parts(layers_in(wrapped("3")), chosen.split()) == set(inside.split())


def test_what_is_one_object_changes_in_all_places() -> None:
    shared = {**layer("tied", MIXED), "shared_object_id": 7}
    configuration = model(model(shared, name="one"), model(shared, layer("own", MIXED), name="two"))
    assert with_their_parts(layers_in(configuration), ["one/tied"]) == {"one/tied", "two/tied"}


@pytest.mark.parametrize(
    ("live", "entry"),
    [("a", "a"), ("bi/forward_lstm", "bi"), ("sub/s1", "sub/s1"), ("mha/query", None), ("sub/gone", None), ("", None)],
)
def test_a_live_layer_is_kept_by_itself_or_by_what_makes_it(live: str, entry: str | None) -> None:
    assert entry_of(layers_in(wrapped("3")), live) == entry


# --- changing ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", ["3.15.1", "2.21.0"])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_only_the_dtypes_of_the_chosen_layers_change(version: str, policy: str) -> None:
    keras = "3" if version.startswith("3") else "tf_keras"
    before = wrapped(keras)
    kept = copy.deepcopy(before)
    chosen = ["a", "bi/lstm", "rnn/cells/c2", "td/inside/deep", "own/p"]
    after = with_policies(before, dict.fromkeys(chosen, policy), version, "keras")
    assert before == kept
    policies = {saved.path: saved.policy for saved in layers_in(after)}
    assert {path for path in policies if policies[path] == policy} - {"head"} == set(chosen)
    told = json.dumps(after)
    for name in chosen:
        assert policies[name] == policy
    # back again gives what there was
    assert with_policies(after, dict.fromkeys(chosen, MIXED), version, "keras") == kept
    assert told.count(MIXED) == json.dumps(kept).count(MIXED) - len(chosen)


FORMS = [  # what there was, policy, version, form, what there is
    (dtype(MIXED, "3"), "float32", "3.15.1", "keras", dtype("float32", "3")),
    (dtype("float32", "3"), MIXED, "3.15.1", "hdf5", dtype(MIXED, "3")),
    ({**dtype(MIXED, "3"), "shared_object_id": 5}, "float32", "3.15.1", "keras", dtype("float32", "3")),
    ("float32", MIXED, "3.0.5", "keras", MIXED),
    (dtype(MIXED, "tf_keras"), "float32", "2.21.0", "keras", "float32"),
    ("float32", MIXED, "2.21.0", "keras", dtype(MIXED, "tf_keras")),
    ("float32", MIXED, "2.10.0", "hdf5", dtype(MIXED, "2")),
    ("float32", MIXED, "2.15.0", "hdf5", dtype(MIXED, "tf_keras")),
    (dtype(MIXED, "2"), "mixed_bfloat16", "2.4.0", "hdf5", dtype("mixed_bfloat16", "2")),
]


@pytest.mark.parametrize(("before", "policy", "version", "form", "after"), FORMS)
def test_a_policy_is_written_as_that_keras_writes_it(
    before: Any, policy: str, version: str, form: str, after: Any
) -> None:
    dense = {"class_name": "Dense", "config": {"name": "a", "trainable": True, "dtype": before}}
    changed = with_policies(model(dense), {"a": policy}, version, form)
    assert changed["config"]["layers"][1]["config"]["dtype"] == after


KEPT = [
    (layer("x", MAP), "its policy is a DTypePolicyMap"),
    (layer("x", QUANTIZED), "its policy is a QuantizedDTypePolicy"),
    (layer("x", "int8_from_mixed_float16"), "it is quantized (int8_from_mixed_float16)"),
    (layer("x", 5), "its policy has no form that is known"),
    (layer("x", {"class_name": ["odd"], "config": {}}), "its policy has no form that is known"),
    (layer("x", {"class_name": "PolicyV1", "config": {"name": MIXED, "loss_scale": {}}}), "its policy is a PolicyV1"),
    (layer("x", {"class_name": "Policy", "config": {"name": MIXED, "more": 1}}), "its policy is a Policy"),
    (layer("x", "int64", class_name="IntegerLookup"), "it handles no floating-point numbers"),
    (layer("x", "string", "2", class_name="TextVectorization"), "it handles no floating-point numbers"),
    ({"class_name": "Mine", "config": {"name": "x", "trainable": True}}, "its configuration keeps no dtype"),
]


@pytest.mark.parametrize(("part", "reason"), KEPT)
def test_what_is_not_understood_stays(part: Any, reason: str) -> None:
    configuration = model(part)
    assert layers_in(configuration)[1].kept_because == reason
    assert with_policies(configuration, {"x": "float32"}, "3.15.1", "keras") == configuration


@pytest.mark.parametrize("configuration", [None, [], "text", {}, {"class_name": "Sequential"}, {"config": {"name": 1}}])
def test_what_is_no_model_has_no_layers(configuration: Any) -> None:
    assert layers_in(configuration) == ()
    assert with_policies(configuration, {"": "float32"}, "", "keras") == configuration


def test_nesting_has_no_depth_that_breaks_it() -> None:
    deep: Any = layer("l", MIXED)
    for _ in range(400):
        deep = layer("l", MIXED, layer=deep)
    assert len(layers_in(model(deep))) == 402


@pytest.mark.parametrize(
    ("configuration", "policy"),
    [
        (wrapped("3"), MIXED),
        (wrapped("2"), MIXED),
        (model(layer("a", "float32"), layer("b", "float32")), "float32"),
        (model(layer("a", "float32"), dtype=dtype("mixed_bfloat16", "3")), "mixed_bfloat16"),
        (model(layer("a", "float16"), layer("b", "float16"), layer("c", "float32")), "float16"),
        (model(layer("a", "float64")), "float64"),
        (model(), "float32"),
    ],
)
def test_the_policy_that_a_model_was_made_under(configuration: Any, policy: str) -> None:
    assert global_policy_of(configuration) == policy
