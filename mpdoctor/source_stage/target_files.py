"""The source stage for the user's targets: the files of each target, and those that were not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.finding import Skipped
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.progress import Progress
from mpdoctor.project.edited_files import EditedFiles
from mpdoctor.project.files import files_below
from mpdoctor.project.project_folder import LEADS_OUT
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings
from mpdoctor.source_stage import JudgeAhead, SourceOfFiles, SourceOfProgram, SourceStage

if TYPE_CHECKING:
    from mpdoctor.source_stage.cache import Cache

JudgeTarget = Callable[[Target, SourceStage, tuple[str, ...]], object]
"""Judges some files of a target: their paths as shown."""


def source_stage_of_targets(
    settings: Settings, progress: Progress, judge_ahead: JudgeTarget | None = None
) -> tuple[SourceStage, list[tuple[str, ...]]]:
    """The source of all targets, and the paths (as shown) of each. A program alone brings the files that it imports;
    several targets, and directories, are understood together, and a file that two of them hold is the first one's.
    `judge_ahead`: see `SourceOfFiles`."""
    targets = settings.targets
    named = [target for target in targets if target.path is not None and not target.is_saved]
    unsaved = {t.path.absolute(): t.content for t in named if t.path is not None and t.content is not None}
    is_program = settings.is_about_one and bool(named) and named[0].kind != "directory"
    handed_over = EditedFiles(unsaved | dict(settings.unsaved), settings.edited)
    owners = _owners(named)
    shown = {path: shown_path(str(path)) for path in owners}
    if is_program:
        program = SourceOfProgram(
            shown, handed_over, assume_mixed=settings.assume_mixed, progress=progress, kept=settings.kept
        )
        return program, [tuple(program.facts)]
    stage = SourceOfFiles(
        shown,
        handed_over,
        assume_mixed=settings.assume_mixed,
        progress=progress,
        cache=_users_cache() if settings.cache and shown else None,
        judge_ahead=_judge_of_group(judge_ahead, shown, owners) if judge_ahead is not None else None,
    )
    return stage, [tuple(shown[path] for path, owner in owners.items() if owner is target) for target in targets]


def _users_cache() -> Cache | None:
    from mpdoctor.source_stage.cache import users_cache  # with json and hmac, which nothing else here asks for

    return users_cache()


def _judge_of_group(judge: JudgeTarget, shown: Mapping[Path, str], owners: Mapping[Path, Target]) -> JudgeAhead:
    """Judges what each target has of a group of files."""

    def judge_group(stage: SourceStage, group: list[Path]) -> None:
        for target in {id(owners[path]): owners[path] for path in group}.values():
            judge(target, stage, tuple(shown[path] for path in group if owners[path] is target))

    return judge_group


def _owners(named: Iterable[Target]) -> dict[Path, Target]:
    """The files of targets, each with the first target that holds it."""
    owners: dict[Path, Target] = {}
    here = Path.cwd()  # as `Path.absolute` has it, which asks for it each time
    for target in named:
        named_path = Path(str(target.path))
        files = (target.files or files_below(named_path).files) if target.kind == "directory" else (named_path,)
        for path in files:
            owners.setdefault(here / path, target)
    return owners


def passed_over(target: Target, sources: tuple[SourceFacts, ...]) -> Iterator[Skipped]:
    for path, reason in target.denied:
        yield Skipped("source", f"{shown_path(str(path))} can't be listed: {reason}.")
    for path, reason in target.passed_over:
        yield Skipped("source", f"{shown_path(str(path))} is {reason}.")
    for source in sources:
        if source.passed_over:
            yield Skipped("source", f"{source.path} is {source.passed_over}.")
        if source.incomplete:
            yield Skipped("source", f"{source.path} does more than is followed in one file: it is judged only in part.")


def not_followed(stage: SourceStage) -> Iterator[Skipped]:
    for path in stage.passed_over:
        yield Skipped("source", f"{shown_path(str(path))} is {LEADS_OUT}.")
