"""Which rule reports the first cause of a training whose numbers are no longer finite."""

from __future__ import annotations

from mpdoctor.facts.training import CulpritFacts, GradientCulpritFacts, TrainingFacts
from mpdoctor.semantics.live.broken_operations import is_emptied_softmax, is_of_input, is_of_weights


def rule_of_cause(training: TrainingFacts) -> str:
    """The code of the rule that reports what was not finite first; "" where no rule of its own tells of it."""
    return (
        rule_of_foreign_scale(training)
        or rule_of_culprit(training)
        or _rule_of_loss(training)
        or _rule_of_kept_gradients(training.gradient_culprit)
    )


def rule_of_foreign_scale(training: TrainingFacts) -> str:
    """The code of the rule that reports gradients which keep the loss scale of another optimizer, and break weights."""
    seen = training.scale_dependence
    return "MP912" if seen is not None and seen.keeps_foreign_scale else ""


def rule_of_culprit(training: TrainingFacts) -> str:
    """The code of the rule that reports the layer whose numbers were not finite first; "" where there is none."""
    culprit = training.culprit
    if culprit is None or training.diverges or is_of_weights(culprit.operation):
        return ""
    if dtype_of_culprit(culprit) != "float16":
        return ""
    if is_of_input(culprit.operation):
        return "MP601"
    return "MP511" if is_emptied_softmax(culprit.operation) else "MP904"


def dtype_of_culprit(culprit: CulpritFacts) -> str:
    """The dtype of the operation or of the output that broke. Of layers that break in another dtype than float16 no
    rule of their own tells."""
    return (culprit.operation or culprit.overflow).dtype


def _rule_of_loss(training: TrainingFacts) -> str:
    """The code of the rule that reports a loss whose numbers were not finite first; "" where there is none."""
    first = training.culprit or training.gradient_culprit
    return "MP907" if training.loss_culprit is not None and first is None and not training.diverges else ""


def _rule_of_kept_gradients(culprit: GradientCulpritFacts | None) -> str:
    return "MP406" if culprit is not None and is_kept(culprit) else ""


def is_kept(culprit: GradientCulpritFacts) -> bool:
    """Whether the training code reads a variable with gradients of earlier steps that are not finite."""
    return culprit.where == "loop" and is_of_weights(culprit.operation)
