"""What rules advise where the common advice would not mend the line, and that no edit is made there."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import facts_of, findings_in

pytestmark = pytest.mark.fast

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"


@pytest.mark.parametrize(
    ("rule", "fixture", "advice", "has_fix"),
    [
        ("MP202", "flagged_codebook_average", 'Make the weight with `add_weight(…, dtype="float32", autocast=F', False),
        ("MP202", "flagged_codebook_average", "Cast the 16-bit side to float32, `tf.cast(inputs, tf.float32)`", True),
        ("MP202", "flagged_number_of_positions", "Cast the other operand to float32", False),
        ("MP202", "flagged_sum_of_a_list", "Cast it to the input's dtype: `tf.cast(tf.math.sqrt(float(len(inp", False),
        ("MP202", "flagged_weight_decay", "Cast the weights to float32 before they are squared", False),
        ("MP211", "flagged_length_that_is_known", "Count in integers and cast: `tf.cast(tf.range(…), …)`", False),
        ("MP211", "flagged_keras_ops", "Count in integers and cast: `ops.cast(ops.arange(…), …)`", False),
        ("MP212", "flagged_named_states", "Make the state in the layer's dtype", False),
        (
            "MP502",
            "flagged_one_in_float32_too",
            "Compute this in float32 (`tf.cast(…, tf.float32)`) and with 1e-6, since 1 - 1e-08 is 1.0 there too, or",
            False,
        ),
        (
            "MP502",
            "flagged_entropy_of_probabilities",
            "Write `tf.nn.log_softmax(logits)` in the place of `tf.mat",
            False,
        ),
        (
            "MP502",
            "flagged_softmax_of_a_policy",
            'Give `layers.Dense(2, activation="softmax")` (line 10) `dtype=',
            True,
        ),
        (
            "MP502",
            "flagged_focal_loss_keras2",
            'Give the model\'s last layer `dtype="float32"`, or cast `y_true`',
            False,
        ),
        ("MP504", "flagged_loss_of_the_model_itself", "Cast the predictions, `tf.cast(…, tf.float32)`, in `R", False),
        ("MP505", "flagged_joined_outside_of_a_loss", "Cast `boxes` first, `tf.cast(boxes, tf.float32)`: only", True),
        ("MP512", "flagged_bfloat16", 'Count in float32, `dtype="float32"`, cast what that meets to float32', False),
        ("MP512", "flagged_known_lengths", "Compute with them in float32, `tf.cast(…, tf.float32)`", False),
    ],
)
def test_advice_fits_the_line(rule: str, fixture: str, advice: str, has_fix: bool) -> None:
    source = (FIXTURES / rule.lower() / f"{fixture}.py").read_text(encoding="utf-8")
    findings = findings_in(
        facts_of(source, "tf_keras" if rule == "MP212" or fixture.endswith(("keras2", "triplets")) else "3")
    )
    about = [(finding.help, finding.fix is not None) for finding in findings if finding.code == rule]
    assert any(help.startswith(advice) and fixed is has_fix for help, fixed in about), about


def test_the_dtype_of_a_list_is_not_advised() -> None:
    source = (FIXTURES / "mp202" / "flagged_sum_of_a_list.py").read_text(encoding="utf-8")
    (finding,) = (finding for finding in findings_in(facts_of(source, "3")) if finding.code == "MP202")
    assert "sum(inputs).dtype" in finding.help
