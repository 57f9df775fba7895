"""The parent's request to the examiner: one frozen value, sent as JSON."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace

from mpdoctor.facts.location import Cells, Location, line_in_cells, line_in_words


@dataclass(frozen=True)
class Request:
    """One target to examine.

    kind
        "script", "notebook", "factory", or one of `mpdoctor.facts.saved.file.SAVED`.
    path, module, factory
        The absolute path of the file; for a factory named by module its dotted name; the factory's function.
    arguments
        The script's own arguments, `sys.argv[1:]`.
    policy
        "auto", or the global dtype policy to force.
    budget
        Seconds for the training, counted from its first step.
    all_fits
        Whether a script goes on after its first fit(), to its next one.
    passes_float32
        Whether it goes on after a fit() without mixed precision, until one has it.
    outputs
        Of a saved model: whether to tell what it puts out for made-up inputs, and not to train it.
    timed
        Whether to time the training step as it is, in place of the watched training.
    holds_policy
        Whether `policy` is set where the program itself sets a global policy, too.
    what_if
        Whether a program without mixed precision is run once more, so that its own training may be short.
    edited
        Absolute path of the manifest of edited texts, which stand in for files of the program
        (`process/edited_source.py`); None where there are none.
    cells
        Of a notebook, whose edited text is the code of its cells: where each of them begins.
    second_training
        Whether what healed a failing batch is trained with once more.
    reference
        Whether steps are compared with their float32 twins.
    recorded_batch
        Absolute path of the file of a batch that is trained on in place of the script's own; None where there is none.
    events
        Absolute path of the file that the examiner appends its events to, in a directory of this examination's own.
    """

    kind: str
    path: str | None
    module: str | None
    factory: str | None
    arguments: tuple[str, ...]
    events: str
    probe: bool = True
    steps: int = 50
    budget: float = 60.0
    policy: str = "auto"
    seed: int | None = None
    custom_objects: str | None = None
    allow_code_in_file: bool = False
    all_fits: bool = False
    passes_float32: bool = False
    outputs: bool = False
    timed: bool = False
    holds_policy: bool = False
    what_if: bool = True
    edited: str | None = None
    cells: Cells = ()
    second_training: bool = True
    reference: bool = False
    recorded_batch: str | None = None

    @property
    def scratch(self) -> str:
        """The directory for whatever the examiner writes beside its events; made when it is first needed."""
        return os.path.join(os.path.dirname(self.events), "scratch")

    @property
    def judged(self) -> str:
        """The folder for copies of the target that hold what was judged, under the target's own name."""
        return os.path.join(self.scratch, "judged")

    def line_in_words(self, place: Location) -> str:
        """ "line 5"; of the notebook that is run "cell 3, line 2"."""
        cells = self.cells if place.path == self.path else ()
        return line_in_words(replace(place, line=line_in_cells(place.line, cells)))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        fields = json.loads(text)
        fields["arguments"] = tuple(fields["arguments"])
        fields["cells"] = tuple((number, first) for number, first in fields.get("cells", ()))
        return cls(**fields)
