"""The text around a finding's message: further layers, other places, the span of its line, a link to its rule."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable

from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Finding, RuleSummary
from mpdoctor.reporters.printable import cell_text, one_line
from mpdoctor.reporters.text.style import Style

LONGEST_COMPARED = 600  # characters: to compare takes the square of it
MOST_COMPARED = 60  # sentences
FEWEST_WORDS, NEW_WORDS = 8, 0.16  # of a sentence that may be one told in another order; the share that is new
LONGEST_SIGHT = 240
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) +(?=[A-Z`]|b?float\d)")
_ERROR = re.compile(r": (\w*(?:Error|Exception): .+)$", re.DOTALL)
SEEN = {"source": "in the source", "model": "in the model", "training": "while training"}


def further_layers(finding: Finding) -> list[str]:
    """The further layers that a finding holds for, where its message can't have named them all."""
    layers = finding.evidence.get("layers")
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, str) for layer in layers):
        return []
    return [] if len(layers) < 2 or all(layer in finding.message for layer in layers) else list(layers)


def also_seen(finding: Finding, look: Style) -> list[str]:
    """A line for each other sight of the finding: its place, and the sentences that were not shown before. A sight
    without a new sentence is left out."""
    sights: dict[tuple[str, str], list[AlsoSeen]] = {}
    for seen in finding.also_seen:
        if not (seen.code == finding.code and f"({_line_of(seen)})" in finding.help):
            sights.setdefault((seen.code, seen.text), []).append(seen)
    said = _sentences(f"{finding.message} {finding.help}")
    words = Counter(_words(finding.message))
    lines = []
    for (code, text), alike in sights.items():
        new = [
            sentence
            for sentence in _sentences(text)
            if not (
                _quotes_its_error(sentence, finding.message)
                or _is_made_of(sentence, words)
                or any(_say_the_same(sentence, known) for known in said)
            )
        ]
        if new:
            said = [*said, *new][:MOST_COMPARED]
            words |= Counter(_words(" ".join(new)))
            rule = f" ({code})" if code != finding.code else ""
            lines.append(f"also seen {_places_of_sights(alike, finding, look)}{rule}: {_sentences_that_fit(new, look)}")
    return lines


def _line_of(seen: AlsoSeen) -> str:
    return cell_text(seen.cell, seen.line) if seen.cell else f"line {seen.line}"


def _places_of_sights(sights: Iterable[AlsoSeen], finding: Finding, look: Style) -> str:
    """ "in the source, a.py:13 and a.py:14, and in the model": each stage once."""
    places: dict[str, dict[str, None]] = {}
    for seen in sights:
        places.setdefault(SEEN.get(seen.stage, seen.stage), {})[_place(seen, finding, look)] = None
    parts = [", ".join([stage, *([" and ".join(filter(None, at))] if any(at) else [])]) for stage, at in places.items()]
    return (", and " if any("," in stage for stage in parts) else " and ").join(parts)


def _place(seen: AlsoSeen, finding: Finding, look: Style) -> str:
    """The place of a sight where it differs from the line that is shown; "" for another rule's sight in the same
    file."""
    shown = finding.location
    if shown is None or seen.path is None:
        return ""
    if seen.path != shown.path:
        return look.name(f"{seen.path}:{seen.line}", 80)
    cell = f"cell {seen.cell}, " if seen.cell != shown.cell else ""
    meant = seen.code == finding.code or seen.text.endswith(" here.")
    return f"{cell}line {seen.line}" if meant and (cell or seen.line != shown.line) else ""


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _BETWEEN_SENTENCES.split(text.strip()) if sentence]


def _sentences_that_fit(sentences: list[str], look: Style) -> str:
    """As many whole sentences as fit; a first sentence that is too long is shortened in its middle."""
    text = look.name(sentences[0], LONGEST_SIGHT)
    for sentence in sentences[1:]:
        if len(text) + len(sentence) >= LONGEST_SIGHT:
            break
        text += f" {look.name(sentence, LONGEST_SIGHT)}"
    return text


def _words(text: str) -> list[str]:
    return [word.strip(",.:;`").lower() for word in text[:LONGEST_COMPARED].split()]


def _quotes_its_error(sentence: str, message: str) -> bool:
    """Whether a sentence says where the program stopped, with the error that the message quotes as well."""
    quoted = _ERROR.search(sentence)
    return quoted is not None and quoted[1] in message


def _is_made_of(sentence: str, words: Counter[str]) -> bool:
    """Whether a sentence of some length has hardly a word that is not among these: then it repeats the message in
    another order."""
    own = Counter(_words(sentence))
    return own.total() >= FEWEST_WORDS and (own - words).total() <= own.total() * NEW_WORDS


def _say_the_same(sentence: str, other: str) -> bool:
    words, others = (text[:LONGEST_COMPARED].split() for text in (sentence, other))
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    return matcher.quick_ratio() > 0.6 and matcher.ratio() > 0.6  # the first is an upper bound of the second


def marked_span(line: str, place: Location) -> tuple[int, int]:
    """First and last column of the span in the line as it is shown, with tabs and escapes counted."""
    shown = one_line(line).rstrip()
    indent = len(shown) - len(shown.lstrip())
    if not place.column or place.column > len(line):
        return indent, len(shown)
    start = len(one_line(line[: place.column - 1]))
    ends_here = place.end_line in (0, place.line) and place.end_column > place.column
    end = len(one_line(line[: place.end_column - 1])) if ends_here else len(shown)
    return start, max(min(end, len(shown)), start)


_ADDRESS = re.compile(r"https?://[!-~]+")


def pages_from_rules(rules: Iterable[RuleSummary]) -> dict[str, str]:
    """The address of each rule's page, by code. Only web addresses are taken: a saved diagnosis may come from
    anybody."""
    return {rule.code: rule.url for rule in rules if _ADDRESS.fullmatch(rule.url)}
