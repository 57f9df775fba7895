"""What the source stage understood of one program, without running it.

`SourceFacts` holds **events** in program order: what is called, read, written, computed (`events.py`). The values that
they speak of are in `values.py`. A rule goes over one kind of event and asks about the values:

    for read in facts.reads:
        if is_instance_of(read.of, "keras.mixed_precision.LossScaleOptimizer") and not read.context.guarded:
            yield Finding(…, location=read.location)

The program starts in one file. Functions of the user's own are followed into the first-party files that it
imports, so the location of an event may lie in another file. Of the top level of those files only the calls
that set a policy are among the events: the rest are in their own facts. To be judged, a script and all that it
imports are one program, whose facts hold the events of all (`for_file`). A function that is called from
several places is followed for each, so one line may appear in several events with different values: that is
no reason to report it twice (findings at one location are merged).
"""

from __future__ import annotations

import dataclasses
from dataclasses import field
from functools import cached_property
from typing import Any, Iterator, Mapping

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Cells, Location, lines_of
from mpdoctor.facts.versions import Keras, KerasPackage
from mpdoctor.program.breakdown import Breakdown
from mpdoctor.program.call_index import CallIndex
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.program_dtypes import ProgramDtypes
from mpdoctor.program.events import Call, Event, Operation, Read, Return, Use, With, Write
from mpdoctor.program.mixed_precision_signs import (
    REWRITING_GRAPHS,
    shows_16_bits,
    signs_for_imports,
    signs_of_mixed_precision,
)
from mpdoctor.program.policies_in_force import PoliciesInForce
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.program.values import Value

# Answers of `SourceFacts` that hang on its events alone, whichever of its files is judged, and by which Keras.
_OF_EVENTS = ("_call_index", "_returns_by_function", "_dtypes_by_keras")
_OF_EVENTS_AND_TEXT = frozenset(("lines", "mixed_precision_signs", *_OF_EVENTS))


@dataclass(frozen=True)
class Problem:
    """Why a file could not be read or understood, in one plain sentence.

    remedy
        What to do, a clause that goes on with "then check again"; "" where the line itself is to be mended.
    """

    message: str
    location: Location
    remedy: str = ""


