"""What a short training showed."""

from __future__ import annotations

import math

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.fit_ending import NotMeasured
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.reference import ReferenceFacts
from mpdoctor.facts.remedies import RemedyFacts

FLOAT16_LIMIT = 65504.0
UNCOUNTABLE = 65520  # the first whole number that is inf as a float16
FEWEST_LEAPS = 2  # a batch far beyond the others makes one
RAN_AWAY = 100.0  # times what the weights began with
LEAPT, ROSE = 10.0, 100.0  # the same of one leap, and how many times the first loss the next one is
SOME = 0.5  # an exponent nearer to 0 than this is 0, measured on a batch


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
class TensorFacts:
    """Magnitudes of one tensor: one frame that led up to an overflow, or the overflow itself.

    largest, smallest
        Largest and smallest non-zero finite absolute value; 0.0 where there is none.
    near_limit, subnormal
        Share of the finite values beyond 0.9 · 65504, and share of non-zero ones below 2^-14.
    nonfinite
        Share of values that are inf or NaN.
    call
        Which call of the layer in this step, from 1 on: a shared layer is called several times.
    """

    layer: str
    layer_class: str
    dtype: str
    shape: tuple[int, ...]
    largest: float
    smallest: float
    near_limit: float
    subnormal: float
    nonfinite: float
    location: Location | None = None
    call: int = 1


@dataclass(frozen=True)
class NamedOperand:
    """What the user's line calls a tensor that went into an operation, and its largest finite magnitude."""

    name: str
    largest: float


@dataclass(frozen=True)
class OperationFacts:
    """The one operation of TensorFlow that made inf or NaN out of finite numbers.

    name
        TensorFlow's name for it: "Square", "Sum", "Cast", "SqrtGrad".
    where
        "layer" (in a layer's call), "loss" (outside of all layers), "scaling" (the loss times the loss scale),
        "gradient" (on the way back), "loop" (what the training code does with the gradients).
    result
        What it made: "inf", "-inf" or "nan".
    largest, smallest, holds_zero
        Largest and smallest non-zero finite magnitude of its inputs, and whether a 0 was among them.
    elements
        How many numbers the largest input holds.
    averaged
        How many numbers each result of a mean is made of; 0 of any other operation.
    in_float32
        The largest magnitude of the same operation computed in float32, inf included; None where that cannot be told.
    given
        Where what went in was not finite before any operation: "data" (what the model was given, or another part of
        the batch), "labels", or "constant" (a weight that an operation read itself among them); else "".
    from_data
        True if it cast what the model was given, and nothing that depends on a weight.
    masked
        True if -inf went in, which masks are made of, and nothing else that is not finite.
    location
        The user's line that ran it; for an operation on the way back, the line whose gradient it is.
    operands
        Those inputs that this line has a name for, of an operation on the way forward.
    """

    name: str
    where: str
    dtype: str
    result: str
    largest: float = 0.0
    smallest: float = 0.0
    holds_zero: bool = False
    elements: int = 1
    in_float32: float | None = None
    given: str = ""
    from_data: bool = False
    masked: bool = False
    location: Location | None = None
    averaged: int = 0
    operands: tuple[NamedOperand, ...] = ()

    @property
    def has_no_gradient(self) -> bool:
        """Whether it is a mean whose gradient is 0, whatever the loss scale: TensorFlow divides it by the count, cast
        to float16."""
        return self.dtype == "float16" and self.averaged >= UNCOUNTABLE

    @property
    def only_on_this_device(self) -> bool:
        """Whether the true result fits into float16, so that the kernel of this device lost it on the way: CPUs sum
        and average in float16, GPUs in float32. Of a mean whose gradient is 0 that would be half of the truth."""
        fits = self.in_float32 is not None and self.in_float32 <= FLOAT16_LIMIT
        return self.dtype == "float16" and fits and not self.has_no_gradient


@dataclass(frozen=True)
class CulpritFacts:
    """The first layer whose output was not finite when a failing batch was run again, and what led up to it.

    inputs_finite
        True if everything that went into the layer was finite: then the layer itself is where it broke.
    calls
        How often this layer was called in that step.
    operation
        What broke inside the layer.
    is_function
        True of a function between the layers of a functional model, `h * 60000.0`: it has no dtype policy to set.
    """

    step: int
    overflow: TensorFacts
    frames: tuple[TensorFacts, ...] = ()
    inputs_finite: bool = True
    calls: int = 1
    operation: OperationFacts | None = None
    is_function: bool = False


