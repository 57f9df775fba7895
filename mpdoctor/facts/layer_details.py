"""Parts of LayerFacts: a layer's constructor settings, its configuration and state that it keeps beside its weights."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
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

    takes_dtype
        Whether its constructor can be given a dtype.
    holds_dtype
        Whether its `get_config()` gives one; None where that cannot be called.
    constructor_at, config_at
        Where the class's own `__init__` and `get_config` stand; None where it has none of its own.
    """

    takes_dtype: bool
    holds_dtype: bool | None
    constructor_at: Location | None = None
    config_at: Location | None = None


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
