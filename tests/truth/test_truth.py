"""Scripts whose truth is known by construction: what mpdoctor says of them beside what plain Keras does.

pytest -m slow tests/truth --truth-seed 7 --truth-scripts 10
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import pytest
from checking import needs_keras

from mpdoctor.finding import Verdict
from mpdoctor.rules.registry import all_rules

from .__main__ import BEGIN, END, main
from .comparing import Outcome, cause_is_right, compared, difference_of_steps, line_from_outcome, run_and_write
from .generator import KINDS, script_from_seed
from .known_wrong import KNOWN_WRONG, right_by_now
from .options import seed_of
from .smallest import Smallest, layers_of
from .smallest import told as smallest_told
from .table import CLAIMS, disagreements, markdown_from_outcomes, shares, text_from_disagreement
from .verdicts import TABLE, History, history_from_record, verdict_of
from .writing import Script, Truth

DOCS = Path(__file__).parents[2] / "docs"
ONE_OF_EACH = [script_from_seed(5, number) for number in range(len(KINDS))]
CLEAN = Outcome(
    *(1, 0, "3", "dense", "healthy", "healthy", "fit", 50, "healthy", "healthy", None, "healthy", "", "", []),
    *(True, True, True, True, None, None),
)


# --- the sample -------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.long
@needs_keras("3")
@needs_keras("tf_keras")
def test_a_sample_of_scripts(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    option = request.config.getoption
    seed, first, count = seed_of(request.config), option("--truth-first"), option("--truth-scripts")
    print(f"{count} scripts: --truth-seed {seed} --truth-first {first} --truth-scripts {count}")
    results = option("--truth-results") or tmp_path / "results.jsonl"
    scripts = [script_from_seed(seed, number) for number in range(first, first + count)]
    outcomes = list(run_and_write(scripts, tmp_path / "scripts", results))
    told = [text_from_disagreement(outcome, claim) for outcome, claim in disagreements(outcomes)]
    print("\n".join(told))
    for entry, number in right_by_now(outcomes):
        print(f"right in all of {number}: {entry}")
    missed = [f"{s.words}: {s.right} of {s.judged}" for s in shares(outcomes) if not s.is_enough]
    assert not missed, "\n".join([*missed, *told])


# --- the generator ----------------------------------------------------------------------------------------------
def test_a_seed_and_a_number_give_the_same_script_again() -> None:
    assert [script_from_seed(5, script.number) for script in ONE_OF_EACH] == ONE_OF_EACH
    assert len({script.text for script in ONE_OF_EACH}) == len(ONE_OF_EACH)
    assert script_from_seed(6, 0).text != script_from_seed(5, 0).text


@pytest.mark.parametrize("script", ONE_OF_EACH, ids=lambda script: script.name)
def test_a_script_is_a_program_of_plain_keras(script: Script) -> None:
    ast.parse(script.text)
    assert "mpdoctor" not in script.text
    assert ("import tf_keras as keras" in script.text) == (script.keras == "tf_keras")
    assert "set_random_seed(" in script.text and "default_rng(" in script.text


def test_what_is_made_reaches_every_style_both_kerases_and_both_policies() -> None:
    many = [script_from_seed(seed, number) for seed in range(5) for number in range(len(KINDS))]
    texts = "\n".join(script.text for script in many)
    for word in (
        *(
            "keras.Sequential([",
            "model.add(",
            "keras.Model(inputs",
            "class Net(keras.Model)",
            "def train_step",
            "@tf.function",
        ),
        *(
            "GradientTape",
            "LossScaleOptimizer",
            "train_on_batch",
            "Dataset",
            "Conv2D",
            "MultiHeadAttention",
            "LSTM",
            "GRU",
        ),
        *("Embedding", "BatchNormalization", "mixed_bfloat16", "get_unscaled_gradients", "scale_loss", "-1e9"),
    ):
        assert word.replace("([", "(") in texts, word
    assert {script.keras for script in many} == {"3", "tf_keras"}
    assert {name for name, _ in KINDS} == {
        script.kind.removesuffix("_right").removesuffix("_bfloat16") for script in many
    }


def test_truths_name_rules_that_there_are_and_verdicts_that_there_are() -> None:
    codes = {rule.code for rule in all_rules()}
    for script in ONE_OF_EACH:
        assert script.truth.codes <= codes, script.name
        assert script.truth.verdicts <= set(Verdict), script.name
        re.compile(script.truth.words), re.compile(script.truth.never)


def test_a_twin_has_no_defect() -> None:
    for script in ONE_OF_EACH:
        assert script.truth.is_healthy == (
            script.twin != "" or script.truth == script.truth.__class__(verdicts=script.truth.verdicts)
        ), script.name


# --- the verdict, from plain Keras' record ----------------------------------------------------------------------
def history(signs: str, scale: float = 32768.0, keras: str = "3", **facts: Any) -> History:
    """From a text: "+" applied, "-" skipped."""
    scales = []
    for sign in signs:
        scales.append(scale)
        scale = max(scale / 2, 0.0 if keras == "3" else 1.0) if sign == "-" else scale
    skipped = tuple(sign == "-" for sign in signs)
    plain = History(keras, tuple(scales), skipped, (0.5,) * len(signs), True, True, True, 2000)
    return dataclasses.replace(plain, **facts)


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (history("+" * 50), "healthy"),
        (history("---" + "+" * 47), "healthy"),
        (history("+" * 9), "inconclusive"),
        (history("-" * 16), "inconclusive"),
        (history("-" * 50), "collapsing"),
        (history("-" * 50, keras="tf_keras"), "stuck"),
        (history("-" * 14, keras="tf_keras"), "inconclusive"),
        (history("-" * 30 + "+" * 60), "collapsing"),
        (history("+" * 20 + "-" + "+" * 9), "settling"),
        (history("+" * 20 + "-----" + "+-+++"), "overflowing"),
        (history("+" * 20 + "--" + "+" * 8), "settling"),
        (history("+" * 20 + "--" + "+" * 8, unfit=True), "overflowing"),
        (history("+" * 50, moved=False), "no-update"),
        (history("+" * 50, sound=False), "not-finite"),
        (history("+" * 50, losses=(math.nan,) * 50), "not-finite"),
        (history("-" + "+" * 49, losses=(math.nan, *(0.5,) * 49)), "healthy"),
        (history("-" * 29 + "+", 0.0, sound=False), "collapsing"),
        (history("-" * 50, device_alone=True), "inconclusive"),
        (history("", raised=True), "failed"),
        (history("+" * 50, scales=(math.inf,) * 50), "collapsing"),
    ],
)
def test_a_history_gets_its_verdict(told: History, verdict: str) -> None:
    assert verdict_of(told) == verdict


def test_the_verdicts_stand_in_the_order_of_their_page() -> None:
    page = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    documented = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][1:]
    assert list(dict.fromkeys(name for name, _ in TABLE)) == documented


RECORD = {
    "raised": None,
    "optimizers": [
        {
            "steps": 3,
            "scale": [4.0, 2.0, 2.0],
            "finite": [False, True, True],
            "loss": ["nan", 0.5, 0.4],
            "moved": [False, False, True],
            "sound": [True, True, True],
            "last_moved": True,
            "last_sound": False,
            "dynamic": True,
            "initial": 4.0,
            "growth": 2000,
        }
    ],
}


def test_a_history_is_read_from_a_record_as_far_as_mpdoctor_went() -> None:
    two, three = (history_from_record("3", RECORD, steps, False, False) for steps in (2, 3))
    assert (two.skipped, two.moved, two.sound, two.unfit) == ((True, False), True, True, True)
    assert (three.moved, three.sound) == (True, False)


# --- the comparison ---------------------------------------------------------------------------------------------
def probe(scales: list[float], skipped: list[int]) -> dict[str, Any]:
    return {"steps": len(scales), "loss_scale": scales, "skipped_steps": skipped, "verdict": "healthy"}


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (probe([4.0, 2.0, 2.0], [0]), ""),
        (probe([4.0, 2.0], [0]), ""),
        (probe([4.0, 4.0, 2.0], [0]), "step 2: the loss scale"),
        (probe([4.0, 2.0, 2.0], [0, 2]), "step 3: skipped"),
        (probe([4.0, 2.0, 2.0], []), "step 1: applied"),
        (probe([], []), "no step"),
    ],
)
def test_the_first_step_that_differs_is_told(seen: dict[str, Any], words: str) -> None:
    assert words in difference_of_steps(RECORD, seen)
    assert bool(words) == bool(difference_of_steps(RECORD, seen))


def finding(code: str, message: str, severity: str = "error") -> dict[str, Any]:
    return {
        "code": code,
        "message": message,
        "severity": severity,
        "help": "",
        "what_if": False,
        "line": None,
        "also_seen": [],
    }


@pytest.mark.parametrize(
    ("findings", "right"),
    [
        ([finding("MP904", "it is a constant")], True),
        ([finding("MP904", "it is something else")], False),
        ([finding("MP905", "it is a constant")], False),
        ([finding("MP904", "a constant"), finding("MP503", "the moon")], False),
        ([], False),
    ],
)
def test_a_cause_is_a_rule_and_its_words(findings: list[dict[str, Any]], right: bool) -> None:
    truth = Truth("ill", codes=frozenset({"MP904"}), words="constant", never="moon")
    assert cause_is_right(truth, findings, {}) == right


def test_a_warning_on_a_healthy_script_is_a_disagreement() -> None:
    script = next(script for script in ONE_OF_EACH if script.truth.is_healthy)
    record = {"raised": None, "optimizers": [{**RECORD["optimizers"][0], "last_sound": True}]}  # type: ignore[index]
    seen = probe([4.0, 2.0, 2.0], [0])
    for severity, silent in (("warning", False), ("info", True)):
        outcome = compared(script, record, {"probes": [seen], "findings": [finding("MP904", "no", severity)]})
        assert outcome.silent is silent
        assert [claim for _, claim in disagreements([outcome])].count("silent") == (not silent)


# --- the table --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("claim", [claim for claim, _, _ in CLAIMS])
def test_what_is_wrong_lowers_its_share_and_is_told(claim: str) -> None:
    wrong = dataclasses.replace(CLEAN, number=1, **{claim: False})
    (share,) = [share for share in shares([wrong, wrong]) if share.claim == claim]
    assert (share.right, share.judged, share.is_enough) == (0, 2, False)
    assert "show 1 1" in markdown_from_outcomes([CLEAN, wrong])
    assert not disagreements([CLEAN])


def test_entries_of_the_known_are_of_scripts_that_are_made() -> None:
    made = {script.kind for script in ONE_OF_EACH}
    claims = {claim for claim, _, _ in CLAIMS}
    for entry in KNOWN_WRONG:
        assert entry.kind in made, entry
        assert entry.claim in claims, entry
        assert entry.keras in ("", "3", "tf_keras"), entry
        many = (script_from_seed(seed, number) for seed in range(9) for number in range(len(KINDS)))
        assert any(script.kind == entry.kind and entry.holds in script.text for script in many), entry


def test_the_page_shows_all_that_is_known_to_be_wrong() -> None:
    page = (DOCS / "measurements.md").read_text(encoding="utf-8")
    for entry in KNOWN_WRONG:
        row = re.compile(rf"\| `{entry.kind}`[^|]*\| {entry.keras or 'both'} \| {entry.claim.partition('_')[0]} \|")
        assert [line for line in page.splitlines() if row.match(line) and entry.instead in line], entry


def test_the_layers_of_a_script_are_those_that_compute_in_16_bits() -> None:
    assert list(layers_of(script_from_seed(7, 19).text)) == ["first", "hidden"]
    assert list(layers_of(script_from_seed(7, 36).text)) == ["embed", "collect", "squash", "after"]


def test_no_set_is_smaller_than_one_layer() -> None:
    row = Smallest(1, 2, "3", "long sum", ["a", "b"], ["a", "b"], ["b"], 2)
    assert (row.least, Smallest(1, 2, "3", "long sum", ["a"], ["a"], [], 0).least) == (1, 1)
    assert smallest_told([row]).endswith("| **all** | | 1 | | 2 | 1 | 2 |")


def test_the_counts_are_written_between_their_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, results = tmp_path / "measurements.md", tmp_path / "results.jsonl"
    page.write_text(f"before\n{BEGIN}\nold counts\n{END}\nafter\n", encoding="utf-8")
    results.write_text(f"{line_from_outcome(CLEAN)}\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["truth", "table", str(results), "--page", str(page)])
    main()
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}") and text.endswith(f"{END}\nafter\n")
    assert "old counts" not in text and "1 scripts: 1 in Keras 3" in text


def test_a_script_that_is_in_the_results_is_not_run_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text(f"{line_from_outcome(CLEAN)}\n", encoding="utf-8")
    assert list(run_and_write([script_from_seed(CLEAN.seed, CLEAN.number)], tmp_path / "scripts", results)) == []
