"""TrainingFacts: what a short training showed of losses, the loss scale, skipped steps and what broke."""

from __future__ import annotations

import math

from mpdoctor.facts.causes.culprits import CulpritFacts, GradientCulpritFacts, TensorFacts, broken_operation
from mpdoctor.facts.causes.growth import GrowthFacts
from mpdoctor.facts.causes.hidden_overflow import HiddenOverflowFacts
from mpdoctor.facts.causes.operations import UNCOUNTABLE, NamedOperand, OperationFacts, excuse_of
from mpdoctor.facts.causes.scale_dependence import SOME, ScaleDependenceFacts
from mpdoctor.facts.causes.standstill import StandstillFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.fit_ending import NotMeasured
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.reference import InnerGradientFacts, ReferenceFacts
from mpdoctor.facts.remedies import RemedyFacts

LEAPT = 10.0  # times their first size: weights that one update made that large leapt
ROSE = 100.0  # times the first loss


@dataclass(frozen=True)
class StepFacts:
    """One training step.

    loss_scale
        The scale that this step's gradients were scaled with; None where there is no loss scaling.
    applied
        False for a skipped step.
    first_nonfinite
        Path of the first variable whose gradient was inf or NaN, None where all were finite.
    loss
        The loss of this step, unscaled; None where the training code does not show it. Under several replicas the sum
        of their shares.
    nonfinite_replicas
        Numbers of the replicas whose own gradients were inf or NaN, from 0 on; () with one replica. In Keras 3 the
        step is applied all the same where 0 is not among them.
    """

    loss_scale: float | None
    applied: bool
    first_nonfinite: str | None = None
    loss: float | None = None
    nonfinite_replicas: tuple[int, ...] = ()


@dataclass(frozen=True)
class SecondTrainingFacts:
    """The same steps once more, with layers in float32 that had healed the failing batches: the same batches in the
    same order, from the same weights, optimizer state, loss scale and seeds, with the learning rates of then.

    layers
        Paths of the layers that computed in float32.
    steps
        Fewer than the first training had where the time for them was spent.
    ended
        "steps" or "budget".
    weights_changed, weights_finite
        As in TrainingFacts.
    failing_batch_finite
        Whether loss and gradients of the batch that failed are finite with the weights that were reached; None where
        that could not be repeated.
    not_tried
        Why there was none, a clause; "" where there was.
    """

    layers: tuple[str, ...] = ()
    steps: tuple[StepFacts, ...] = ()
    ended: str = "steps"
    weights_changed: bool | None = None
    weights_finite: bool | None = None
    failing_batch_finite: bool | None = None
    seconds: float = 0.0
    not_tried: str = ""


@dataclass(frozen=True)
class PredictionFacts:
    """What a program computed with a model that it did not train.

    by
        "predict", "predict_on_batch", "evaluate", "test_on_batch", or "call" for `model(x)`.
    calls
        How often it did.
    numbers, nonfinite, nan
        Of one of these calls, the first with inf or NaN in its result, else the last: the floating-point numbers that
        it returned, how many of them were inf or NaN, and how many NaN.
    excuse
        Why float16 is not to blame for these: "data" (they went in already), "constant" (a constant is inf, as those of
        masks are), "range" (float32 and bfloat16 have them as well); else "".
    """

    by: str
    calls: int
    numbers: int
    nonfinite: int = 0
    nan: int = 0
    excuse: str = ""

    @property
    def called(self) -> str:
        return "model(x)" if self.by == "call" else f"{self.by}()"


