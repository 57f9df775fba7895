"""The adapter: the interface to one Keras generation, which keras2.py and keras3.py implement, and its shared types.

Types only: nothing of Keras is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Protocol

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    import tensorflow as tf

    from mpdoctor.examiner.keras.step_record import Record
    from mpdoctor.facts.versions import Keras
    from mpdoctor.loss_scale import LossScale


class KerasVariable(Protocol):
    """A tf.Variable in Keras 2, a keras.Variable in Keras 3."""

    name: str
    trainable: bool

    @property
    def dtype(self) -> tf.DType: ...  # a text in Keras 3

    @property
    def shape(self) -> tf.TensorShape: ...  # a tuple in Keras 3

    def assign(self, value: tf.Tensor) -> object: ...


class KerasLayer(Protocol):
    """A layer, a model, or in Keras 3 a function between the layers of a functional model (an Operation), which has a
    name alone."""

    name: str
    trainable: bool

    @property
    def path(self) -> str: ...  # Keras 3

    @property
    def dtype(self) -> str | None: ...

    @property
    def compute_dtype(self) -> str: ...

    @property
    def call(self) -> Callable[..., object]: ...

    def get_config(self) -> dict[str, object]: ...

    def __call__(self, *args: object, **kwargs: object) -> tf.Tensor: ...


class KerasModel(KerasLayer, Protocol):
    optimizer: KerasOptimizer
    stop_training: bool
    fit: Callable[..., object]
    train_on_batch: Callable[..., object]
    get_weights: Callable[[], list[np.ndarray]]
    set_weights: Callable[[list[np.ndarray]], object]

    @property
    def layers(self) -> list[KerasLayer]: ...

    @property
    def variables(self) -> list[KerasVariable]: ...

    @property
    def trainable_variables(self) -> list[KerasVariable]: ...

    def compile(self, *, optimizer: str, loss: str) -> None: ...

    @property
    def train_step(self) -> Callable[..., object]: ...

    @property
    def test_step(self) -> Callable[..., object]: ...

    @property
    def predict_step(self) -> Callable[..., object]: ...

    @property
    def distribute_strategy(self) -> tf.distribute.Strategy: ...


class KerasOptimizer(Protocol):
    """An optimizer, bare or a LossScaleOptimizer around another one; in an attribute's name, of the one that has it."""

    @property
    def iterations(self) -> tf.Variable: ...

    def get_config(self) -> dict[str, object]: ...

    @classmethod
    def from_config(cls, config: dict[str, object]) -> KerasOptimizer: ...


