"""What a diagnosis proposes: the edits of its findings, and the remedies that were tried and healed, as edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mpdoctor.facts.model import LayerFacts
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.fixes.choices import Sources
from mpdoctor.mending.draft import Proposal
from mpdoctor.mending.health import failing
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.semantics.source.edits.made_layers import MadeLayer, NoPlace, given_dtype

SourceAt = Callable[[str], SourceFacts | None]


@dataclass(frozen=True)
class Answer:
    """One way to answer a finding: proposals that are made together and can be left out one by one.

    `from_trial`: a remedy that was tried in place, not an edit of the rule's."""

    finding: Finding
    proposals: tuple[Proposal, ...]
    from_trial: bool = False


@dataclass(frozen=True)
class Proposed:
    """`answers`: of each finding that has some, the best first. `without`: why a remedy that healed is no edit."""

    answers: tuple[tuple[Answer, ...], ...]
    without: tuple[str, ...] = ()


def proposed(diagnosis: Diagnosis, sources: Sources) -> Proposed:
    answers: list[tuple[Answer, ...]] = []
    without: list[str] = []
    layers = {layer.path: layer for _, model in diagnosis.models for layer in model.layers}
    for finding in failing(diagnosis):
        found = [*_tried(finding, layers, sources, without), *_of_rule(finding)]
        if found:
            answers.append(tuple(found))
    return Proposed(tuple(answers), tuple(dict.fromkeys(without)))


def _of_rule(finding: Finding) -> Iterator[Answer]:
    if finding.fix is not None:
        fix = finding.fix
        yield Answer(finding, (Proposal(fix.title, fix.safe, finding.code, fix.edits),))


def _tried(finding: Finding, layers: dict[str, LayerFacts], sources: Sources, without: list[str]) -> Iterator[Answer]:
    for remedy in finding.remedies:
        if remedy.tried != "healed":
            continue
        try:
            yield Answer(finding, tuple(_proposals(finding.code, remedy, layers, sources)), from_trial=True)
        except NoPlace as reason:
            without.append(str(reason))


def _proposals(code: str, remedy: RemedyFacts, layers: dict[str, LayerFacts], sources: Sources) -> Iterator[Proposal]:
    """Raises NoPlace."""
    if not remedy.layers:
        raise NoPlace("the loss is to be computed in float32, and which line of the program's does so is not known")
    source_at = _by_any_path(sources)
    for path, place in zip(remedy.layers, remedy.locations, strict=True):
        facts = layers.get(path)
        layer = MadeLayer(
            path,
            facts.class_name if facts is not None else "",
            place,
            facts.class_location if facts is not None else None,
            path in remedy.with_parts,
        )
        yield Proposal(f"`{path}` computes in float32", False, code, given_dtype(layer, source_at))


def _by_any_path(sources: Sources) -> SourceAt:
    """A running program names files by their absolute paths, a report as it shows them."""
    return lambda path: sources.get(path) or sources.get(shown_path(path))