@dataclass(frozen=True, eq=False, slots=False)  # for what is worked out when it is asked for
class SourceFacts:
    """One program (or module) as its text tells it. Everything is in program order.

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
        The Keras to judge by; the pipeline sets it.
    declared_keras
        What the text itself says: "tf_keras" (it sets TF_USE_LEGACY_KERAS before importing TensorFlow, or
        imports only tf_keras), "keras" (it imports what only Keras 3 has), or None.
    sign_of_keras2
        What it imports or calls for certain that Keras 2 has or takes, and that fails in Keras 3, as a clause: "calls
        `Adam(lr=…)`"; else "".
    assume_mixed
        `--assume-mixed`. The pipeline sets it.
    mixed_elsewhere
        True if a first-party file that imports this one, also through others, shows mixed precision.
    is_imported
        True if this is a file that another target imports, so that its callers and the policy are decided
        elsewhere.
    is_guarded
        True if whatever imports this file asks first whether that works: it is written for one library version of
        several, and all of its events are guarded.
    makings
        Set where the events are left out: of the user's layers and models that are made, where the class is defined,
        and whether each is given float32.
    policies_set
        Set where the events are left out: the names of the global policies that they set for certain, and None for one
        that is not known, or is set on some path only.
    policies_unknown
        Set where the events are left out: where the program sets a global policy whose name it gets from outside, from
        a file that it reads, say.
    policies_elsewhere
        `policies_set` of the first-party files that import this one, also through others. The pipeline sets it.
    shows_16_bits, rewrites_graphs
        Set where the events are left out; see `mixed_precision_signs`.
    files_saved
        Set where the events are left out: the model files that they write.
    files_saved_elsewhere
        `files_saved` of the project's other programs, as far as this one may mean the same files. The pipeline sets it.
    float32_classes
        Where those classes of this file and its imports are defined that the whole project makes in float32 only. The
        pipeline sets it.
    settings_read
        The files of settings that this file or one that it imports may read, by absolute path, with the digests of
        their bytes, "" where there is none.
    texts_beside
        Of a whole program: the texts of its files, by path. `for_file` sets it.
    package
        The dotted package that the file belongs to, "" for a file of its own: "keras.src.layers" for a file of Keras.
    incomplete
        True if the program is so large that the source stage stopped half-way.
    unreadable
        Set, and everything else empty, if the text is no Python that can be read.
    cells
        Of a notebook: where its cells begin in `text`, which holds the code of all of them, in order.
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
    declared_keras: KerasPackage | None = None
    sign_of_keras2: str = ""
    assume_mixed: bool = False
    mixed_elsewhere: bool = False
    is_imported: bool = False
    is_guarded: bool = False
    makings: tuple[tuple[Location, bool], ...] = ()
    policies_set: tuple[str | None, ...] = ()
    policies_unknown: tuple[Location, ...] = ()
    policies_elsewhere: tuple[str | None, ...] = ()
    shows_16_bits: bool = False
    rewrites_graphs: bool = False
    files_saved: tuple[SavedFile, ...] = ()
    files_saved_elsewhere: tuple[SavedFile, ...] = ()
    float32_classes: tuple[Location, ...] = ()
    settings_read: tuple[tuple[str, str], ...] = ()
    texts_beside: Mapping[str, str] = field(default_factory=dict, repr=False)
    package: str = ""
    incomplete: bool = False
    unreadable: Problem | None = None
    cells: Cells = ()
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

    def to_judge(self, changes: Mapping[str, Any]) -> SourceFacts:
        """A copy with these fields changed to what is known once the other files were read. Cached results that depend
        on events and text alone are kept."""
        changed = dataclasses.replace(self, **changes)
        vars(changed).update((name, vars(self)[name]) for name in _OF_EVENTS_AND_TEXT & vars(self).keys())
        return changed

    def for_file(self, file: SourceFacts, signs: tuple[Location, ...], changes: Mapping[str, Any]) -> SourceFacts:
        """The facts of a whole program, to judge one of its files: with the text of that file, and its own signs of
        mixed precision, since the others of the program may be in code that has nothing to do with it. What is worked
        out from the events is so once for all files."""
        for name in _OF_EVENTS:
            getattr(self, name)
        names = ("path", "text", "package", "cells", "broken_cells", "passed_over")
        seen = self.to_judge({**{name: getattr(file, name) for name in names}, **changes})
        vars(seen).pop("lines", None)
        vars(seen)["mixed_precision_signs"] = signs
        return seen

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, split as Python counts them."""
        return lines_of(self.text)

    def lines_of(self, path: str) -> list[str]:
        """The lines of this file or of another file of the program; [] where its text is not at hand."""
        if path == self.path:
            return self.lines
        if path not in self._lines_beside:
            self._lines_beside[path] = lines_of(self.texts_beside.get(path, ""))
        return self._lines_beside[path]

    @cached_property
    def _lines_beside(self) -> dict[str, list[str]]:
        return {}

    @cached_property
    def mixed_precision_signs(self) -> tuple[Location, ...]:
        """The places where the program shows that it means to compute in 16 bits: a policy that is set and may be other
        than float32, a LossScaleOptimizer, a 16-bit dtype or policy given to a layer. TensorFlow's graph rewrite is not
        among them: under it layers compute in float32, and casts are inserted into the graph later."""
        return tuple(signs_of_mixed_precision(self.calls, self.uses))

    @cached_property
    def signs_for_imports(self) -> tuple[Location, ...]:
        """The signs of mixed precision that also hold for the files that the program imports."""
        return tuple(signs_for_imports(self.calls, self.uses)) if self.mixed_precision_signs else ()

    @property
    def shows_mixed_precision(self) -> bool:
        """Whether rules apply for which code is only wrong if it computes in 16 bits."""
        return (
            self.assume_mixed
            or self.mixed_elsewhere
            or (bool(self.mixed_precision_signs) and not self._only_rewrites_graphs)
        )

    @cached_property
    def _only_rewrites_graphs(self) -> bool:
        """Whether its loss is scaled for TensorFlow's rewriting of graphs, and nothing else shows 16 bits."""
        rewrites = any(True for _ in self.calls_named(*REWRITING_GRAPHS))
        return rewrites and not shows_16_bits(self.calls, self.uses)

    @cached_property
    def _policies(self) -> PoliciesInForce:
        return PoliciesInForce(
            self._call_index, self.keras, is_notebook=bool(self.cells), callers_decide=self.is_imported
        )

    @property
    def policy_calls(self) -> tuple[Call, ...]:
        """The calls that set the global policy (or floatx), in order."""
        return self._policies.calls_that_set

    @property
    def clearing_calls(self) -> tuple[Call, ...]:
        """The calls that make Keras 3 forget the global policy, in order."""
        return self._policies.calls_that_clear

    def policies_at(self, event: Event) -> tuple[PolicyName, ...]:
        """Every global policy that may be in force at this event: names such as "mixed_float16", None for
        "never set", and UNSURE where it is set to something unknown or was for the callers to set."""
        return self._policies.at(event)

    def policies_of_program_at(self, event: Event) -> tuple[PolicyName, ...]:
        """Like `policies_at`, but where this file does not tell, the policies that the importing files set."""
        found = self.policies_at(event)
        return found if found != (UNSURE,) else tuple(name or UNSURE for name in self.policies_elsewhere) or found

    def policies_told(self) -> tuple[str | None, ...]:
        """What the events say for `policies_set`."""
        return self._policies.policies_set()

    def unknown_policies_told(self) -> tuple[Location, ...]:
        """What the events say for `policies_unknown`."""
        return self._policies.unknown()

    @cached_property
    def _dtypes(self) -> ProgramDtypes:
        if self.keras not in self._dtypes_by_keras:
            returned = self._returns_by_function
            self._dtypes_by_keras[self.keras] = ProgramDtypes(
                self.keras, lambda function: [event.value for event in returned.get(id(function), ())]
            )
        return self._dtypes_by_keras[self.keras]

    @cached_property
    def _dtypes_by_keras(self) -> dict[Keras, ProgramDtypes]:
        return {}

    @cached_property
    def _returns_by_function(self) -> dict[int, list[Return]]:
        """The `return`s of each function, by the id of the function."""
        found: dict[int, list[Return]] = {}
        for event in self.returns:
            if event.context.function is not None:
                found.setdefault(id(event.context.function), []).append(event)
        return found

    def dtype_of(self, value: Value | None) -> str | None:
        """The dtype of a tensor, as this program's Keras has it; None where it is not certain."""
        return self._dtypes.of(value)

    def dtype_at(self, value: Value | None, context: Context) -> str | None:
        """The dtype that a tensor has where it is used: in a loop that is what it has the first time round."""
        return self._dtypes.at(value, context)

    def returns_of(self, function: FunctionFacts) -> Iterator[Return]:
        """The `return`s of a function, each once for every time that the function was followed."""
        return iter(self._returns_by_function.get(id(function), ()))

    def calls_of(self, *names: str) -> Iterator[Call]:
        """Calls of a library's functions or classes, synonyms included: `calls_of("keras.layers.Dense")`."""
        return self._call_index.by_names(names)

    @property
    def library_calls(self) -> tuple[Call, ...]:
        """The calls of a library's functions and classes, in order."""
        return self._call_index.of_libraries

    @property
    def object_calls(self) -> tuple[Call, ...]:
        """The calls of what a call has made, in order: `layer(x)`, `loss(labels, logits)`."""
        return self._call_index.of_objects

    @cached_property
    def _call_index(self) -> CallIndex:
        return CallIndex(self.calls)

    def calls_named(self, *names: str) -> Iterator[Call]:
        """Calls of whatever has one of these names: a method, a library's function, one of the user's."""
        return self._call_index.by_last_names(names)

    def method_calls(self, *names: str) -> Iterator[Call]:
        """Calls of `something.name(…)` for these method names, where `something` is no library module."""
        return self._call_index.by_methods(names)

    def makings_of(self, own: ClassFacts) -> list[Call]:
        """The calls that make an instance of one of the user's own classes, or of a class below it."""
        return self._call_index.makings_of(own)
