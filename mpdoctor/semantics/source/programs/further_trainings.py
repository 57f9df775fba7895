"""Trainings of a program that were not examined: mpdoctor ends a script at its first fit(), or at the first with mixed
precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mpdoctor.facts.location import Cells, Location, location_in_cell
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.program.events import Call
from mpdoctor.program.mixed_precision_signs import signs_of_mixed_precision
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import options
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.programs.models import is_model

MOST = 5
Place = tuple[str, int]


def not_examined(sources: Sequence[SourceFacts], trainings: Iterable[TrainingFacts], all_fits: bool) -> str:
    """A sentence that tells the lines of the trainings that were looked at and of those that were not; "" where there
    are none of the latter that the source shows for certain."""
    done, cells = _done(trainings), {source.path: source.cells for source in sources}
    further = [place for source in sources for place in _further(source, done, all_fits)]
    others = list(dict.fromkeys(place for place in further if place not in done))
    again = [place for place in dict.fromkeys(further) if place in done]
    if not done or not further:
        return ""
    clauses = [f"the training{'s' if len(others) > 1 else ''} at {_listed(others, cells)}"] if others else []
    verb = "trains" if len(again) == 1 else "train"
    clauses += [f"what {_listed(again, cells)} {verb} when it is run again"] if again else []
    how = "" if all_fits else "; --all-fits looks at each fit()"
    was = f"that at {_listed(done, cells)} was" if len(done) == 1 else f"those at {_listed(done, cells)} were"
    return f"{' and '.join(clauses)}: only {was}{how}"


def mixed_precision_follows(sources: Iterable[SourceFacts], trainings: Iterable[TrainingFacts]) -> bool:
    """Whether the program shows mixed precision between the fit() that was looked at and a later training."""
    done = _done(training for training in trainings if training.model.call.kind == "fit")
    return any(_half_before_next_training(source, done) for source in sources)


def _half_before_next_training(source: SourceFacts, done: list[Place]) -> bool:
    trainings = _trainings(source)
    seen = [call.order for call in trainings if _place(call) in done]
    if not seen:
        return False
    first, last = min(seen), max(call.order for call in trainings)
    between = (call for call in source.calls if first < call.order < last and call.context.reached)
    return any(True for _ in signs_of_mixed_precision(between, ()))


def _done(trainings: Iterable[TrainingFacts]) -> list[Place]:
    return _distinct(
        training.model.call.location
        for training in trainings
        if training.prediction is None and training.model.call.kind != "none"
    )


def _further(source: SourceFacts, done: list[Place], all_fits: bool) -> Iterator[Place]:
    """The trainings in this file after the first one that was examined; after the last one, if those before it were
    passed over."""
    calls = _trainings(source)
    seen = [call for call in calls if _place(call) in done]
    if not all_fits:
        seen = [call for call in seen if call.method == "train_on_batch" or _place(call) == done[-1]]
    if not seen:
        return
    first = min(seen, key=lambda call: call.order)
    if first.method != "train_on_batch" and first.context.loops and not all_fits:
        yield _place(first)
    for call in calls:
        is_other = call.order > first.order and not exclude_each_other(call.context, first.context)
        is_other = is_other and (_place(call) not in done or not (all_fits or call.method == "train_on_batch"))
        if is_other and not call.context.guarded:
            yield _place(call)


def _trainings(source: SourceFacts) -> list[Call]:
    """The calls in this file that train a Keras model and that the program reaches."""
    return [call for call in source.method_calls(*FITTING) if call.context.reached and _is_of_model(source, call)]


def _is_of_model(source: SourceFacts, call: Call) -> bool:
    compiled = {id(value) for other in source.method_calls("compile") for value in options(other.receiver)}
    return any(is_model(value) or id(value) in compiled for value in options(call.receiver))


def _place(call: Call) -> Place:
    return call.location.path, call.location.line


def _distinct(places: Iterable[Location | None]) -> list[Place]:
    return list(dict.fromkeys((place.path, place.line) for place in places if place is not None))


def _listed(places: list[Place], cells: Mapping[str, Cells]) -> str:
    """train.py:12, 34 and 56; of a notebook train.ipynb:cell 3:1 and cell 5:2"""
    shown = [location_in_cell(Location(path, line), cells.get(path, ())) for path, line in places[:MOST]]
    lines = [f"cell {place.cell}:{place.line}" if place.cell else f"{place.line}" for place in shown]
    parts = [f"{shown[0].path}:{lines[0]}"]
    for place, line in zip(shown[1:], lines[1:], strict=True):
        parts.append(line if place.path == shown[0].path else f"{place.path}:{line}")
    parts += [f"{len(places) - MOST} more"] if len(places) > MOST else []
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
