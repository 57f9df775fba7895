"""A model that came from a file."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location


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

    @property
    def by_keras3(self) -> bool:
        return self.keras_version.startswith("3")


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
