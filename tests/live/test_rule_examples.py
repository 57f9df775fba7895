"""The examples in the documentation of rules that look at a live program: the flagged one shows the defect when it is
run, the fixed one does not. (Those of rules that read source are run in test_rules_contract.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import check, keras_is_missing
from marks import marks_from_source
from test_rules_contract import code_blocks

from mpdoctor.rules.registry import Rule, all_rules

OPTIONS = {"MP003": ("--timeout", "25"), "MP906": ("--reference",), "MP908": ("--reference",)}
LIVE = [rule for rule in all_rules() if not {"in_source", "in_suppression"} & set(rule.looks)]
pytestmark = [pytest.mark.slow, pytest.mark.sampled(26)]


def examples() -> list[tuple[Rule, str, str, str]]:
    """(rule, section, text, Keras) for every Keras that the rule speaks about and the example is written for."""
    found = []
    for rule in LIVE:
        for section in ("Flagged", "Fixed"):
            text = code_blocks(rule, section)[0]
            written_for = marks_from_source(text).keras or ("3", "tf_keras")
            spoken_about = {"2": "tf_keras", "3": "3"}
            found += [(rule, section, text, spoken_about[k]) for k in rule.keras if spoken_about[k] in written_for]
    return found


@pytest.mark.parametrize(
    ("rule", "section", "text", "keras"),
    [pytest.param(*example, id=f"{example[0].code}-{example[1]}-{example[3]}") for example in examples()],
)
def test_the_example_does_what_the_documentation_says(
    rule: Rule, section: str, text: str, keras: str, tmp_path: Path
) -> None:
    if keras_is_missing(keras):
        pytest.skip(keras_is_missing(keras))
    if rule.family == "devices" and section == "Flagged":
        pytest.skip("the example is about a GPU of its own")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    target = "train.py"
    if "in_saved_graph" in rule.looks:  # the example writes what is to be looked at
        legacy = "1" if keras == "tf_keras" else "0"
        environment = {**os.environ, "TF_USE_LEGACY_KERAS": legacy, "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment, check=True)
        target = "exported"
    done = check(target, "--seed", "1", *OPTIONS.get(rule.code, ()), directory=tmp_path, keras=keras)
    seen = {f["code"] for f in done.report["findings"]} | {
        also["code"] for f in done.report["findings"] for also in f["also_seen"]
    }
    if section == "Flagged":
        assert rule.code in seen, done
    else:
        assert rule.code not in seen and done.exit_code == 0, done
