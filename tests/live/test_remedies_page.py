"""What docs/measurements.md says of remedies: every rule stands under the one way in which its remedy is known."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest
from test_remedies import REMEDIES

from mpdoctor.rules.registry import all_rules

pytestmark = pytest.mark.fast

PAGE = (Path(__file__).parents[2] / "docs" / "measurements.md").read_text(encoding="utf-8")
TRIED = ("remedies=remedies_to_report(training)", "remedy in training.remedies")
COLUMNS = 4


def between(name: str) -> str:
    return PAGE.partition(f"<!-- {name} -->\n\n")[2].partition(f"\n\n<!-- end of the {name} -->")[0]


def codes(text: str) -> list[str]:
    return re.findall(r"\bMP\d{3}\b", text)


def with_edits() -> list[str]:
    return [rule.code for rule in all_rules() if rule.fixes]


def tried() -> list[str]:
    """Rules that print what was tried on the failing batch."""
    looks = {rule.code: rule.looks.get("in_training") for rule in all_rules()}
    return [
        code
        for code, look in looks.items()
        if look and any(words in inspect.getsource(inspect.getmodule(look)) for words in TRIED)
    ]


def words_table() -> list[str]:
    """To be pasted there: `print("\\n".join(words_table()))`."""
    ends = Counter((remedy.code, remedy.ends) for remedy in REMEDIES.values() for _ in remedy.keras)
    rows = [
        f"| {code} | {ends[code, 'healed']} | {ends[code, 'not healed']} |"
        for code in sorted({code for code, _ in ends})
    ]
    return ["| | Healed | Not healed |", "|---|---|---|", *rows]


def advice_only() -> list[str]:
    applied = {remedy.code for remedy in REMEDIES.values()}
    return [rule.code for rule in all_rules() if rule.code not in {*with_edits(), *tried(), *applied}]


def test_the_rules_with_edits_are_those_of_the_registry() -> None:
    assert sorted(codes(between("edits"))) == with_edits()
    assert f"{len(with_edits())} rules have one" in PAGE


def test_every_row_of_edits_adds_up() -> None:
    for line in between("edits").splitlines()[2:]:
        numbers = [int(cell) if cell.isdigit() else 0 for cell in line.replace(" ", "").strip("|").split("|")[1:]]
        for first in range(0, len(numbers), COLUMNS):
            assert numbers[first] == sum(numbers[first + 1 : first + COLUMNS]), line


def test_the_rules_whose_remedies_are_tried_are_named() -> None:
    assert codes(PAGE.partition('printed as "tried"\n\n')[2].partition("\n\n")[0]) == tried()


def test_the_words_that_were_applied_are_those_of_the_table() -> None:
    assert between("words").splitlines() == words_table()


def test_the_rest_is_advice_only() -> None:
    assert codes(between("advice")) == advice_only()
