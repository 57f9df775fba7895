"""The meaning of each verdict on a short training, in numbers: the table in docs/verdicts.md."""

from __future__ import annotations

from typing import NamedTuple

from mpdoctor.finding import Verdict

FEWEST_STEPS = 10
# Measured without any defect: regression on targets of some hundreds skips the steps 0 to 6, 12, 19, 32 and 54; an LSTM
# with class weights 76, 85 and 113. Each time the gradients had grown and the scale was halved once more.
HALVINGS_TO_SETTLE = 5
HALVINGS_OF_THE_UNFIT = 1
# From here on a skip a growth interval is by design. With dynamic_growth_steps=2 it would be every third step.
SHORTEST_INTERVAL = 10


class Meaning(NamedTuple):
    """What a verdict stands for.

    when
        The numbers that make it so; "the last third" is that of the steps that were seen.
    what_to_do
        What a reader does next.
    """

    when: str
    what_to_do: str


# The first of these that fits is the verdict.
MEANINGS = {
    Verdict.FAILED: Meaning(
        "The training step, a callback, or the end of fit() raised an error.",
        "Fix the line named by MP901, or by the rule that explains the error.",
    ),
    Verdict.INCONCLUSIVE: Meaning(
        f"Fewer than {FEWEST_STEPS} steps were seen. Or every step of the last third was skipped while the loss scale "
        "was still falling for the first time: not yet at its floor of 1 (Keras 2), nor below 1 (Keras 3). Or steps "
        "failed only because of this device: CPUs sum float16 numbers in float16 and lose sums beyond 65504, "
        "including the sum inside a mean of up to 65519 numbers.",
        "Do what the report says: `--steps`, `--budget`, or a GPU.",
    ),
    Verdict.NOT_FINITE: Meaning(
        "A weight, or the loss of an applied step, is inf or NaN, however few steps were seen. Not if the loss scale "
        "had fallen to 0 before.",
        "See which operation caused it: MP907, MP904.",
    ),
    Verdict.STUCK: Meaning(
        "Keras 2: the loss scale is at its floor of 1, and every step of the last third was skipped.",
        "Nothing is trained. Fix the overflow that is named first: MP902.",
    ),
    Verdict.COLLAPSING: Meaning(
        "Keras 3: the loss scale fell below 1, and every step of the last third was skipped. Or it fell below 2^-14, "
        "where even a gradient of 1 becomes a subnormal float16 number. Or it grew to inf.",
        "Nothing is trained, and at a scale of 0 the weights become NaN: MP903.",
    ),
    Verdict.OVERFLOWING: Meaning(
        "Steps were skipped up to the last third, and more of them after the first applied step than a scale needs to "
        f"settle: {HALVINGS_TO_SETTLE}, and one per growth interval if that is {SHORTEST_INTERVAL} steps or more. Or "
        "gradients leave float16's range even without scaling: the scale is below 1 after skipped steps (Keras 3), or "
        f"at its floor of 1 with more than {HALVINGS_OF_THE_UNFIT} step skipped there (Keras 2). Or batches overflow "
        f"at every scale, and more than {HALVINGS_OF_THE_UNFIT} step was skipped, early or late.",
        "Training goes on, but loses those steps, or its small gradients: MP905.",
    ),
    Verdict.SETTLING: Meaning(
        "A step of the last third was skipped, but not more steps than a scale needs to settle. Or at most one in "
        "ten of the steps that the script itself runs is applied.",
        "Train longer with `--steps`. Where the script's own steps were lost: MP910.",
    ),
    Verdict.NO_UPDATE: Meaning("Steps were applied, but no trainable variable changed.", "MP909 says why."),
    Verdict.HEALTHY: Meaning(
        "None of these: no step of the last third was skipped, every loss is finite, and the weights change.",
        "Nothing.",
    ),
}


def table_of_meanings() -> list[str]:
    """The lines of a Markdown table."""
    rows = [f"| {verdict.value} | {meaning.when} | {meaning.what_to_do} |" for verdict, meaning in MEANINGS.items()]
    return ["| Verdict | When | What to do |", "|---|---|---|", *rows]
