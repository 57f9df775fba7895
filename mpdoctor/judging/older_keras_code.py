"""Code written for an older Keras than the one it was judged by: recognized by names that Keras 3 has removed.

Where nothing says which Keras a file is for, the Keras installed beside mpdoctor is only a guess. Code that uses
removed names is judged by the newest TensorFlow that has all of them; one finding says that Keras 3 does not run it.
Code that imports or calls what fails in Keras 3 is judged so, too."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mpdoctor.facts.versions import LEGACY_KERAS, Keras
from mpdoctor.finding import Crashed, Finding
from mpdoctor.judging.keras_version import JudgedBy
from mpdoctor.judging.precedence import merged_findings
from mpdoctor.judging.what_if import chosen_codes
from mpdoctor.knowledge.keras_modules import last_tensorflow_with, may_import_keras_2
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.settings.options import Settings
from mpdoctor.source.existence_checks import LOOP_METHODS
from mpdoctor.source.keras2_signs import module_of_sign, sign_of_import
from mpdoctor.source.reading import tree_from_text

# The rules that speak of what Keras 3 no longer has. MP310, of an argument, proves nothing by itself.
GONE = ("MP102", "MP407", "MP310")
_PROVING = ("MP102", "MP407")
LAST_KERAS_2 = (2, 15)
# `with amp.scale_loss(loss, optimizer):` is apex, which is PyTorch's.
_KERAS3_ONLY = re.compile(r"^(?![^\S\n]*with\b).*\bscale_loss\(|\bloss_scale_factor\b", re.MULTILINE)
_MODULES_OF_KERAS3 = re.compile(r"\bkeras\.(?:ops|config|random|distribution|tree)\b|\bfrom\s+keras\s+import\s+ops\b")
_PACKAGE = re.compile(r"^[^\S\n]*(?:import|from)\s+keras\b", re.MULTILINE)
BECAUSE = "the project asks for no certain one, and this uses names that Keras 3 has removed"


Judge = Callable[[Callable[[str], Keras], frozenset[str], Sequence[str]], list[Finding | Crashed]]


class JudgedSource(NamedTuple):
    """What rules find in the source of a target.

    keras
        The Keras that the findings are judged by.
    gone
        Findings of the guessed Keras in files that are plainly written for an older one: uses of names that the guessed
        one no longer has.
    """

    findings: list[Finding | Crashed]
    keras: JudgedBy
    gone: list[Finding]


def findings_of_source(
    judge: Judge, facts: Mapping[str, SourceFacts], paths: tuple[str, ...], keras: JudgedBy, settings: Settings
) -> JudgedSource:
    """The findings in the source. Files that are plainly written for an older Keras than was guessed are judged again
    by that one. The Keras does not depend on which rules are chosen.

    `judge` judges the files at these paths: by the Keras of each, with the rules of these codes."""
    codes = chosen_codes(settings)
    judged = judge(keras.of, codes | frozenset(GONE) if keras.is_guessed else codes, paths)
    older = older_keras_of_files(keras, judged, facts, paths)
    chosen = [item for item in judged if isinstance(item, Crashed) or item.code in codes]
    if not older:
        return JudgedSource(chosen, keras, [])
    all_are_older = len(older) == len(paths)
    by = JudgedBy(next(iter(older.values())) if all_are_older else keras.usual, {**keras.others, **older})
    again = [_without_removed_names(item, older) for item in judge(by.of, codes, tuple(older))]
    in_older = [item for item in chosen if isinstance(item, Finding) and _path_of(item) in older]
    rest = [item for item in chosen if isinstance(item, Crashed) or _path_of(item) not in older]
    gone = _only_in_guessed_keras(merged_findings(in_older), again, facts, tuple(older))
    return JudgedSource([*rest, *again], by, gone)


def _without_removed_names(item: Finding | Crashed, older: Mapping[str, Keras]) -> Finding | Crashed:
    """The finding without edits that write what Keras 3 has removed, unless the file uses such names already: in a file
    that runs in Keras 3 but for a call elsewhere, they would be the next error."""
    if isinstance(item, Crashed) or item.fix is None or older[_path_of(item) or ""].because == BECAUSE:
        return item
    writes_them = any(name in edit.text for edit in item.fix.edits for name in LOOP_METHODS)
    return dataclasses.replace(item, fix=None) if writes_them else item


def _path_of(finding: Finding) -> str | None:
    return finding.location.path if finding.location is not None else None


def _only_in_guessed_keras(
    findings: Iterable[Finding],
    in_older: Iterable[Finding | Crashed],
    facts: Mapping[str, SourceFacts],
    paths: Sequence[str],
) -> list[Finding]:
    """Those of the findings by the guessed Keras that are about removed names. Left out are defects that the older
    Keras has as well (`in_older`), and names that tf_keras has in programs that mean to use it."""
    places = {(item.code, item.location) for item in in_older if isinstance(item, Finding)}
    wanting = _wanting_tf_keras(facts, paths)
    return [
        finding
        for finding in findings
        if is_gone(finding) and not _is_in_tf_keras(finding, wanting) and (finding.code, finding.location) not in places
    ]


def _wanting_tf_keras(facts: Mapping[str, SourceFacts], paths: Sequence[str]) -> frozenset[str]:
    """The files of programs that speak of TF_USE_LEGACY_KERAS somewhere, or whose project names tf_keras among what it
    needs: whoever wrote them knows what they need."""
    programs = [program for program in _programs(paths, facts) if _wants_tf_keras(program, facts)]
    return frozenset(path for program in programs for path in program)


def _wants_tf_keras(program: Sequence[str], facts: Mapping[str, SourceFacts]) -> bool:
    from mpdoctor.project.keras_of_project import asks_for_tf_keras

    folders = {Path(path).parent for path in program}
    return any(LEGACY_KERAS in facts[path].text for path in program) or any(map(asks_for_tf_keras, folders))


def _is_in_tf_keras(finding: Finding, wanting: frozenset[str]) -> bool:
    """Whether the name that a finding is about exists in tf_keras, and its file is one of those to be run with that. A
    name that was gone before Keras 3 is not in tf_keras either."""
    is_wanted = finding.location is not None and finding.location.path in wanting
    return is_wanted and last_release(finding) == LAST_KERAS_2


def older_keras_of_files(
    keras: JudgedBy, judged: Iterable[Finding | Crashed], facts: Mapping[str, SourceFacts], paths: Sequence[str]
) -> dict[str, Keras]:
    """The Keras of the files that are plainly for Keras 2 although they were judged by a Keras 3 that nothing asks for.
    Files that import one another are one program, and for one Keras; a call that Keras 3 refuses and Keras 2 takes
    shows what the whole project is for."""
    if not keras.is_guessed or not keras.usual.is_keras3:
        return {}
    unnamed = [path for path in paths if path not in keras.others]
    gone = [
        finding for finding in judged if isinstance(finding, Finding) and finding.code in _PROVING and is_gone(finding)
    ]
    by_names = _keras_with_removed_names(gone, facts, unnamed) if gone else {}
    showing = next((facts[path] for path in unnamed if _sign_of_keras2(facts[path])), None)
    if showing is None or _shows_keras3(keras, [facts[path] for path in paths]):
        return by_names
    sign = _sign_of_keras2(showing)
    because = f"the project asks for no certain one, and {showing.path} {sign}, which fails in Keras 3"
    return {**dict.fromkeys(unnamed, _keras_2_of_release(_last_by_sign(showing), because)), **by_names}


def _keras_with_removed_names(
    gone: Sequence[Finding], facts: Mapping[str, SourceFacts], paths: Sequence[str]
) -> dict[str, Keras]:
    """The Keras of each program's files that use names which Keras 3 has removed: that of the newest TensorFlow that
    still has all of these names."""
    kerases: dict[str, Keras] = {}
    for program in _programs(paths, facts):
        own = [finding for finding in gone if finding.location is not None and finding.location.path in program]
        last = min(map(last_release, own), default=LAST_KERAS_2)
        if own and not _may_be_of_keras3([facts[path] for path in program], last):
            imported = min(_last_by_sign(facts[path]) for path in program)
            kerases |= dict.fromkeys(program, _keras_2_of_release(min(last, imported), BECAUSE))
    return kerases


def _last_by_sign(file: SourceFacts) -> tuple[int, ...]:
    """The last TensorFlow whose Keras has what this file is seen to import of Keras 2."""
    return last_tensorflow_with(module_of_sign(_sign_of_keras2(file)))


def _keras_2_of_release(release: tuple[int, ...], because: str) -> Keras:
    version = ".".join(map(str, release))
    return Keras("tf.keras", version, version, because)


def _shows_keras3(keras: JudgedBy, files: Sequence[SourceFacts]) -> bool:
    """Whether some file of a project is for Keras 3: then a file whose calls Keras 3 refuses says nothing of the
    others."""
    texts = [file.text for file in files]
    return any(other.is_keras3 for other in keras.others.values()) or any(
        pattern.search(text) for text in texts for pattern in (_KERAS3_ONLY, _MODULES_OF_KERAS3)
    )


def _may_be_of_keras3(program: Sequence[SourceFacts], last: tuple[int, ...]) -> bool:
    """Whether a program that ends at this TensorFlow may be written for Keras 3 all the same. Keras as a package of its
    own is either, unless the program imports or calls what only Keras 2 has; and what went before Keras 3 came is in
    none of its releases."""
    if any(_KERAS3_ONLY.search(file.text) for file in program):
        return True
    is_package = any(_PACKAGE.search(file.text) for file in program)
    return last == LAST_KERAS_2 and is_package and not any(map(_sign_of_keras2, program))


def _sign_of_keras2(file: SourceFacts) -> str:
    """What in the file shows Keras 2, or "". A file without mixed precision was not walked: there the imports are
    looked at."""
    if file.sign_of_keras2 or not file.is_blank or not may_import_keras_2(file.text):
        return file.sign_of_keras2
    tree = tree_from_text(file.text, file.path)
    return "" if isinstance(tree, Problem) else sign_of_import(tree)


def is_gone(finding: Finding) -> bool:
    """Whether it says that an older Keras had this."""
    return finding.code in GONE and (finding.code != "MP102" or "gone_since" in finding.evidence)


def _programs(paths: Sequence[str], facts: Mapping[str, SourceFacts]) -> list[list[str]]:
    """The programs among these files, each the files that import one another, directly or through others, in order."""
    of: dict[str, list[str]] = {path: [path] for path in paths}
    for path in paths:
        for other in facts[path].imports:
            if other in of and of[other] is not of[path]:
                of[path] += of[other]
                of |= dict.fromkeys(of[other], of[path])
    return list({id(program): program for program in of.values()}.values())


def last_release(finding: Finding) -> tuple[int, ...]:
    """The last TensorFlow that has what the line uses."""
    since = re.fullmatch(r"TensorFlow (\d+)\.(\d+)", str(finding.evidence.get("gone_since", "")))
    if since is None:
        return LAST_KERAS_2
    major, minor = int(since[1]), int(since[2])
    return (major, minor - 1) if minor else (1, 15)
