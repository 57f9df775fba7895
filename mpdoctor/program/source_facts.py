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
import re
from functools import cached_property
from typing import Iterator

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location, lines_of
from mpdoctor.facts.versions import Keras
from mpdoctor.program.call_index import CallIndex
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.program_dtypes import ProgramDtypes
from mpdoctor.program.events import Call, Event, Return
from mpdoctor.program.mixed_precision_signs import (
    REWRITING_GRAPHS,
    shows_16_bits,
    signs_for_imports,
    signs_of_mixed_precision,
)
from mpdoctor.program.policies_in_force import PoliciesInForce
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.source_record import FromOutside, SourceRecord
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Value, known

# Answers of `SourceFacts` that hang on its events alone, whichever of its files is judged, and by which Keras.
_OF_EVENTS = ("_call_index", "_returns_by_function", "_hands_on_dtypes", "_dtypes_by_keras")
_SETS_DTYPE_KEY = re.compile(r"""\[["']dtype["']\]\s*=[^=]""")
_OF_EVENTS_AND_TEXT = frozenset(("lines", "mixed_precision_signs", *_OF_EVENTS))


@dataclass(frozen=True, eq=False, slots=False)  # for what is worked out when it is asked for
class SourceFacts(SourceRecord):
    """One program (or module): what its text and its events say, in program order."""

    def to_judge(self, outside: FromOutside) -> SourceFacts:
        """A copy with what is known once the other files were read. Cached results that depend on events and text alone
        are kept."""
        return self._with_kept_answers(dataclasses.replace(self, **outside))

    def _with_kept_answers(self, changed: SourceFacts) -> SourceFacts:
        vars(changed).update((name, vars(self)[name]) for name in _OF_EVENTS_AND_TEXT & vars(self).keys())
        return changed

    def for_file(self, file: SourceFacts, signs: tuple[Location, ...], outside: FromOutside) -> SourceFacts:
        """The facts of a whole program, to judge one of its files: with the text of that file and its own signs of
        mixed precision, since the signs of other files may be in code that has nothing to do with it. What follows from
        the events alone is worked out once for all files."""
        for name in _OF_EVENTS:
            getattr(self, name)
        as_file = dataclasses.replace(
            self,
            path=file.path,
            text=file.text,
            package=file.package,
            libraries_held=file.libraries_held,
            cells=file.cells,
            program_text=file.program_text,
            broken_cells=file.broken_cells,
            passed_over=file.passed_over,
        )
        seen = self._with_kept_answers(dataclasses.replace(as_file, **outside))
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

    def policies_set_by(self, call: Call) -> tuple[str, ...]:
        """Every global policy that a call may set, as far as the program shows; () if that is not known."""
        return self._policies.set_by(call)

    def policies_of_program_at(self, event: Event) -> tuple[PolicyName, ...]:
        """Like `policies_at`, but where this file does not tell, the policies that the importing files set."""
        policies = self.policies_at(event)
        return (
            policies if policies != (UNSURE,) else tuple(name or UNSURE for name in self.policies_elsewhere) or policies
        )

    def policies_from_events(self) -> tuple[str | None, ...]:
        """What the events say for `policies_set`."""
        return self._policies.policies_set()

    def unknown_policies_from_events(self) -> tuple[Location, ...]:
        """What the events say for `policies_unknown`."""
        return self._policies.unknown()

    @cached_property
    def _dtypes(self) -> ProgramDtypes:
        if self.keras not in self._dtypes_by_keras:
            returned = self._returns_by_function
            self._dtypes_by_keras[self.keras] = ProgramDtypes(
                self.keras,
                lambda function: [event.value for event in returned.get(id(function), ())],
                self._hands_on_dtypes,
            )
        return self._dtypes_by_keras[self.keras]

    @cached_property
    def _hands_on_dtypes(self) -> bool:
        """Whether the `**options` of a call may hold a `dtype`: where a class or function of the user's own is given
        one, or a dict (`options.setdefault("dtype", …)`, `options["dtype"] = …`)."""
        texts = (self.text, *self.texts_beside.values())
        gives = (_gives_dtype(call) for call in self.calls if call.keywords or isinstance(call.callee, Attribute))
        return any(map(_SETS_DTYPE_KEY.search, texts)) or any(gives)

    @cached_property
    def _dtypes_by_keras(self) -> dict[Keras, ProgramDtypes]:
        return {}

    @cached_property
    def _returns_by_function(self) -> dict[int, list[Return]]:
        """The `return`s of each function, by the id of the function."""
        returns: dict[int, list[Return]] = {}
        for event in self.returns:
            if event.context.function is not None:
                returns.setdefault(id(event.context.function), []).append(event)
        return returns

    def dtype_of(self, value: Value | None) -> str | None:
        """The dtype of a tensor, as this program's Keras has it; None where it is not certain."""
        return self._dtypes.of(value)

    def dtype_at(self, value: Value | None, context: Context) -> str | None:
        """The dtype that a tensor has where it is used: in a loop that is what it has the first time round."""
        return self._dtypes.at(value, context)

    def returns_of(self, function: FunctionFacts) -> Iterator[Return]:
        """The `return`s of a function, each once for every time that the function was followed."""
        return iter(self._returns_by_function.get(id(function), ()))

    def values_returned(self, function: FunctionFacts) -> list[Value]:
        """What the `return`s of a function give, each once for every time that the function was followed."""
        return [event.value for event in self.returns_of(function)]

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
        """Calls of everything that has one of these names: methods, functions of libraries, functions of the user's."""
        return self._call_index.by_last_names(names)

    def method_calls(self, *names: str) -> Iterator[Call]:
        """Calls of `something.name(…)` for these method names, where `something` is no library module."""
        return self._call_index.by_methods(names)

    def makings_of(self, own: ClassFacts) -> list[Call]:
        """The calls that make an instance of one of the user's own classes, or of a class below it."""
        return self._call_index.makings_of(own)


def _gives_dtype(call: Call) -> bool:
    """Whether a call of something else than a library gives a `dtype`, or one makes or changes a dict with that key."""
    if isinstance(call.callee, Attribute):
        changes_dict = call.callee.name in ("setdefault", "update", "pop", "get")
        return changes_dict and (known(call.argument(0)) == "dtype" or call.keyword("dtype") is not None)
    is_of_library = isinstance(call.callee, Api) and not call.callee.is_("builtins.dict")
    return not is_of_library and call.keyword("dtype") is not None
