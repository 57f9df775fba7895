"""The loss scale to start from, where a mended training still loses its first steps on the way down to it."""

from __future__ import annotations

from itertools import pairwise

from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.fixes.choices import Sources
from mpdoctor.mending.draft import Proposal
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.semantics.source.edits.made.optimizers import in_wrapper_from, with_scale

FAR_OFF = "MP910"


def lower_starts(seen: tuple[Diagnosis, Sources]) -> list[Proposal]:
    """The edits that start each training which loses its first steps at the scale on which it settled."""
    diagnosis, sources = seen
    by_model = {finding.model: finding for finding in diagnosis.findings if _settled_at(finding) is not None}
    proposals: dict[str, Proposal] = {}
    for _, model in diagnosis.models if by_model else ():
        settled = _settled_at(by_model[model.id]) if model.id in by_model else None
        for link, inside in pairwise(model.optimizer) if settled is not None else ():
            made = inside if link.wrapped_by_compile else link
            place = made.made_at
            facts = (sources.get(place.path) or sources.get(shown_path(place.path))) if place is not None else None
            if facts is None or place is None or not link.is_wrapper:
                continue
            edit = in_wrapper_from if link.wrapped_by_compile else with_scale
            titled_edits = edit(facts, place, made.class_name, "initial_scale", f"{settled!r}")
            if titled_edits is not None:
                title, edits = titled_edits
                proposals.setdefault(model.id, Proposal(title, safe=False, code=FAR_OFF, edits=edits))
    return list(proposals.values())


def _settled_at(finding: Finding) -> float | None:
    """The scale of the first step that was applied."""
    settled = finding.evidence.get("settled_at") if finding.code == FAR_OFF else None
    return float(settled) if isinstance(settled, int | float) else None


def steps_skipped(diagnosis: Diagnosis) -> int:
    return sum(not step.applied for probe in diagnosis.probes for step in probe.training.steps)