class KerasAdapter(Protocol):
    """One Keras of this process: where to hook in, how to read it, how to adopt its LossScaleOptimizer.

    module
        The public module: keras, tf_keras, tensorflow.keras.
    trainer
        The class that defines fit(), train_on_batch(), predict() …
    wrappers, optimizer_bases
        Its LossScaleOptimizer classes, and the classes that every other optimizer derives from.
    scales_by_factor
        Whether a fixed scale is the `loss_scale_factor` of a bare optimizer (Keras 3) or a wrapper's (Keras 2).
    tracks_tf_variables
        Whether a layer counts a tf.Variable among its attributes as a weight.
    loads_directories
        Whether it loads a model from a SavedModel directory.
    """

    module: ModuleType
    facts: Keras
    Layer: type[KerasLayer]
    Model: type[KerasModel]
    trainer: type[KerasModel]
    wrappers: tuple[type, ...]
    optimizer_bases: tuple[type, ...]
    scales_by_factor: bool
    tracks_tf_variables: bool
    loads_directories: bool

    # --- reading ----------------------------------------------------------------------------------------------
    def global_policy(self) -> str: ...

    def sublayers(self, layer: KerasLayer) -> list[KerasLayer]:
        """The layers directly in it."""

    def parts(self, layer: KerasLayer) -> list[KerasLayer]:
        """The layers of a layer, and in a functional model the functions between them."""

    def is_function(self, layer: KerasLayer) -> bool:
        """Whether it is a layer that Keras 2 made of a function."""

    def is_plain_function(self, operation: KerasLayer) -> bool:
        """Whether it is a function between the layers of a functional model."""

    def function_classes(self) -> list[type]:
        """Classes whose calls are those of functions between layers."""

    def tensors_of_operation(self, operation: KerasLayer) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """(inputs, outputs) of a function between layers."""

    def makers_of(self, tensors: list[tf.Tensor]) -> tuple[str, ...]:
        """The names of the layers and functions that symbolic tensors come from."""

    def own_variables(self, layer: KerasLayer) -> list[KerasVariable]:
        """The variables of the layer itself, without those of its sublayers."""

    def trainable_variables(self, model: KerasModel) -> list[KerasVariable]:
        """The model's variables that are trained; [] before it is built."""

    def variables(self, model: KerasModel) -> list[KerasVariable]:
        """All variables of the model; [] before it is built."""

    def variable_dtype(self, layer: KerasLayer) -> str: ...

    def output_operations(self, model: KerasModel) -> list[KerasLayer] | None:
        """The layers that a functional model's outputs come from; None for a subclassed model."""

    def path(self, variable: KerasVariable) -> str: ...

    def dtype_of(self, variable: KerasVariable) -> str: ...

    def inner(self, optimizer: KerasOptimizer) -> KerasOptimizer | None:
        """The optimizer in a wrapper; None of any other."""

    def wrapper_dynamics(self, wrapper: KerasOptimizer) -> tuple[bool, object, object]:
        """(dynamic, initial scale, growth interval), the latter two as they were given."""

    def missing_methods(self, optimizer: KerasOptimizer) -> tuple[str, ...]:
        """The methods that Keras needs of a custom optimizer and that this one lacks."""

    def jit_compile(self, model: KerasModel) -> bool: ...

    def given_loss(self, model: KerasModel) -> object:
        """The loss that compile() was given."""

    def is_compiled(self, model: KerasModel) -> bool: ...

    # --- hooking in -------------------------------------------------------------------------------------------
    def apply_methods(self) -> list[tuple[type, str]]:
        """The methods by which gradients arrive at a bare optimizer and at a wrapper."""

    def scaling_methods(self) -> list[tuple[type, str]]:
        """The methods that scale a loss."""

    def own_methods(self, wrapper: object) -> list[tuple[type, str]]:
        """The methods of mpdoctor.training's own wrapper that Keras' are not called from."""

    def unscaling_methods(self) -> list[tuple[type, str]]:
        """The methods that unscale gradients; [] in a Keras that has no such call."""

    def scale_properties(self) -> list[tuple[type, str]]:
        """The properties by which a program reads the loss scale."""

    def gradients_and_variables(
        self, optimizer: KerasOptimizer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[tuple[object, ...], dict[str, object]], list[tf.Tensor], list[KerasVariable]]:
        """(arguments to pass on, gradients, variables) of a call of one of `apply_methods`."""

    def fixed_scale(self, optimizer: KerasOptimizer) -> float | None:
        """The fixed loss scale; None where the scale is dynamic, or there is none."""

    def observe_train_function(
        self, model: KerasModel, step: Callable[[Callable[[object], object], object], object]
    ) -> Callable[[], object]:
        """Have `step(run, batch)` called for every batch of fit() and train_on_batch(); `run(batch)` is Keras' own.
        Returns what has Keras make its graph anew, for the next `run`, those that were handed out before among them."""

    # --- adopting ---------------------------------------------------------------------------------------------
    def is_adoptable(self, wrapper: KerasOptimizer) -> bool:
        """Whether what the user gave are numbers."""

    def adopt_wrapper(self, wrapper: KerasOptimizer, record: Record) -> LossScale | None:
        """Have the wrapper's scale moved by our state machine and its steps recorded; None for a fixed scale."""

    def set_scale(self, wrapper: KerasOptimizer, scale: float) -> None: ...

    def scale_variable(self, wrapper: KerasOptimizer) -> tf.Variable: ...

    def has_no_scale_variable(self, optimizer: KerasOptimizer) -> bool:
        """Whether it is a wrapper that nothing was applied with yet: it scales by its initial scale."""

    def scale_in_force(self, wrapper: KerasOptimizer) -> float:
        """The number in that variable, of which a strategy may hold one a replica."""

    def catch_gradients(
        self, innermost: KerasOptimizer, catch: Callable[[list[tf.Tensor], list[KerasVariable]], None]
    ) -> Callable[[], object]:
        """From now on unscaled gradients that arrive at the innermost optimizer go to `catch(gradients, variables)` and
        change nothing. Returns a function that ends it."""

    def hides_caught_steps(self, optimizer: KerasOptimizer) -> bool:
        """Whether nobody is told of the steps of this outermost optimizer while its gradients are caught."""

    def watch_gradients(
        self, optimizer: KerasOptimizer, tell: Callable[[list[tf.Tensor], list[KerasVariable]], None]
    ) -> Callable[[], object]:
        """From now on `tell(gradients, variables)` is called with the gradients of a bare optimizer of Keras 3 after it
        divided them by its `loss_scale_factor`. Returns a function that ends it."""

    def applied_in_float64(
        self,
        clone: KerasOptimizer,
        original: KerasOptimizer,
        gradients: list[tf.Tensor],
        variables: list[KerasVariable],
    ) -> list[np.ndarray]:
        """The values to which a new optimizer like the original takes copies of these variables."""

    def replace_empty_optimizer(self, model: KerasModel) -> bool:
        """Whether a loaded model's optimizer was restored for no variables, and a fresh one has taken its place."""

    def make_variables(self, model: KerasModel, batch: object) -> None:
        """Make the variables of the model and its optimizer before a graph is traced. Raises what the model's call
        raises."""

    def promise_dtype(self, tensor: tf.Tensor, dtype: str) -> None:
        """Set the dtype of a symbolic tensor to the one that its layer will put out."""

    def metrics(self, model: KerasModel) -> list[object]:
        """All metrics of the model, also those without a name."""

    def losses(self, model: KerasModel) -> list[object]:
        """The objects, with a method `call`, that compile() was given or made of functions. [] before the first
        step."""

    def compile(self, model: KerasModel, loss: str) -> None: ...

    def set_policy(self, name: str) -> None: ...

    def change_policy(self, layer: KerasLayer, name: str) -> Callable[[], object]:
        """From now on this live layer, without its sublayers, computes by the policy of this name. Returns a function
        that ends it."""

    def made_input(self, model: KerasLayer, layer: KerasLayer) -> KerasLayer | None:
        """The input layer that a Sequential has made for itself, in the dtype that its first layer had then, where that
        is this layer: it casts what the model is given."""

    def keeps_its_dtype(self, layer: KerasLayer) -> bool:
        """Whether what a layer makes takes the global policy, whatever dtype the layer is given."""

    def set_seed(self, seed: int) -> None: ...
