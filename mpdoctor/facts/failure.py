"""FailureFacts: the exception that ended an examined program, with the layer and the frames that it came from."""

from __future__ import annotations

from typing import Literal

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.layer import BatchFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.processes import StartedProgram
from mpdoctor.facts.saved.file import SavedFileFacts
from mpdoctor.facts.versions import Keras

During = Literal["start", "script", "loading", "training", "ending", "between", "behind"]
MendedPart = Literal["layer", "operations", "metric", "loss", "output"]
PartKind = Literal[
    "metric",
    "loss",
    "optimizer",
    "schedule",
    "initializer",
    "constraint",
    "regularizer",
    "data",
    "generator",
    "pipeline",
    "configuration",
    "saved-model",
]


@dataclass(frozen=True)
class Frame:
    """One line of a traceback, innermost last. `own` is True for the user's files, False for libraries."""

    path: str
    line: int
    function: str
    text: str
    own: bool


@dataclass(frozen=True)
class OperandFacts:
    """A value with a dtype that the failing line names.

    kind
        "tensor"; "weight", made by the layer's Keras, which casts it as the policy says; "variable", a tf.Variable of
        the program's own, which nobody casts; "array" of numpy, which takes the dtype of what it meets.
    """

    name: str
    kind: str
    dtype: str


@dataclass(frozen=True)
class PartFacts:
    """What raised, where it is none of the layers and not the training code itself.

    kind
        "metric", "loss", "optimizer", "schedule" (of the learning rate), "initializer", "constraint", "regularizer";
        "data", an object that gives batches (a Sequence, a PyDataset);
        "generator" and "pipeline", a function of the user's that tf.data runs; "configuration", what Keras asks for to
        save or to copy; "saved-model", a function of a SavedModel that was given 16-bit values for float32 ones.
    name
        The name of its class, or of the function.
    method
        Of the class, as "update_state"; "" of a function.
    own
        Whether the code is the user's; a library's if not.
    made_at
        The user's line that made it, where one did.
    asked_by
        Of a configuration the library's function that the user's line called: "save", "clone_model".
    result_refused
        Whether a constraint ran, and its result cannot be assigned to the weight.
    """

    kind: PartKind
    name: str
    method: str = ""
    own: bool = True
    made_at: Location | None = None
    asked_by: str = ""
    result_refused: bool = False

    @property
    def called(self) -> str:
        """The name with the method, such as "Dice.update_state", or the name alone."""
        return f"{self.name}.{self.method}" if self.method else self.name


@dataclass(frozen=True)
class CaughtFacts:
    """An exception that the program caught itself, and did not raise again.

    location
        The innermost line of the user's that raised it.
    caught_at
        The `except`.
    before_training
        Whether a training call stands in the `try`, which was left before its end.
    """

    exception: str
    message: str
    location: Location | None
    caught_at: Location
    before_training: bool


