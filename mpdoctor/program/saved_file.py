"""A model file that one program of a project writes, as facts for the other programs."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location


@dataclass(frozen=True)
class SavedFile:
    """One save of a whole model.

    path
        As the program has it: "runs/model.keras".
    written_at
        Where the path stands in the text.
    saved_at
        The call that saves.
    policies
        Those of the model's layers, "float32" where none is set; () where they are not known for certain.
    is_set_by_importers
        True if the program sets no policy and saves as soon as it is imported, under whatever is in force then.
    is_bare
        Whether it is certainly compiled with an optimizer that scales nothing by itself.
    is_reached
        See `Context.reached`.
    """

    path: str
    written_at: Location
    saved_at: Location
    policies: tuple[str, ...] = ()
    is_set_by_importers: bool = False
    is_bare: bool = False
    is_reached: bool = True