@dataclass(frozen=True)
class TrainingFacts:
    """A short training of the user's own model, with the user's own loss, data and train step: the steps of one
    optimizer. A program whose step has several (a GAN) has one of these for each.

    name
        What is trained, where the program trains several things: the model that holds the optimizer's variables, by
        name; with the optimizer's name where one model has several. "" where there is one optimizer only.
    replicas
        How many replicas train in step, under a tf.distribute strategy.
    data
        "real", "synthetic" (made from the input specs), "stand-in", or "recorded" (a batch that another training kept).
    made_up_loss
        The loss that was made up because nobody compiled the model; None where it is the user's own.
    ended
        "steps" (all that were asked for), "budget" (`--budget` was spent), "failed", "script" (the user's loop ended
        first).
    script_steps
        How many steps of this optimizer the script itself would take: the epochs of its fit() times their batches, or
        what its own loop took before it ended. None where that is not known.
    weights_changed
        Whether any trainable variable moved; None where that could not be compared.
    applied_at
        The user's line from which gradients first arrived at the optimizer: apply_gradients of a custom loop or train
        step, else the training call.
    not_looked
        (what, reason) of what could not be measured.
    dynamic, initial_scale, growth_interval, floor
        Of the loss scale; `floor` is 1.0 in Keras 2 and None in Keras 3; all None without loss scaling.
    culprit, loss_culprit, gradient_culprit
        Why a step failed, from its repetition: a layer's output, an operation outside of all layers, a gradient. Never
        more than one of them.
    standstill
        Why nothing moved; None where something did.
    growth
        How the weights grew; None where the loss never rose to twice the first one.
    prediction
        What was observed in the place of steps, in a program that only predicts.
    remedies
        What was tried on the batches of failing steps; () where nothing was.
    second
        The second training, with the layers in float32 that healed those batches; None where none did, or nobody asked.
    reference
        Its steps against their float32 twins; None where nobody asked.
    hidden_overflow
        A layer in which a result overflows although no step is skipped for it; None where none was seen.
    inner_gradients
        The gradients that its last batch takes while another tape records, compared with float32; () where it takes
        none, or those in float32 are not known.
    uses_loss_scale_factor
        Keras 3's `loss_scale_factor`: a fixed scale without any check for finite gradients.
    """

    model: ModelFacts
    data: str
    device: str
    steps_wanted: int
    steps: tuple[StepFacts, ...] = ()
    ended: str = "steps"
    made_up_loss: str | None = None
    policy: str = "float32"
    dynamic: bool | None = None
    initial_scale: float | None = None
    growth_interval: int | None = None
    floor: float | None = None
    uses_loss_scale_factor: bool = False
    weights_changed: bool | None = None
    weights_finite: bool | None = None
    jit_compile: bool = False
    scale_dependence: ScaleDependenceFacts | None = None
    culprit: CulpritFacts | None = None
    loss_culprit: OperationFacts | None = None
    gradient_culprit: GradientCulpritFacts | None = None
    failure: FailureFacts | None = None
    applied_at: Location | None = None
    not_looked: tuple[tuple[NotMeasured, str], ...] = ()
    seconds: float = 0.0
    name: str = ""
    replicas: int = 1
    script_steps: int | None = None
    standstill: StandstillFacts | None = None
    growth: GrowthFacts | None = None
    prediction: PredictionFacts | None = None
    remedies: tuple[RemedyFacts, ...] = ()
    second: SecondTrainingFacts | None = None
    reference: ReferenceFacts | None = None
    hidden_overflow: HiddenOverflowFacts | None = None
    inner_gradients: tuple[InnerGradientFacts, ...] = ()

    def moment(self, step: int, preposition: str = "in") -> str:
        """When that was, in words: steps count from 0 here, and from 1 for readers."""
        return f"{preposition} step {step + 1}" if self.prediction is None else f"in `{self.prediction.called}`"

    @property
    def failed_in(self) -> str:
        """What raised, in words: a method of a callback, the end of fit(), the program's code between two steps, or a
        step; "" where nothing did."""
        if self.failure is None:
            return ""
        after = f" after step {len(self.steps)}" if self.steps else ""
        if self.failure.callback:
            return f"{self.failure.callback}(){after}"
        if self.failure.during == "between":
            return f"the program's code{after}"
        return f"the end of fit(){after}" if self.failure.during == "ending" else f"step {len(self.steps) + 1}"

    @property
    def broken_operation(self) -> OperationFacts | None:
        """The operation that made the first number that was not finite, wherever that was."""
        return broken_operation(self.culprit, self.gradient_culprit, self.loss_culprit)

    @property
    def broken_by_device(self) -> bool:
        """Whether steps failed by a kernel of the probe's own device alone, which is no defect of the user's."""
        return self.broken_operation is not None and self.broken_operation.only_on_this_device

    @property
    def weights_ran_away(self) -> bool:
        """Whether weights and loss grew without bound, before the first number that was not finite was made."""
        culprit = self.culprit or self.gradient_culprit
        before = None if culprit is None else culprit.step
        return self.growth is not None and (self.growth.runs_away(before) or self._leapt_away(self.growth, before))

    @property
    def diverges(self) -> bool:
        """Whether weights and loss diverged for another reason than gradients that were not unscaled."""
        return self.weights_ran_away and self.growth is not None and not self.growth.scaled_gradients

    def _leapt_away(self, growth: GrowthFacts, before: int | None) -> bool:
        """Whether a single update made the weights that large, at a loss like the first. The step of the first rise was
        skipped, so the weights seen after it are those that it started from: they were far from their first values
        already."""
        step, loss, weight = growth.rises[0]
        first = self.steps[0].loss
        if growth.start <= 0 or first is None or (before is not None and step > before) or self.breaking_update:
            return False
        return not self.steps[step].applied and weight >= LEAPT * growth.start and loss >= ROSE * first

    @property
    def breaking_update(self) -> int | None:
        """The number, from 1 on, of the step whose update made finite weights inf or NaN, with finite gradients: no
        learning rate does that. None without such a step, and where the loss after it was finite, since then a later
        update may have done it."""
        if self.growth is None or len(self.growth.rises) != 1:
            return None
        after, loss, weight = self.growth.rises[0]
        if math.isfinite(loss):
            return None
        before = self.steps[:after]
        were_finite = all(step.first_nonfinite is None and not step.nonfinite_replicas for step in before)
        return after if before and before[-1].applied and were_finite and not math.isfinite(weight) else None

    @property
    def escaped_steps(self) -> tuple[int, ...]:
        """Steps, from 0 on, that a dynamic loss scale applied although gradients of a replica were not finite."""
        applied = (n for n, step in enumerate(self.steps) if step.applied and step.nonfinite_replicas)
        return tuple(applied) if self.dynamic else ()


__all__ = [
    "SOME",
    "UNCOUNTABLE",
    "CulpritFacts",
    "GradientCulpritFacts",
    "GrowthFacts",
    "NamedOperand",
    "OperationFacts",
    "PredictionFacts",
    "ScaleDependenceFacts",
    "SecondTrainingFacts",
    "StandstillFacts",
    "StepFacts",
    "TensorFacts",
    "TrainingFacts",
    "excuse_of",
]
