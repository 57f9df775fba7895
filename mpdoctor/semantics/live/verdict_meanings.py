"""What each verdict on a short training means, by numbers: the table that docs/verdicts.md shows."""

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
SMALLEST_NORMAL = 2.0**-14  # of float16


class Meaning(NamedTuple):
    """when
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
        "Mend the line that MP901, or the rule that explains it, names.",
    ),
    Verdict.INCONCLUSIVE: Meaning(
        f"Fewer than {FEWEST_STEPS} steps were seen; or every step of the last third was skipped and the loss scale, "
        "not yet at its floor of 1 (Keras 2) nor below 1 (Keras 3), was still on its first way down; or steps failed "
        "in a kernel of this device alone: CPUs add up float16 numbers in float16 and lose sums beyond 65504, also "
        "those of a mean of up to 65519 numbers.",
        "The report says what would make it conclusive: `--steps`, `--budget`, or a GPU.",
    ),
    Verdict.NOT_FINITE: Meaning(
        "A weight is inf or NaN, or the loss of a step that was applied is, however few steps were seen; unless the "
        "loss scale had fallen to 0 before.",
        "See which operation made the first one: MP907, MP904.",
    ),
    Verdict.STUCK: Meaning(
        "Keras 2: the loss scale lies at its floor of 1, and every step of the last third was skipped.",
        "Nothing is trained. Mend the overflow that is named first: MP902.",
    ),
    Verdict.COLLAPSING: Meaning(
        "Keras 3: the loss scale fell below 1 and every step of the last third was skipped; or it fell below 2^-14, so "
        "that a gradient of 1 is no normal float16 number any more; or it grew to inf.",
        "Nothing is trained, and at 0 the weights become NaN: MP903.",
    ),
    Verdict.OVERFLOWING: Meaning(
        "After the first applied step more were skipped, to the last third, than a scale needs to find its place: "
        f"{HALVINGS_TO_SETTLE}, and one a growth interval, where that is {SHORTEST_INTERVAL} steps or more. Or "
        "gradients leave float16 without any scaling: the scale lies below 1 after skipped steps (Keras 3), or at its "
        f"floor of 1, where more than {HALVINGS_OF_THE_UNFIT} was skipped (Keras 2). Or batches overflow whatever the "
        f"scale is, and more than {HALVINGS_OF_THE_UNFIT} was skipped, wherever they stood.",
        "Training goes on, and loses those steps, or its small gradients: MP905.",
    ),
    Verdict.SETTLING: Meaning(
        "A step of the last third was skipped, and not more of them than a scale needs to find its place; or the scale "
        "found it only after as many steps as the script itself takes.",
        "Ask for more `--steps` to see the end of it. Where the script's own steps were lost: MP910.",
    ),
    Verdict.NO_UPDATE: Meaning("Steps were applied, and no trainable variable moved.", "MP909 says why."),
    Verdict.HEALTHY: Meaning(
        "None of these: no step of the last third was skipped, every loss is finite, the weights move.", "Nothing."
    ),
}


def table_of_meanings() -> list[str]:
    """The lines of a Markdown table."""
    rows = [f"| {verdict.value} | {meaning.when} | {meaning.what_to_do} |" for verdict, meaning in MEANINGS.items()]
    return ["| Verdict | When | What to do |", "|---|---|---|", *rows]
