"""One layer of a live model: its dtypes, settings, configuration, and state that it keeps beside its weights."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.location import Location


@dataclass(frozen=True)
class SettingsFacts:
    """What a layer was told or has learnt, as far as it matters in 16 bits; None and "" where it has no such thing.

    width
        Units, filters or numbers in a row: what the last dimension of its matrix product is.
    rows
        Of an Embedding.
    normalizes
        Whether it divides by the norm of its input (UnitNormalization, Dot(normalize=True)).
    constants
        (name, largest magnitude, smallest magnitude that is not 0): scale and offset of a Rescaling, mean and variance
        of a Normalization.
    """

    epsilon: float | None = None
    width: int | None = None
    rows: int | None = None
    groups: int | None = None
    activation: str = ""
    normalizes: bool = False
    constants: tuple[tuple[str, float, float], ...] = ()


NO_SETTINGS = SettingsFacts()


@dataclass(frozen=True)
class ConfigFacts:
    """Whether a layer of the user's own class gets its dtype back when it is made from its configuration.

    takes_dtype, takes_base
        Whether its constructor can be given a dtype, and all that Keras' own `Layer.get_config()` returns.
    holds_dtype
        Whether its `get_config()` gives one; None where that cannot be called.
    constructor_at, config_at
        Where the class's own `__init__` and `get_config` stand; None where it has none of its own.
    """

    takes_dtype: bool
    holds_dtype: bool | None
    constructor_at: Location | None = None
    config_at: Location | None = None
    takes_base: bool = True


@dataclass(frozen=True)
class RawVariableFacts:
    """A `tf.Variable` that Keras 3 does not know of.

    reaches_loss
        Whether the loss that was differentiated depends on it; None where no graph of the training was seen.
    """

    name: str
    dtype: str
    trainable: bool
    reaches_loss: bool | None = None


@dataclass(frozen=True)
class LayerFacts:
    """One layer, nested ones included.

    path
        Names from the model down, joined by "/": "encoder/dense_1".
    class_name, own_class, class_location
        The class, whether it is the user's own, and where its `class` statement stands.
    policy, compute_dtype, variable_dtype
        As that Keras names them: "mixed_float16", "float16", "float32".
    input_dtypes
        The dtypes of its inputs, before it casts any.
    output_dtypes, output_shape
        What the layer really put out, traced where it could be; empty where nobody knows.
    mask_steps
        How many steps its mask counts; None without a mask.
    variables
        (dtype, number of elements, trainable) for every variable that the layer itself holds; a frozen layer has none
        that is trainable.
    floating
        False for a layer that handles no floating-point numbers (StringLookup, IntegerLookup, InputLayer …).
    is_output
        True if one of the model's outputs comes from this layer.
    ends_submodel
        True if an output of a nested model comes from this layer.
    is_model
        True for a nested model.
    is_operation, given_by
        True for a function that was called with Keras' symbolic tensors: it has no policy and no weights. In Keras 3,
        the names of the layers and functions that its inputs come from.
    names_dtype
        Whether the code of a class or function of the user's names a dtype, or a cast.
    raw_variables
        Variables that the layer keeps and Keras 3 does not know of.
    policy_before, policy_set_at
        The policy that it had before a line of the user's assigned another one; "" where none did.
    made_at, made_by
        The user's line that made it; the library's function that this line called ("clone_model"), "" for the class.
    activation_argument
        The argument by which that function takes the activation of the model's output ("classifier_activation"); ""
        where it names none.
    given_dtype
        Whether that line, or the program's class of it, gave it a dtype, or a policy, of its own.
    before_policy
        Whether it was made before the program had set any global policy.
    """

    path: str
    class_name: str
    policy: str
    compute_dtype: str
    variable_dtype: str
    output_dtypes: tuple[str, ...] = ()
    variables: tuple[tuple[str, int, bool], ...] = ()
    own_class: bool = False
    class_location: Location | None = None
    floating: bool = True
    is_output: bool = False
    ends_submodel: bool = False
    is_model: bool = False
    autocast: bool = True
    made_at: Location | None = None
    input_dtypes: tuple[str, ...] = ()
    output_shape: tuple[int | None, ...] = ()
    mask_steps: int | None = None
    is_operation: bool = False
    given_by: tuple[str, ...] = ()
    names_dtype: bool = False
    settings: SettingsFacts = NO_SETTINGS
    config: ConfigFacts | None = None
    raw_variables: tuple[RawVariableFacts, ...] = ()
    policy_before: str = ""
    policy_set_at: Location | None = None
    made_by: str = ""
    activation_argument: str = ""
    given_dtype: bool = False
    before_policy: bool = False

    @property
    def computes_in_half(self) -> bool:
        return self.compute_dtype in HALF

    @property
    def activation(self) -> str:
        """ "softmax", "linear"; of a layer without any the name of its class, "softmax" of a Softmax among them."""
        return self.settings.activation or self.class_name.lower()

    @property
    def has_trainable_weights(self) -> bool:
        return any(trainable for *_, trainable in self.variables)

    @property
    def follows_policy(self) -> bool:
        """Whether a dtype policy applies: not to layers without floating-point numbers, nor to functions between
        layers."""
        return self.floating and not self.is_operation


@dataclass(frozen=True)
class BatchFacts:
    """A layer that put out another number of samples than it was given.

    layer, class_name
        Its path, and its class.
    location
        Where its class stands, if it is the user's own; else the user's line that made it.
    """

    layer: str
    class_name: str
    given: int
    returned: int
    location: Location | None
