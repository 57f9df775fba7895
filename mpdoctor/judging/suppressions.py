"""Suppressed findings: by an ignore comment on their line or in their file, or by the configuration."""

from __future__ import annotations

import functools
import re
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mpdoctor.facts.location import Location, lines_of
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding
from mpdoctor.program.breakdown import breakdown_from_error
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.suppression import Suppression, SuppressionFacts
from mpdoctor.project.edited_files import EditedFiles
from mpdoctor.rules.registry import all_rules
from mpdoctor.settings.options import Settings, names_rule
from mpdoctor.source.reading import text_from_file

_COMMENT = re.compile(
    r"#\s*mpdoctor\s*:\s*ignore(?P<file>-file)?(?![\w-])\s*(?:\[(?P<selectors>[^\]]*)\])?(?P<reason>.*)"
)


class Suppressions:
    """The comments in all files and the per-file-ignores, and which of them were of use. `count`: findings suppressed
    so far; `crashed`: files whose comments we broke on."""

    def __init__(self, sources: Iterable[SourceFacts], settings: Settings) -> None:
        self.count = 0
        self._settings = settings
        self._edited = EditedFiles(settings.unsaved, settings.edited)
        self.crashed: list[Crashed] = []
        self._own = {source.path: self._comments_of(source) for source in sources}
        self._elsewhere: dict[str, _Comments] = {}
        self._used: set[tuple[Location, str]] = set()

    def left_of(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that nothing suppresses."""
        return [finding for finding in findings if not self._is_answered(finding)]

    def facts(self, paths: Iterable[str], keras_of: Callable[[str], Keras], live: bool) -> Iterator[SuppressionFacts]:
        """The facts of each ignore comment in these files, once all findings were seen. `keras_of`: by which Keras a
        file was judged; `live`: whether the program was run, too."""
        asked_of = functools.cache(functools.partial(self._was_asked, live=live))
        for path in paths:
            keras = keras_of(path)
            for comment in self._own[path].all if path in self._own else ():
                asked = {selector: asked_of(selector, keras) for selector in comment.selectors}
                looked = [selector for selector, has_looked in asked.items() if has_looked]
                yield SuppressionFacts(
                    comment,
                    tuple(selector for selector in looked if (comment.location, selector) not in self._used),
                    tuple(selector for selector, has_looked in asked.items() if has_looked is None),
                )

    def _was_asked(self, selector: str, keras: Keras, live: bool) -> bool | None:
        """Whether the rules that a selector names have looked: only then is a selector without findings known to be
        unused. None where there is no such rule."""
        meant = [rule for rule in all_rules() if names_rule(selector, rule.code, rule.name)]
        looked = [rule for rule in meant if rule.speaks_about(keras) and (live or "in_source" in rule.looks)]
        chosen = all(self._settings.chooses(rule.code, rule.name) for rule in meant)
        return bool(looked) and chosen if meant else None

    def _is_answered(self, finding: Finding) -> bool:
        answers = list(self._answers(finding))
        self._used.update(
            (comment.location, selector) for comment, selector in [*answers, *self._answers_to_sights(finding)]
        )
        if any(_names_finding(selector, finding) for _, selector in answers) or self._is_ignored_in_file(finding):
            self.count += 1
            return True
        return False

    def _answers(self, finding: Finding) -> Iterator[tuple[Suppression, str]]:
        """(comment, selector) of each ignore comment that names this finding or one that it explains."""
        place = finding.location
        if place is None:
            return
        for comment in self._comments_in(place.path).about(place.line):
            for selector in comment.selectors:
                explained = any(names_rule(selector, seen.code, "") for seen in finding.also_seen)
                if explained or _names_finding(selector, finding):
                    yield comment, selector

    def _answers_to_sights(self, finding: Finding) -> Iterator[tuple[Suppression, str]]:
        """(comment, selector) of each ignore comment on the line of a finding that this one explains: without this one
        it would suppress that."""
        for seen in finding.also_seen if finding.location is not None else ():
            if seen.path is None or seen.line is None or seen.code == finding.code:
                continue
            for comment in self._comments_in(seen.path).about(seen.line):
                yield from ((comment, name) for name in comment.selectors if names_rule(name, seen.code, ""))

    def _comments_in(self, path: str) -> _Comments:
        """A finding may lie in a file that was imported and is no target itself."""
        if path in self._own:
            return self._own[path]
        if path not in self._elsewhere:
            text = text_from_file(path, self._edited)  # None: then it can't be shown with the finding either
            self._elsewhere[path] = self._comments_of(SourceFacts(path, text or ""))
        return self._elsewhere[path]

    def _comments_of(self, source: SourceFacts) -> _Comments:
        try:
            return _Comments(suppressions_from_facts(source))
        except Exception as error:
            broken = breakdown_from_error(source.path, error)
            self.crashed.append(Crashed("source", f"{broken.path} ({broken.where})", broken.error))
            return _Comments(())

    def _is_ignored_in_file(self, finding: Finding) -> bool:
        place = finding.location
        return place is not None and any(
            any(_names_finding(selector, finding) for selector in selectors) and patterns.match(Path(place.path))
            for patterns, selectors in self._settings.per_file_ignores
        )


class _Comments:
    """The ignore comments of one file, indexed by line: there may be ten thousand of them, and as many findings."""

    def __init__(self, comments: tuple[Suppression, ...]) -> None:
        self.all = comments
        self._of_file = [comment for comment in comments if comment.whole_file]
        self._of_statements: dict[tuple[int, int], list[Suppression]] = {}
        for comment in comments:
            if not comment.whole_file:
                self._of_statements.setdefault(comment.lines, []).append(comment)
        self._statements = sorted(self._of_statements)

    def about(self, line: int) -> Iterator[Suppression]:
        """The comments that hold for a line: of its statement, and of the whole file."""
        yield from self._of_file
        before = bisect_right(self._statements, line, key=lambda lines: lines[0])
        lines = self._statements[before - 1] if before else (0, 0)
        if lines[0] <= line <= lines[1]:
            yield from self._of_statements[lines]


def _names_finding(selector: str, finding: Finding) -> bool:
    return names_rule(selector, finding.code, finding.name)


def suppressions_from_facts(source: SourceFacts) -> tuple[Suppression, ...]:
    """Every ignore comment of a file. A string that looks like one is none."""
    if "mpdoctor" not in source.text:
        return ()
    lines = lines_of(source.text)
    if not source.cells:
        return tuple(_suppressions_from_lines(lines, source.path, 1))
    from mpdoctor.source.notebooks import without_magics

    starts = [first for _, first in source.cells]
    suppressions: list[Suppression] = []
    for first, after in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        cell = without_magics("\n".join(lines[first - 1 : after - 1]))
        suppressions += _suppressions_from_lines(lines_of(cell), source.path, first)
    return tuple(suppressions)


def _suppressions_from_lines(lines: list[str], path: str, first: int) -> Iterator[Suppression]:
    """`first`: the number of the first of these lines in the file."""
    waiting: list[tuple[tokenize.TokenInfo, re.Match[str]]] = []
    start = 0
    for token in _tokens(lines):
        if token.type == tokenize.COMMENT:
            match = _COMMENT.search(token.string)
            if match and start and not match["file"]:
                waiting.append((token, match))
            elif match:
                yield _suppression(token, match, path, first, (0, 0))
        elif token.type == tokenize.NEWLINE:
            span = (start + first - 1, token.start[0] + first - 1)
            yield from (_suppression(comment, match, path, first, span) for comment, match in waiting)
            waiting, start = [], 0
        elif not start and token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            start = token.start[0]
    yield from (_suppression(comment, match, path, first, (0, 0)) for comment, match in waiting)


def _suppression(
    token: tokenize.TokenInfo, match: re.Match[str], path: str, first: int, lines: tuple[int, int]
) -> Suppression:
    line, column = token.start[0] + first - 1, token.start[1] + match.start() + 1
    text = match[0].rstrip()
    selectors = tuple(part.strip() for part in (match["selectors"] or "").split(",") if part.strip())
    place = Location(path, line, column, line, column + len(text))
    return Suppression(place, lines, selectors, bool(match["file"]), match["reason"].strip())


def _tokens(lines: list[str]) -> Iterator[tokenize.TokenInfo]:
    """The tokens of these lines, up to the first that Python cannot read."""
    rest = iter(f"{line}\n" for line in lines)
    try:
        yield from tokenize.generate_tokens(lambda: next(rest, ""))
    except (tokenize.TokenError, SyntaxError):
        return
