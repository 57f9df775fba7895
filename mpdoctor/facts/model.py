"""A live model: its layers, its optimizer chain and the data that it was given."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.saved.file import LoadFacts
from mpdoctor.facts.versions import Keras


@dataclass(frozen=True)
class AttributeFacts:
    """One attribute of a wrapped optimizer, as the wrapper and the innermost optimizer answer for it.

    `on_wrapper` is None where the wrapper raises AttributeError; otherwise both are repr() texts.
    """

    name: str
    on_wrapper: str | None
    on_inner: str


@dataclass(frozen=True)
class WriteFacts:
    """An assignment to an attribute of a wrapper, made by a line of the user's.

    `reached_inner` tells whether the inner optimizer has the new value afterwards.
    """

    name: str
    value: str
    inner_value: str
    reached_inner: bool
    location: Location


@dataclass(frozen=True)
class LostCallFacts:
    """A method that a line of the user's called on a wrapper, and that had no effect on the inner optimizer."""

    name: str
    location: Location


@dataclass(frozen=True)
class OptimizerFacts:
    """One link of the optimizer chain, the outermost first.

    is_wrapper
        True for this Keras' own LossScaleOptimizer (or a subclass of it).
    initial_scale, growth_interval, dynamic, loss_scale_factor
        Of a wrapper; `loss_scale_factor` of a bare Keras 3 optimizer. Texts by repr(): a user may have given a string.
    epsilon
        Of an optimizer that divides by the size of its gradients, as Adam does.
    beta_2
        Of an optimizer that averages the squares of its gradients, as Adam does.
    missing
        What this Keras needs of a custom optimizer and this class lacks ("update_step", "learning_rate", "get_config").
    overridden
        Methods of Keras' optimizer that the user's class overrides, and methods of a wrapper that it has; without those
        that only call what they override.
    dropped
        Arguments that the user's class keeps, and that its own `get_config()` leaves out.
    erased_factor, erased_at
        Of a wrapper: the `loss_scale_factor` that the inner optimizer had before, and the line that wrapped it.
    wrapped_by_compile
        Of a wrapper: whether compile() made it.
    lost_calls
        Methods of a wrapper that a line of the user's called and that do not reach the inner optimizer.
    made_at, class_location
        The user's line that made it; where its class stands, if it is the user's own.
    """

    class_name: str
    module: str
    is_wrapper: bool = False
    is_keras_optimizer: bool = True
    dynamic: bool | None = None
    initial_scale: str | None = None
    growth_interval: str | None = None
    loss_scale_factor: str | None = None
    epsilon: float | None = None
    beta_2: float | None = None
    own_class: bool = False
    missing: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()
    attributes: tuple[AttributeFacts, ...] = ()
    writes: tuple[WriteFacts, ...] = ()
    made_at: Location | None = None
    class_location: Location | None = None
    dropped: tuple[str, ...] = ()
    erased_factor: str | None = None
    erased_at: Location | None = None
    wrapped_by_compile: bool = False
    lost_calls: tuple[LostCallFacts, ...] = ()


@dataclass(frozen=True)
class ArrayFacts:
    """One array or tensor of the data that a training call was given.

    role
        "features", "labels" or "sample weights".
    name
        Its key in a dict or its position, "" for a single array.
    container
        "numpy array", "list", "tensor", "tf.data.Dataset", "generator", "pandas DataFrame" …
    largest
        The largest magnitude in an array that lies in memory, or in its beginning; None where nobody looked.
    dtype
        "float32", "object", "string" … ; `holds` names what an object array really holds ("str", "datetime").
    shape
        None stands for an unknown dimension.
    """

    role: str
    name: str
    container: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    holds: str = ""
    largest: float | None = None


@dataclass(frozen=True)
class CallFacts:
    """The user's training call. kind: "fit", "train_on_batch", "loop"; "predict" where the model only predicts, or is
    only evaluated; "none" for a factory or a file."""

    kind: str
    location: Location | None = None


@dataclass(frozen=True)
class OtherPolicyFacts:
    """The global policy of another Keras of the same process, set by a line of the user's."""

    keras: str
    policy: str
    set_at: Location
    has_models: bool


