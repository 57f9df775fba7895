"""Of a program that is written in another way, and does the same, the same is said."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from judging import facts_of, findings_in, lines_and_codes
from marks import marks_from_source
from rewrites import REWRITES, rewritten
from sampling import Sample

pytestmark = pytest.mark.fast

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
ABOUT_TEXT = ("mp001", "mp005")  # rules about what no rewrite leaves as it is
PROGRAMS = [path for path in sorted(FIXTURES.glob("*/*.py")) if path.parent.name not in ABOUT_TEXT]
NOT_FOLLOWED: dict[str, set[str]] = {}  # fixtures, by the rewrite


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda rewrite: rewrite.__name__)
def test_it_says_the_same(rewrite: Callable[[ast.Module], bool], sample: Sample) -> None:
    known = NOT_FOLLOWED.get(rewrite.__name__, set())
    programs = [path for path in PROGRAMS if f"{path.parent.name}/{path.stem}" not in known]
    wrong = {path: said for path in sample(programs, 60) if (said := difference(path, rewrite))}
    assert not wrong


def difference(path: Path, rewrite: Callable[[ast.Module], bool]) -> str:
    """What is said of one program alone: of the one as it stands, or of the other."""
    text = path.read_text(encoding="utf-8")
    other, keras = rewritten(text, rewrite), marks_from_source(text).keras[0]
    if other is None or "mpdoctor: ignore" in text:
        return ""
    said = lines_and_codes(findings_in(facts_of(text, keras)))
    changed, lines = other
    now = lines_and_codes(findings_in(facts_of(changed, keras)))
    lost = {(line, code) for line, code in said if not any(code == c and line in lines[number] for number, c in now)}
    more = {code for _, code in now} - {code for _, code in said}
    return f"lost {sorted(lost)}, more {sorted(more)}" if lost or more else ""
