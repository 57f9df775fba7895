"""Findings under a forced policy (--policy): which of them the program has only because the policy was forced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts, MendedFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding, Severity
from mpdoctor.rules.registry import Rule, all_rules, codes_and_names, findings_from_facts, rule_with_code
from mpdoctor.settings.options import FORCED_POLICY, Settings


def findings_of_run(run: ExaminationFacts, keras: Keras, settings: Settings) -> Iterator[Finding | Crashed]:
    """The findings of all chosen rules in what one run showed. Findings under a policy that mpdoctor forced are
    what-if."""
    chosen = chosen_rules(settings)
    forced = run.forced_policy == FORCED_POLICY and settings.policy == "auto"
    for hook, facts in _facts_by_hook(run):
        for item in findings_from_facts(hook, facts, run.keras or keras, chosen):  # `--keras` is about sources
            yield dataclasses.replace(item, what_if=forced) if isinstance(item, Finding) else item
    for mended in run.mended:
        failure = dataclasses.replace(as_run(mended.failure, run), mended=True)
        for item in findings_from_facts("in_failure", failure, run.keras or keras, chosen):
            yield _finding_of_mended(item, mended, forced) if isinstance(item, Finding) else item


def _facts_by_hook(run: ExaminationFacts) -> Iterator[tuple[str, Any]]:
    """The facts of a run, each with the name of the rules' function that takes them."""
    yield from (("in_model", model) for model in run.models)
    yield from (("in_saved_graph", graph) for graph in run.graphs)
    yield from (("in_training", training) for training in run.trainings)
    for failure in (run.failure, *(training.failure for training in run.trainings)):
        if failure:
            yield "in_failure", as_run(failure, run)


def trained_by_hand(run: ExaminationFacts) -> bool:
    """Whether a custom loop trained in a float16 that was forced on it, and with a bare optimizer: alive it may scale
    the loss by hand, and only its text shows whether it does."""
    return run.forced_policy == FORCED_POLICY and any(
        training.model.call.kind == "loop" and training.model.wrapper is None for training in run.trainings
    )


def as_run(failure: FailureFacts, run: ExaminationFacts) -> FailureFacts:
    """The failure, with what the examination had changed of the program: the forced policy and the stand-ins."""
    stand_ins = run.stand_ins or (("its data",) if failure.in_training and _brings_no_data(run) else ())
    return dataclasses.replace(failure, forced_policy=run.forced_policy, stand_ins=stand_ins)


def _brings_no_data(run: ExaminationFacts) -> bool:
    """Whether it is a factory or a saved model: what is trained came from no training call."""
    return bool(run.models) and run.models[-1].call.kind == "none"


def _finding_of_mended(finding: Finding, mended: MendedFacts, forced: bool) -> Finding:
    """The finding of an error that was mended in memory. Its help says that the examination went on."""
    from mpdoctor.semantics.live.mended_parts import went_on_with

    return dataclasses.replace(finding, what_if=forced, help=f"{finding.help} {went_on_with((mended,))}")


def with_what_if_marked(findings: list[Finding]) -> list[Finding]:
    """A finding of the forced run is what-if only if the program does not have the defect as it stands."""
    real = {(f.code, f.location, f.layer) for f in findings if not f.what_if}
    kept = []
    for finding in findings:
        if not finding.what_if:
            kept.append(finding)
        elif (finding.code, finding.location, finding.layer) not in real:
            kept.append(dataclasses.replace(finding, what_if=not rule_with_code(finding.code).is_never_what_if))
    return kept


def without_needless(findings: list[Finding], runs: list[ExaminationFacts]) -> list[Finding]:
    """A program that ended by itself, and whose defect its source shows, was no failure: there was no more to see."""
    failure = runs[-1].failure if runs else None
    if failure is None or not failure.is_plain_end:
        return findings
    others = [finding for finding in findings if finding.code != "MP002"]
    return others if any(finding.fails_a_run(Severity.WARNING) for finding in others) else findings


def chosen_rules(settings: Settings) -> Callable[[Rule], bool]:
    return lambda rule: rule.says_that_no_model_came or settings.chooses(rule.code, rule.name)


def chosen_codes(settings: Settings) -> frozenset[str]:
    """The codes of all chosen rules. Where every rule is chosen none is imported for this: in most trees no file has
    anything to judge."""
    if not settings.select and not settings.ignore:
        return frozenset(code for code, _ in codes_and_names())
    chosen = chosen_rules(settings)
    return frozenset(rule.code for rule in all_rules() if chosen(rule))
