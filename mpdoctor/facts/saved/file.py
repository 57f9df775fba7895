"""A model from a file, and its outputs for made-up inputs, by which two files can be compared."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location

SAVED = ("keras-file", "hdf5-file", "saved-model")  # kinds: a .keras archive, an HDF5 file, a SavedModel directory
SAMPLES = 32  # that are put in
MOST_VALUES = 20_000  # of an output


@dataclass(frozen=True)
class SavedFileFacts:
    """What a file says of itself before anything of it is loaded.

    name
        The file's name, without its folders.
    form
        "keras" (a .keras archive), "hdf5" or "saved-model" (a directory).
    keras_version
        Of the Keras that wrote it; "" where the file does not say.
    policy_classes
        The classes of the dtype policies in it: Keras 2 writes "Policy", Keras 3 "DTypePolicy" and others.
    policies
        The names of these policies: "mixed_float16".
    own_names
        Classes and functions in it that are none of Keras' own.
    """

    name: str
    form: str
    keras_version: str = ""
    policy_classes: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadFacts:
    """One model that a program loaded.

    part
        Path of the layer that it is in the model that was examined, "" for this model itself.
    file
        What was loaded, as it was named.
    policy
        The global dtype policy at that moment.
    location
        The user's line that loaded it.
    """

    part: str
    file: str
    policy: str
    location: Location | None = None


@dataclass(frozen=True)
class OutputFacts:
    """One output of a model, computed with `training=False`.

    name
        As the model names it, or its position.
    dtype
        What the model puts out: "float16", "float32".
    numbers
        How many numbers it put out for all samples together.
    values
        These numbers in float64, in order; of more than MOST_VALUES every n-th, the same n for the same number of them.
    """

    name: str
    dtype: str
    numbers: int
    values: tuple[float, ...]
