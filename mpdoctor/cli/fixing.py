"""What follows a diagnosis of source: fixes applied or shown, ignore comments, baselines, lines that have changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mpdoctor.cli.output import Output, OutputFormat, put_out
from mpdoctor.cli.streams import fail, patch_for_output, progress_for, say, write
from mpdoctor.facts.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpdoctor.fixes.baseline import Baseline
    from mpdoctor.fixes.choices import Choice
    from mpdoctor.fixes.rounds import EditedFile, Fixed
    from mpdoctor.settings.options import Settings

UNREADABLE = "MP001"
MOST_GONE = 5  # that are named
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Wishes:
    """The options. Each of them implies --static."""

    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    add_ignores: bool = False
    baseline: Path | None = None
    write_baseline: Path | None = None
    since: str | None = None

    def __bool__(self) -> bool:
        return self != Wishes()

    @property
    def edits(self) -> bool:
        return self.fix or self.diff or self.add_ignores

    def refuse_what_does_not_fit(self, output: Output) -> None:
        """Ends with a usage error before anything is read."""
        if self.add_ignores and (self.fix or self.unsafe_fixes):
            fail("--add-ignores accepts findings that --fix would fix: run --fix first, and --add-ignores after that.")
        if self.write_baseline is not None and self.edits:
            fail("--write-baseline stores the findings: run it without options that change files.")
        if self.diff and (output.files or output.shown is not OutputFormat.terminal):
            fail("--diff shows the changes and no report: leave --report and --output-format out.")


def check_source(settings: Settings, wishes: Wishes, output: Output, quiet: bool) -> int:
    """Diagnose, do what was wished for, show what is left; the exit status."""
    from mpdoctor.diagnosis import diagnose_with_sources
    from mpdoctor.fixes.baseline import baseline_from_findings

    if wishes.write_baseline is not None:
        _refuse_other_file(wishes.write_baseline)
    baseline = _baseline(wishes.baseline)
    choice = _choice_from_wishes(wishes, settings, baseline)
    if wishes.edits:
        return _make_edits(settings, wishes, output, choice, quiet)
    progress = progress_for(quiet)
    try:
        diagnosis, sources = diagnose_with_sources(settings, progress)
    finally:
        progress.close()
    if wishes.write_baseline is not None:
        new = baseline_from_findings(diagnosis.findings)
        _write_baseline(new, wishes.write_baseline)
        diagnosis = new.left_of(diagnosis, sources, settings)
    diagnosis = choice(diagnosis, sources)
    if baseline is not None and wishes.write_baseline is None:
        _tell_of_gone(baseline, wishes.baseline)
    return put_out(diagnosis, output)


def _choice_from_wishes(wishes: Wishes, settings: Settings, baseline: Baseline | None) -> Choice:
    from mpdoctor.fixes.choices import both, everything
    from mpdoctor.fixes.since import Since

    choice: Choice = everything
    ref = wishes.since
    if baseline is not None:
        choice = both(choice, lambda diagnosis, sources: baseline.left_of(diagnosis, sources, settings))
    if ref is not None:
        since = _answer_of_git(ref, lambda: Since(ref))
        choice = both(
            choice,
            lambda diagnosis, sources: _answer_of_git(ref, lambda: since.left_of(diagnosis, sources, settings)),
        )
    return choice


def _answer_of_git(ref: str, ask: Callable[[], Answer]) -> Answer:
    """What `ask` returns. Ends with a usage error where git has no answer."""
    from mpdoctor.fixes.git import NoAnswer

    try:
        return ask()
    except NoAnswer as error:
        fail(f"--since {ref}: {error}.")


def _make_edits(settings: Settings, wishes: Wishes, output: Output, choice: Choice, quiet: bool) -> int:
    from mpdoctor.fixes.diffs import diff_from_files
    from mpdoctor.fixes.ignores import ignoring_edits
    from mpdoctor.fixes.rounds import apply_fixes, fixes_of

    progress = progress_for(quiet)
    try:
        edits_of = ignoring_edits if wishes.add_ignores else fixes_of(wishes.unsafe_fixes)
        outcome = apply_fixes(settings, progress, edits_of, choice)
    finally:
        progress.close()
    for path, why in sorted(outcome.left.items()):
        say(f"{path} was not written: {why}.")
    for path, codes in sorted(outcome.undoing.items()):
        say(f"the edits of {' and '.join(sorted(codes))} in {path} undo each other, and were not made.")
    if wishes.diff:
        write(patch_for_output(diff_from_files(outcome.changed)))
        for finding in outcome.diagnosis.findings:  # no report is shown beside a patch
            if finding.code == UNREADABLE and finding.location is not None:
                say(f"{finding.location.path} could not be read: {finding.message}")
        say(_sentence_on_edits(outcome, wishes, "would be "))
        code = outcome.diagnosis.exit_code
        return code if code > 1 else int(bool(outcome.changed) and not settings.exit_zero)
    if any(target.kind == "stdin" for target in settings.targets):
        return _put_out_text(outcome, settings)
    failed = [file for file in outcome.changed if not write_file(file)]
    if failed:  # what remains is what stands on the disk
        outcome = apply_fixes(settings, progress_for(quiet), lambda diagnosis, sources: {}, choice)
        return max(put_out(outcome.diagnosis, output), 2)
    say(_sentence_on_edits(outcome, wishes, ""))
    return put_out(outcome.diagnosis, output)


def _sentence_on_edits(outcome: Fixed, wishes: Wishes, would: str) -> str:
    from mpdoctor.facts.written_numbers import count

    number = sum(outcome.counts.values())
    done = "answered with an ignore comment" if wishes.add_ignores else "fixed"
    if not number:
        return f"nothing {would or 'was '}{done}."
    return f"{count(number, 'finding')} {would or ('was ' if number == 1 else 'were ')}{done} in " + (
        f"{count(len(outcome.changed), 'file')}."
    )


def _put_out_text(outcome: Fixed, settings: Settings) -> int:
    """Write the text as it is now to standard output, and the report to standard error."""
    from mpdoctor.reporters.rendering import report_from_diagnosis

    target = next(target for target in settings.targets if target.kind == "stdin")
    after = next((file.after for file in outcome.changed), target.content or b"")
    sys.stdout.buffer.write(after)
    sys.stdout.buffer.flush()
    write(report_from_diagnosis(outcome.diagnosis, OutputFormat.concise.value), sys.stderr)
    return outcome.diagnosis.exit_code


def write_file(file: EditedFile) -> bool:
    """Write a fixed file; whether that succeeded. An error is said on standard error."""
    from mpdoctor.fixes.writing import Changed, write_over

    try:
        write_over(file.path, file.before, file.after)
    except Changed:
        say(f"{file.shown_as} was not written: it was changed by somebody else meanwhile.")
        return False
    except OSError as error:
        say(f"{file.shown_as} could not be written: {error.strerror}.")
        return False
    return True


def _baseline(path: Path | None) -> Baseline | None:
    from mpdoctor.fixes.baseline import NoBaseline, baseline_from_json
    from mpdoctor.project.regular_files import bytes_from_file

    if path is None:
        return None
    try:
        return baseline_from_json(bytes_from_file(path))
    except OSError as error:
        fail(f"--baseline {path} can't be read: {error.strerror}.")
    except NoBaseline as error:
        advice = ""
        if path.suffix in (".py", ".ipynb"):
            advice = f" If it is a target, name the baseline before it: --baseline baseline.json {path}"
        fail(f"--baseline {path}: {error}.{advice}")


def _refuse_other_file(path: Path) -> None:
    """Ends with a usage error where a baseline would take the place of another file: the target, say, of who forgot to
    name the baseline."""
    from mpdoctor.fixes.baseline import is_baseline
    from mpdoctor.project.regular_files import bytes_from_file

    if path.is_symlink() or not path.is_file():  # a link was made to be written through
        return
    try:
        held = bytes_from_file(path)
    except OSError as error:
        fail(f"--write-baseline {path}: what stands there can't be read ({error.strerror}), so it was left as it is.")
    if held.strip() and not is_baseline(held):
        advice = "Give the baseline another name, or remove the file."
        if path.suffix in (".py", ".ipynb"):
            advice = f"Name a file for the baseline before it: --write-baseline baseline.json {path}"
        fail(f"--write-baseline {path}: that is a file and no baseline, so it was left as it is. {advice}")


def _write_baseline(baseline: Baseline, path: Path) -> None:
    from mpdoctor.facts.written_numbers import count
    from mpdoctor.fixes.baseline import json_from_baseline
    from mpdoctor.project.named_files import write_text

    try:
        write_text(path, json_from_baseline(baseline))
    except OSError as error:
        fail(f"--write-baseline {path} could not be written: {error.strerror}.")
    say(f"{path} contains {count(len(baseline), 'finding')}.")


def _tell_of_gone(baseline: Baseline, path: Path | None) -> None:
    from mpdoctor.facts.written_numbers import count

    gone = baseline.gone
    if not gone:
        return
    named = ", ".join(f"{entry.code} in {entry.path}" for entry in gone[:MOST_GONE])
    more = f" and {len(gone) - MOST_GONE} more" if len(gone) > MOST_GONE else ""
    say(f"{count(len(gone), 'finding')} of {path} {'is' if len(gone) == 1 else 'are'} gone: {named}{more}. "
        "--write-baseline writes it without.")  # fmt: skip