@dataclass(frozen=True)
class ModelFacts:
    """One model as it stood at its training call (or after the script, where it never trained).

    global_policy, global_policy_set_at
        The global dtype policy at that moment; `policy_set` tells whether anybody had set it. The user's line that set
        it last.
    other_policies
        Those that the program set in other Kerases than the model's own.
    policy_before, policy_set_at
        As of a layer.
    strategy, replicas
        The class of its tf.distribute strategy ("" for the default one), and in how many replicas it trains.
    devices
        What TensorFlow computes on; () where nobody has asked yet.
    wrapped_by_compile
        Of a loop: whether compile() put a LossScaleOptimizer around the very optimizer that the loop goes on with.
    loss_is_of_keras
        Whether its losses are all Keras' own, none of them Huber's, which Keras 2 computes in float32.
    loss_takes_probabilities
        Whether one of them is a cross-entropy without `from_logits=True`.
    preparing_layers
        The classes of Keras' own layers that gave 16-bit values outside of all models: in a data pipeline, or before
        the training call.
    graphs_rewritten
        Whether TensorFlow itself rewrites graphs to 16 bits (`auto_mixed_precision`), which no layer's dtype tells.
    casts_output
        Whether its losses, or its train_step, are the user's own and cast the prediction to float32 first.
    loads
        Which models in it the program loaded from files, itself first.
    """

    id: str
    name: str
    class_name: str
    policy: str
    keras: Keras
    layers: tuple[LayerFacts, ...] = ()
    optimizer: tuple[OptimizerFacts, ...] = ()
    data: tuple[ArrayFacts, ...] = ()
    call: CallFacts = CallFacts("none")
    compiled: bool = False
    loss: str = ""
    global_policy: str = "float32"
    policy_set: bool = False
    global_policy_set_at: Location | None = None
    jit_compile: bool = False
    made_at: Location | None = None
    other_policies: tuple[OtherPolicyFacts, ...] = ()
    policy_before: str = ""
    policy_set_at: Location | None = None
    strategy: str = ""
    replicas: int = 1
    devices: tuple[DeviceFacts, ...] = ()
    wrapped_by_compile: bool = False
    loss_is_of_keras: bool = False
    loss_takes_probabilities: bool = False
    preparing_layers: tuple[str, ...] = ()
    graphs_rewritten: bool = False
    casts_output: bool = False
    loads: tuple[LoadFacts, ...] = ()

    def inside(self, parent: LayerFacts) -> list[LayerFacts]:
        """The layers that a nested model or layer holds, at any depth."""
        return [layer for layer in self.layers if layer.path.startswith(parent.path + "/")]

    def loaded_by(self, load: LoadFacts) -> list[LayerFacts]:
        """The layers of the part that came from a file; all layers where the model itself was loaded."""
        return [layer for layer in self.layers if not load.part or layer.path.startswith(load.part + "/")]

    @property
    def is_trained(self) -> bool:
        """Whether this is a model that is compiled or trained, not a part of another or a mere predictor."""
        return self.compiled or self.call.kind not in ("none", "predict")

    @property
    def only_predicts(self) -> bool:
        """Whether the program predicts or evaluates with it, and ended without a training call."""
        return self.call.kind == "predict"

    @property
    def may_train(self) -> bool:
        """Whether it is compiled or trained, and the program does not end with having predicted or evaluated."""
        return self.is_trained and not self.only_predicts

    @property
    def wrapper(self) -> OptimizerFacts | None:
        """The LossScaleOptimizer of the chain, None where there is none."""
        for link in self.optimizer:
            if link.is_wrapper:
                return link
        return None

    @property
    def computes_in_half(self) -> bool:
        """Whether any layer computes in float16 or bfloat16."""
        return any(layer.compute_dtype in HALF for layer in self.layers)

    @property
    def computes_in_float16(self) -> bool:
        """Whether any layer computes in float16, where a gradient may be lost for lack of a loss scale."""
        return any(layer.compute_dtype == "float16" for layer in self.layers)

    @property
    def predicts_in_float32(self) -> bool:
        """Whether every output of the model is known to come in float32."""
        given = [layer.output_dtypes for layer in self.layers if layer.is_output and layer.floating]
        return bool(given) and all(set(dtypes) == {"float32"} for dtypes in given)

    def half_output(self, activations: tuple[str, ...] = ()) -> str | None:
        """The 16-bit dtype in which an output of the model is known to come, from a layer with one of these
        activations."""
        for layer in self.layers:
            dtype = next((output_dtype for output_dtype in layer.output_dtypes if output_dtype in HALF), None)
            if layer.is_output and layer.floating and dtype and (not activations or layer.activation in activations):
                return dtype
        return None