@dataclass(frozen=True)
class GradientCulpritFacts:
    """The first gradient that was not finite when a failing batch was run again, though the loss was finite.

    variable
        Path of the first variable, in the order of the way back, whose gradient was not finite.
    layer, layer_class, location
        The layer in which the gradient broke, and where it was made; "" where it broke outside of all layers.
    where
        "variable" (the sum over the batch that makes a weight's gradient), "layer" (the way back through the layer),
        "loss" (before it reached the model's output), "loop" (what the training code does with the gradients).
    scale
        The loss scale of that step, None without loss scaling.
    frames
        Gradients that arrived at the outputs of layers before, the last one just before it broke.
    is_function
        True where `layer` is a function between the layers of a functional model.
    without_scale
        True if it is not finite without any loss scale either: then no loss scale can help. None where not tried.
    """

    step: int
    variable: str
    layer: str = ""
    layer_class: str = ""
    where: str = "layer"
    scale: float | None = None
    frames: tuple[TensorFacts, ...] = ()
    without_scale: bool | None = None
    operation: OperationFacts | None = None
    location: Location | None = None
    is_function: bool = False


@dataclass(frozen=True)
class ScaleDependenceFacts:
    """One batch trained twice from the same state, at two loss scales.

    exponents
        (variable path, exponent e) where |gradient at the innermost optimizer| goes with scale^e: 0 is right, -1
        means that gradients were divided by a scale that the loss never saw (or twice), +1 that they were never
        divided.
    scaled_loss_called, unscaled_called
        Whether the training code called scale_loss / get_scaled_loss and get_unscaled_gradients while it was watched;
        None in a Keras that has no such call.
    loss
        The exponent of the loss that the tape differentiates: 1 where it is scaled, 0 where it is not. None where no
        tape was seen.
    applied
        The median exponent of the gradients where they are handed to the outermost optimizer.
    unscaled_calls
        How often get_unscaled_gradients is called in a step.
    on_the_way
        What the training code itself does with the gradients between the tape and the optimizer: "divided" by just
        the loss scale, "changed" otherwise (clipped), "" nothing.
    wrappers
        How many LossScaleOptimizers stand around each other.
    loss_dtype
        Of the loss that is scaled; "" where none is.
    loss_too_large
        That loss, where it is finite and times the scale `high` it is not.
    scaled_at
        The user's line that scales it; None where Keras does.
    scaled_by_another
        Whether the loss that the tape differentiates was scaled by another optimizer than this one.
    """

    low: float
    high: float
    exponents: tuple[tuple[str, float], ...]
    scaled_loss_called: bool | None = None
    unscaled_called: bool | None = None
    loss: float | None = None
    applied: float | None = None
    unscaled_calls: int = 0
    on_the_way: str = ""
    wrappers: int = 1
    loss_dtype: str = ""
    loss_too_large: float | None = None
    scaled_at: Location | None = None
    scaled_by_another: bool = False

    @property
    def is_scaled(self) -> bool:
        """Whether the loss that the tape differentiates was scaled: measured, else by the calls that were seen."""
        return self.loss > SOME if self.loss is not None else bool(self.scaled_loss_called)

    @property
    def shrinks(self) -> bool:
        return self.median < -SOME

    @property
    def grows(self) -> bool:
        return self.median > SOME

    @property
    def median(self) -> float:
        values = sorted(exponent for _, exponent in self.exponents)
        middle = len(values) // 2
        if not values:
            return 0.0
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def excuse_of(operation: OperationFacts | None, nan: int) -> str:
    """Why float16 is not to blame for what this operation made inf or NaN (`nan`: how many NaN), as PredictionFacts say
    it; "" where it is, or where nobody knows."""
    if operation is None:
        return ""
    if operation.given == "data":
        return "data"
    if operation.given == "constant" and not nan:
        return "constant"
    if operation.dtype != "float16":
        return "range"
    in_float32 = operation.in_float32
    return "" if nan or (in_float32 is not None and math.isfinite(in_float32)) else "range"


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
class StandstillFacts:
    """Why applied steps moved no weight, measured on the last step; a default stands for what was not measured.

    learning_rate, schedule
        The innermost optimizer's, for the step to come, and the class of the schedule that gives it, "" for a number.
    gradient
        The largest finite magnitude of a gradient as the tape gives it, the loss scaled as in the training.
    factor, most
        The first of the factors by which the loss was multiplied at which a gradient was not 0; None where all were 0
        at every factor to `most`.
    reaches_output
        Whether a gradient comes to the output of the last layer, where all weights' gradients are 0.
    layer, layer_class, puts_out_zeros
        The last layer on the way back whose output gets a gradient, and whether all that it puts out is 0.
    update, half_digit, variable, dtype
        The largest update that the same optimizer makes in float64, the variable and its dtype, and half of the last
        digit of the weight that it is made to: all updates are gone when they are rounded.
    """

    learning_rate: float | None = None
    schedule: str = ""
    gradient: float | None = None
    factor: float | None = None
    most: float | None = None
    reaches_output: bool | None = None
    layer: str = ""
    layer_class: str = ""
    puts_out_zeros: bool = False
    update: float | None = None
    half_digit: float | None = None
    variable: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class GrowthFacts:
    """How the weights grew while the loss rose.

    start
        The largest magnitude of a weight before the first step.
    rises
        (step, its loss, the largest weight that it met), where the loss was at least twice that of the rise before, or
        of the first step.
    learning_rate
        The innermost optimizer's at the end; None where it has none that is a number.
    scaled_gradients
        Whether the loss was scaled and nothing was seen to unscale the gradients: they may be why.
    """

    start: float
    rises: tuple[tuple[int, float, float], ...]
    learning_rate: float | None = None
    scaled_gradients: bool = False

    def runs_away(self, before: int | None = None) -> bool:
        """Whether weights and loss ran away together, in more than one leap, before this step (from 0 on)."""
        rises = [rise for rise in self.rises if before is None or rise[0] <= before]
        if not rises or self.start <= 0:
            return False
        weights = [self.start, *(weight for _, _, weight in rises)]
        leaps = sum(later >= 2 * earlier for earlier, later in zip(weights, weights[1:]))
        return leaps >= FEWEST_LEAPS and weights[-1] >= RAN_AWAY * self.start


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
        What was looked at instead of steps, in a program that only predicts.
    remedies
        What was tried on the batches of failing steps; () where nothing was.
    second
        What came of training once more with what had healed them; None where nothing had, or nobody asked.
    reference
        Its steps against their float32 twins; None where nobody asked.
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

    def moment(self, step: int, preposition: str = "in") -> str:
        """When that was, in words: steps count from 0 here, and from 1 for readers."""
        return f"{preposition} step {step + 1}" if self.prediction is None else f"in `{self.prediction.called}`"

    @property
    def failed_in(self) -> str:
        """What raised, in words: a method of a callback, the end of fit(), or a step; "" where nothing did."""
        if self.failure is None:
            return ""
        after = f" after step {len(self.steps)}" if self.steps else ""
        if self.failure.callback:
            return f"{self.failure.callback}(){after}"
        return f"the end of fit(){after}" if self.failure.during == "ending" else f"step {len(self.steps) + 1}"

    @property
    def broken_operation(self) -> OperationFacts | None:
        """The operation that made the first number that was not finite, wherever that was."""
        found = self.culprit or self.gradient_culprit
        return self.loss_culprit if found is None else found.operation

    @property
    def broken_by_device(self) -> bool:
        """Whether steps failed by a kernel of the probe's own device alone, which is no defect of the user's."""
        return self.broken_operation is not None and self.broken_operation.only_on_this_device

    @property
    def weights_ran_away(self) -> bool:
        """Whether weights and loss did, before the first number that was not finite was made."""
        found = self.culprit or self.gradient_culprit
        before = None if found is None else found.step
        return self.growth is not None and (self.growth.runs_away(before) or self._leapt_away(self.growth, before))

    @property
    def diverges(self) -> bool:
        """Whether weights and loss ran away, and not by gradients that nobody unscaled."""
        return self.weights_ran_away and self.growth is not None and not self.growth.scaled_gradients

    def _leapt_away(self, growth: GrowthFacts, before: int | None) -> bool:
        """Whether a single update did it, at a loss like the first: that the step of the first rise was skipped shows
        that its weights, which nothing has moved since, were far from where they began before it."""
        step, loss, weight = growth.rises[0]
        first = self.steps[0].loss
        if growth.start <= 0 or first is None or (before is not None and step > before):
            return False
        return not self.steps[step].applied and weight >= LEAPT * growth.start and loss >= ROSE * first

    @property
    def escaped_steps(self) -> tuple[int, ...]:
        """Steps, from 0 on, that a dynamic loss scale applied although gradients of a replica were not finite."""
        applied = (n for n, step in enumerate(self.steps) if step.applied and step.nonfinite_replicas)
        return tuple(applied) if self.dynamic else ()
