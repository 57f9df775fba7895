"""The outcome of a run: which stages ran, which policies stayed unknown, whether a target was examined, exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.finding import Crashed, Finding, Skipped, Stage
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import NOWHERE
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import SOURCE_ONLY, Target
from mpdoctor.rules.registry import rule_with_code
from mpdoctor.semantics.wording import place_of
from mpdoctor.settings.options import Settings


def reason_not_run(target: Target, sources: tuple[SourceFacts, ...], settings: Settings) -> str:
    """Why no code of the target is run; "" where it is."""
    if settings.static:
        return "--static"
    if target.kind in SOURCE_ONLY:
        return f"{SOURCE_ONLY[target.kind]}: source only"
    if not settings.is_about_one:
        return "more than one target: source only"
    if _is_unreadable(target, sources):
        return "the source cannot be read"
    if target.kind == "notebook" and any(source.broken_cells for source in sources):
        return "a cell is no Python: source only"
    if target.kind == "notebook" and any(source.passed_over for source in sources):
        return "a notebook in another language: source only"
    return ""


def _is_unreadable(target: Target, sources: tuple[SourceFacts, ...]) -> bool:
    return target.kind in ("script", "factory", "notebook") and any(source.unreadable for source in sources)


def stages_of_target(
    target: Target, sources: tuple[SourceFacts, ...], run: ExaminationFacts | None, not_run: str
) -> dict[str, Stage]:
    """How far each stage came: "source", "model" and "training". `run`: the run that is shown, None without any.
    `not_run`: why there was none."""
    is_unreadable = _is_unreadable(target, sources)
    source = Stage("failed", "not readable") if is_unreadable else Stage("done" if sources else "skipped")
    if run is not None:
        return {"source": source, "model": Stage(*run.model_status), "training": Stage(*run.training_status)}
    return {"source": source, "model": Stage("skipped", not_run), "training": Stage("skipped", not_run)}


def exit_code(
    settings: Settings, brought_nothing: bool, findings: Iterable[Finding], crashed: tuple[Crashed, ...]
) -> int:
    """3 beats 2 beats 1 beats 0; --exit-zero turns 1 into 0 only. `brought_nothing`: whether any target did."""
    if crashed:
        return 3
    if settings.not_examined or brought_nothing:
        return 2
    failing = any(finding.fails_a_run(settings.fail_on) for finding in findings)
    return 0 if not failing or settings.exit_zero else 1


def brings_nothing(target: Target, sources: tuple[SourceFacts, ...], findings: list[Finding], saw_model: bool) -> bool:
    """Whether it is a named target from which no model came, and no finding but "it did not load" explains why."""
    if target.kind == "directory":
        return False
    named = shown_path(str(target.path))
    if any(source.unreadable and source.path == named for source in sources):
        return True
    ended = {f.code for f in findings if rule_with_code(f.code).says_that_no_model_came}
    return bool(ended) and "MP001" not in ended and not saw_model


def unknown_policies(sources: Iterable[SourceFacts], settings: Settings) -> Iterator[Skipped]:
    """The global policies that were taken for float32, as their names come from outside of the source."""
    places = dict.fromkeys(place_of(source, line, NOWHERE) for source in sources for line in source.policies_unknown)
    if places and not settings.assume_mixed:
        first, more = next(iter(places)), len(places) - 1
        set_there = f" and {more} other line{'s' if more > 1 else ''} set ones" if more else ", sets one"
        yield Skipped("policy", f"{first}{set_there} that only a run knows; --assume-mixed takes it for mixed_float16.")


def skipped_in_run(run: ExaminationFacts) -> Iterator[Skipped]:
    """What a run did not look at, although it was asked to."""
    if run.not_restored:
        yield Skipped("file", f"{run.not_restored}.")
    if run.passed_over:
        yield Skipped("record", f"{run.passed_over}.")
    for training in run.trainings:
        from mpdoctor.semantics.live.not_measured import not_looked_in

        yield from (Skipped(code, reason) for code, reason in not_looked_in(training))
