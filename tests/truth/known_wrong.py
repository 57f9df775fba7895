"""What mpdoctor is known to get wrong on these scripts: counted, shown in docs/accuracy.md, and left out of the shares.

An entry that is right by now is one to delete: `python -m tests.truth table` and the sample in test_truth.py say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .comparing import Outcome
from .generator import script_from_seed
from .writing import KERAS3, TF_KERAS


@dataclass(frozen=True)
class KnownWrong:
    """One claim about one kind of script. `keras` is "" where it is wrong in both, `holds` what the script's text must
    hold; `instead` is what is said."""

    kind: str
    claim: str
    instead: str
    keras: str = ""
    holds: str = ""

    def covers(self, outcome: Outcome, claim: str) -> bool:
        if (self.kind, self.claim) != (outcome.kind, claim) or self.keras not in ("", outcome.keras):
            return False
        return self.holds in script_from_seed(outcome.seed, outcome.number).text


FLUSHED = "that float16 gradients are all flushed to 0, and to leave out initial_scale"
DATA = "that the batch itself holds inf or NaN"
CONSTANT = "that a constant is inf, and to use one that float16 holds"
KNOWN_WRONG: tuple[KnownWrong, ...] = (
    KnownWrong("rate_of_zero", "cause_right", FLUSHED),
    KnownWrong("dead_relu", "cause_right", FLUSHED),
    KnownWrong("mean_of_many", "cause_right", FLUSHED),
    KnownWrong("divergence", "cause_right", "that an activation overflows, and to use smaller initial weights"),
    KnownWrong("log_of_softmax", "cause_right", "to add an epsilon to the logarithm"),
    KnownWrong("scale_grows_often", "cause_right", "nothing: the verdict is settling"),
    KnownWrong("short_script", "verdict_equal", "the verdict on 50 steps, of which the script has 24"),
    KnownWrong("short_script", "cause_right", "that steps were lost on the way down, as advice and not as a warning"),
    KnownWrong("rests_below_one", "cause_right", "nothing: the verdict is healthy", KERAS3),
    KnownWrong("operator", "culprit_right", "the whole model, and the line of fit()", KERAS3),
    KnownWrong("divided_by_small", "culprit_right", "between the loss and the model's output"),
    KnownWrong("large_kernel", "culprit_right", DATA, TF_KERAS, "BatchNormalization"),
    KnownWrong("large_kernel", "cause_right", DATA, TF_KERAS, "BatchNormalization"),
    KnownWrong("broken_data", "culprit_right", CONSTANT, holds="np.inf"),
    KnownWrong("broken_data", "cause_right", CONSTANT, holds="np.inf"),
    KnownWrong("broken_labels", "culprit_right", CONSTANT, holds="np.inf"),
    KnownWrong("broken_labels", "cause_right", CONSTANT, holds="np.inf"),
    KnownWrong("loss_factor", "culprit_right", "the layer of the first variable in the list", TF_KERAS),
)


def entry_for(outcome: Outcome, claim: str) -> KnownWrong | None:
    return next((entry for entry in KNOWN_WRONG if entry.covers(outcome, claim)), None)


def right_by_now(outcomes: Iterable[Outcome]) -> Iterator[tuple[KnownWrong, int]]:
    """Entries that no script bears out any more, with the number of scripts that were right."""
    outcomes = list(outcomes)
    for entry in KNOWN_WRONG:
        judged = [getattr(o, entry.claim) for o in outcomes if entry.covers(o, entry.claim)]
        if judged and False not in judged:
            yield entry, len(judged)
