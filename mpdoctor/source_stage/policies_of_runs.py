"""A program's source, read again with the global policy that only its run knew: one that a command line or an
environment variable names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings
from mpdoctor.source_stage import SILENT, SourceStage
from mpdoctor.source_stage.target_files import source_stage_of_targets

MIXED = "mixed_float16"


def stage_under_policy_of_run(
    target: Target, stage: SourceStage, paths: tuple[str, ...], runs: Iterable[ExaminationFacts], settings: Settings
) -> SourceStage:
    """The source of the target as under mixed_float16, where it sets a policy that the source does not name and its run
    trained under that one; else `stage` itself."""
    names_none = any(stage.facts[path].policies_unknown for path in paths)
    if settings.assume_mixed or not names_none or not any(map(_trained_in_mixed_float16, runs)):
        return stage
    return source_stage_of_targets(dataclasses.replace(settings, targets=(target,), assume_mixed=True), SILENT)[0]


def _trained_in_mixed_float16(run: ExaminationFacts) -> bool:
    """Whether the program set that global policy itself."""
    return run.forced_policy is None and any(training.model.global_policy == MIXED for training in run.trainings)
