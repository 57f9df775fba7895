"""Which findings have fixes, in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePath

from mpdoctor.finding import Diagnosis, Finding, Severity

MENDED_FILES = ("keras-file", "hdf5-file")  # kinds of saved models of which `mend` makes another file


def how_to_fix(finding: Finding) -> str:
    """The option that applies a finding's fix, and the change that it makes, unless the help says that; "" where it has
    none."""
    fix = finding.fix
    if fix is None:
        return ""
    option = f"fixable with --fix{'' if fix.safe else ' --unsafe-fixes'}"
    return option if fix.title.lower() in finding.help.lower() else f"{option}: {fix.title}"


def fixable(findings: Iterable[Finding]) -> str:
    """ "3 fixable with --fix, 2 more with --unsafe-fixes"; "" where nothing is."""
    fixes = [finding.fix for finding in findings if finding.fix is not None and not finding.what_if]
    safe = sum(fix.safe for fix in fixes)
    unsafe = len(fixes) - safe
    if safe and unsafe:
        return f"{safe} fixable with --fix, {unsafe} more with --unsafe-fixes"
    return f"{len(fixes)} fixable with --fix{' --unsafe-fixes' if unsafe else ''}" if fixes else ""


def how_to_mend_file(diagnosis: Diagnosis) -> str:
    """How a new file without these findings is made of a saved model, which has no lines to edit; "" for other targets
    and where nothing was found."""
    (target, *others) = diagnosis.targets or (None,)
    if target is None or others or target.kind not in MENDED_FILES:
        return ""
    if not diagnosis.count(Severity.ERROR) + diagnosis.count(Severity.WARNING):
        return ""
    return f"a mended copy: mpdoctor mend {shlex.quote(target.id)} --output new{PurePath(target.id).suffix}"
