"""What the source stage keeps of one program: events, the user's definitions, what other files say of it."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, TypedDict

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Cells, Location
from mpdoctor.facts.versions import Keras, KerasPackage
from mpdoctor.program.breakdown import Breakdown
from mpdoctor.program.events import Call, Operation, Read, Return, Use, With, Write
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts


@dataclass(frozen=True)
class Problem:
    """Why a file could not be read or understood, in one plain sentence.

    remedy
        What to do, a clause that goes on with "then check again"; "" where the line itself is to be mended.
    """

    message: str
    location: Location
    remedy: str = ""


class FromOutside(TypedDict, total=False):
    """Fields of a `SourceRecord` that its own text does not tell: the source stage sets them before it judges a file,
    when it has read the other files of the project and knows the Keras."""

    keras: Keras
    other_backend: str
    assume_mixed: bool
    mixed_elsewhere: bool
    is_imported: bool
    is_guarded: bool
    policies_elsewhere: tuple[str | None, ...]
    float16_elsewhere: tuple[str, ...]
    files_saved_elsewhere: tuple[SavedFile, ...]
    float32_classes: tuple[Location, ...]
    texts_beside: Mapping[str, str]


@dataclass(frozen=True, eq=False, slots=False)  # for what is worked out when it is asked for
class SourceRecord:
    """One program (or module), in program order: its events and definitions, and what is said of it from outside
    (`FromOutside`).

    path
        As shown to the user. `text` is its source.
    uses, calls, reads, writes, operations, withs, returns
        The events. `calls` holds the calls of the user's own functions as well.
    classes, functions
        Those of this file, nested ones and methods included.
    imports
        Paths, as shown, of the first-party files that it imports, also through others.
    certain_imports, guarded_imports
        Those that it imports itself: of the second it asks first whether that works (see `Context.guarded`).
    keras
        The Keras to judge by.
    other_backend
        The backend other than TensorFlow on which Keras 3 runs it, as the project or the environment says; "" where
        that may be TensorFlow.
    declared_keras
        What the text itself says: "tf_keras" (it sets TF_USE_LEGACY_KERAS before importing TensorFlow, or
        imports only tf_keras), "keras" (it imports what only Keras 3 has), or None.
    sign_of_keras2
        What it imports or calls for certain that Keras 2 has or takes, and that fails in Keras 3, as a clause: "calls
        `Adam(lr=…)`"; else "".
    assume_mixed
        `--assume-mixed`.
    mixed_elsewhere
        True if a first-party file that imports this one, also through others, shows mixed precision.
    is_imported
        True if this is a file that another target imports, so that its callers and the policy are decided
        elsewhere.
    is_guarded
        True if whatever imports this file asks first whether that works: it is written for one library version of
        several, and all of its events are guarded.
    makings
        Of a file without its events: where the class of each layer or model of the user's is defined that it makes, and
        how that gets its dtype, in the words of `source_stage.made_layers`.
    policies_set
        Of a file without its events: the names of the global policies that it sets for certain; None for one that is
        not known, or is set on some path only.
    policies_unknown
        Of a file without its events: where it sets a global policy whose name comes from outside, as from a file that
        it reads.
    policies_elsewhere
        `policies_set` of the first-party files that import this one, also through others.
    float16_elsewhere
        Of a whole program: those of its files, as shown, that other programs import and run under mixed_float16, or
        under a policy that is not known.
    shows_16_bits, rewrites_graphs
        Of a file without its events: see `mixed_precision_signs`.
    files_saved
        Of a file without its events: the model files that it writes.
    files_saved_elsewhere
        `files_saved` of the project's other programs, as far as this one may mean the same files.
    float32_classes
        Where those classes of this file and its imports are defined that the whole project makes in float32 only.
    settings_read
        The files of settings that this file or one that it imports may read, by absolute path, with the digests of
        their bytes, "" where there is none.
    texts_beside
        Of a whole program: the texts of its files, by path.
    package
        The dotted package that the file belongs to, "" for a file of its own: "keras.src.layers" for a file of Keras.
    libraries_held
        The libraries of which it imports private modules, and which the project around it holds itself: "keras" for a
        test in the repository of Keras.
    incomplete
        True if the program is so large, or calls itself so deeply, that the source stage stopped half-way.
    unreadable
        Set, and everything else empty, if the text is no Python that can be read.
    cells
        Of a notebook: where its cells begin in `text`, which holds the code of all of them, in order.
    program_text
        Of a notebook with magics or prompts in its cells: `text` as Python runs it, line by line; None where that is
        `text` itself, or a cell is no Python.
    broken_cells
        Of a notebook: the cells that are no Python; the others were read.
    passed_over
        Set, and everything else empty, if there was nothing to read: a notebook in another language, or a link that
        leads out of the project.
    breakdowns
        Where mpdoctor itself broke on this file (then everything else is empty), or on one that it imports.
    """

    path: str = ""
    text: str = field(default="", repr=False)
    uses: tuple[Use, ...] = ()
    calls: tuple[Call, ...] = ()
    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    operations: tuple[Operation, ...] = ()
    withs: tuple[With, ...] = ()
    returns: tuple[Return, ...] = ()
    classes: tuple[ClassFacts, ...] = ()
    functions: tuple[FunctionFacts, ...] = ()
    imports: tuple[str, ...] = ()
    certain_imports: tuple[str, ...] = ()
    guarded_imports: tuple[str, ...] = ()
    keras: Keras = field(default_factory=Keras)
    other_backend: str = ""
    declared_keras: KerasPackage | None = None
    sign_of_keras2: str = ""
    assume_mixed: bool = False
    mixed_elsewhere: bool = False
    is_imported: bool = False
    is_guarded: bool = False
    makings: tuple[tuple[Location, str], ...] = ()
    policies_set: tuple[str | None, ...] = ()
    policies_unknown: tuple[Location, ...] = ()
    policies_elsewhere: tuple[str | None, ...] = ()
    float16_elsewhere: tuple[str, ...] = ()
    shows_16_bits: bool = False
    rewrites_graphs: bool = False
    files_saved: tuple[SavedFile, ...] = ()
    files_saved_elsewhere: tuple[SavedFile, ...] = ()
    float32_classes: tuple[Location, ...] = ()
    settings_read: tuple[tuple[str, str], ...] = ()
    texts_beside: Mapping[str, str] = field(default_factory=dict, repr=False)
    package: str = ""
    libraries_held: tuple[str, ...] = ()
    incomplete: bool = False
    unreadable: Problem | None = None
    cells: Cells = ()
    program_text: str | None = field(default=None, repr=False)
    broken_cells: tuple[Problem, ...] = ()
    passed_over: str = ""
    breakdowns: tuple[Breakdown, ...] = ()

    @property
    def is_broken(self) -> bool:
        """Whether nothing is known of it because mpdoctor itself broke on it."""
        return any(breakdown.path == self.path for breakdown in self.breakdowns)

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing for a rule to look at: the file can be read, and was not walked, or is empty."""
        events = self.uses, self.calls, self.reads, self.writes, self.operations, self.withs, self.returns
        problems = self.unreadable or self.broken_cells or self.breakdowns
        return not (any(events) or self.classes or self.functions or problems)