@dataclass(frozen=True)
class FailureFacts:
    """What ended the examination before it had seen everything.

    kind
        "raised" an exception; "exited" through sys.exit or the end of the script before a model was seen;
        "timed-out"; "died" by a signal or os._exit; "unusable" where the target could not even be started
        (no TensorFlow in the interpreter, a broken file, a missing factory).
    during
        "start", "script" (or factory), "loading" (a saved file), "training", "ending" (the end of fit(), after the last
        step that was looked at); of a loop of the program's own "between" (two of its steps, as where a validation
        stands behind each epoch) and "behind" (its last one).
    location
        The innermost line in a file of the user's, where there is one.
    layer
        Path and class of the Keras layer whose call was on the stack, where there was one.
    own_layer_location
        Where that layer's class stands, if it is the user's own.
    layer_dtype
        The dtype that this layer computes in and casts its input to; "" for one that casts nothing (autocast=False).
    layer_inputs
        (parameter, dtype) of every tensor that its call was given, before Keras cast any.
    layer_in_library
        Whether no line of the user's ran between the call of that layer and the error.
    layer_made_at, layer_made_by
        The user's line that made the layer, and the library's function that this line called for it; "" where the line
        itself did.
    layer_takes_dtype
        Whether its class can be made with a `dtype`; None where an `__init__` with `**kwargs` leaves that open.
    ran_in_float32
        Whether the same call of that layer did not raise when it computed in float32; None where that was not tried.
    float32_with_layers_inside
        Whether it did not raise only when the layers in it computed in float32 as well.
    layer_is_recurrent
        Whether it is a recurrent layer, or a cell of one.
    inside
        What Keras or TensorFlow was doing, the innermost that is known: "layer", "loss", "metric", "optimizer",
        "loss scaling", "total loss" (where Keras adds up the losses of a step), "step" (the rest of a train_step),
        "data" (a pipeline); "" for the program's own code and whatever else.
    under_tape
        Whether the error left a GradientTape: between the first layer and the gradients.
    raised_by_program
        Whether a `raise` or `assert` of the program's own made it: then its words are the program's.
    computes_in_half
        Whether 16-bit layers had been called, or a policy asked for them.
    operands
        What the failing line names and has a dtype.
    forced_policy
        The global policy that the examination forced, None where the program ran as it is.
    stand_ins
        What the examination made up because it could not be had: names of data sets and weights, "its data" for a
        target that brings none.
    mended
        Whether the examination went on behind it, with what raised in float32 (MendedFacts).
    saved_file
        What the file says of itself whose loading raised.
    callback
        The method of a callback that raised, "Class.on_epoch_end"; "" for whatever else.
    part
        What else beside layers and the training code raised.
    batches
        The layers that had put out another number of samples than they were given.
    command_line
        The script that was examined, as it was named, and the arguments that it was given; () of any other target.
    left_out
        Of a notebook: its magics and shell commands, which are not run, quoted in one line; "" where there are none.
    caught
        The exceptions that a script caught itself before it ended without a training.
    saw_model
        Whether a model had been seen before.
    processes
        What the program had started in other processes.
    missing_module_in
        The folder of the project that holds the module which could not be imported, and is not on sys.path; "" where
        there is none.
    last_words
        The tail of what the process printed to stderr, for a process that died or timed out; of all that it printed,
        for a script that ended itself with an exit code other than 0.
    """

    kind: Literal["raised", "exited", "timed-out", "died", "unusable"]
    during: During
    exception: str = ""
    message: str = ""
    location: Location | None = None
    frames: tuple[Frame, ...] = ()
    layer: str | None = None
    layer_class: str | None = None
    own_layer_location: Location | None = None
    layer_dtype: str = ""
    layer_inputs: tuple[tuple[str, str], ...] = ()
    layer_in_library: bool = False
    layer_made_at: Location | None = None
    layer_made_by: str = ""
    layer_takes_dtype: bool | None = None
    ran_in_float32: bool | None = None
    float32_with_layers_inside: bool = False
    layer_is_recurrent: bool = False
    inside: str = ""
    under_tape: bool = False
    raised_by_program: bool = False
    computes_in_half: bool = False
    operands: tuple[OperandFacts, ...] = ()
    signal: int | None = None
    exit_code: int | None = None
    saw_model: bool = False
    seconds: float = 0.0
    missing_module_in: str = ""
    last_words: str = ""
    keras: Keras | None = None
    saved_file: SavedFileFacts | None = None
    forced_policy: str | None = None
    stand_ins: tuple[str, ...] = ()
    mended: bool = False
    callback: str = ""
    part: PartFacts | None = None
    batches: tuple[BatchFacts, ...] = ()
    caught: tuple[CaughtFacts, ...] = ()
    command_line: tuple[str, ...] = ()
    left_out: str = ""
    processes: tuple[StartedProgram, ...] = ()

    @property
    def in_training(self) -> bool:
        """Whether a step of the training was reached before."""
        return self.during in ("training", "ending", "between", "behind")

    @property
    def is_of_notebook(self) -> bool:
        """Whether the cells of a notebook ran, in its own folder."""
        return bool(self.command_line) and self.command_line[0].lower().endswith(".ipynb")

    @property
    def is_plain_end(self) -> bool:
        """Whether the program came to its own end, as it means to, and had made no model."""
        left_training = any(caught.before_training for caught in self.caught)
        return self.kind == "exited" and not self.exit_code and not self.saw_model and not left_training

    @property
    def how_it_ran(self) -> str:
        """What the examination had changed of the program that came to a bad end, as an English clause."""
        changed = [f"with stand-ins for {', '.join(self.stand_ins)}"] if self.stand_ins else []
        if self.forced_policy:
            changed.append(f"under {self.forced_policy}, which was forced on it")
        if self.left_out:
            changed.append(f"without {self.left_out}")
        return f"the program ran {' and '.join(changed) or 'with its own policy and data'}"

    @property
    def said_by_library(self) -> str:
        """The words of Keras, TensorFlow or numpy; "" for those of the program itself, which may say anything."""
        return "" if self.raised_by_program or self.kind != "raised" else self.message

    @property
    def failing_line(self) -> str:
        """The text of the line that raised, "" where it is not known."""
        return self._failing_frame.text if self._failing_frame else ""

    @property
    def failing_function(self) -> str:
        return self._failing_frame.function if self._failing_frame else ""

    @property
    def _failing_frame(self) -> Frame | None:
        here = self.location
        return next((f for f in reversed(self.frames) if f.own and here and f.line == here.line), None)


@dataclass(frozen=True)
class MendedFacts:
    """What raised under a policy that the examination forced, and was computed in float32 from there on.

    what
        "layer": all of it. "operations": those of the layer itself, without the layers in it; its output has the dtype
        that it had. "metric", "loss": their inputs. "output": the model's, where the training code takes it.
    name, class_name
        Of the layer, metric or loss, or of the model; of a loss that is a function the function's name.
    failure
        What it raised in 16 bits.
    """

    what: MendedPart
    name: str
    class_name: str
    failure: FailureFacts
