"""Edits that rules give, over all fixtures: what was fixed parses, says nothing new, and is otherwise the same."""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from judging import facts_of, findings_in
from marks import marks_from_source

from mpdoctor.finding import Finding, Fix
from mpdoctor.fixes.rounds import edited_bytes
from mpdoctor.fixes.texts import chosen_together
from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.knowledge.wrapper_api import OF_WRAPPER
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Value, options
from mpdoctor.rules.registry import all_rules
from mpdoctor.semantics.source.loops.gradients import is_wrapped_by_own_compile
from mpdoctor.source.existence_checks import WRAPPER_CLASSES

pytestmark = pytest.mark.fast

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
MOST_ROUNDS = 10
# What a program does wrong besides, and what nobody could see before it computed in 16 bits, or got beyond that line.
# Clipping gradients that are scaled from then on has an edit of its own; a mean that is cast was taken in 16 bits.
LEFT = {
    "MP106": {"MP410"},  # another step of the same optimizer scales its loss by a number of its own
    "MP213": {"MP113", "MP702"},  # a layer that keeps its dtype keeps an old policy, too
    "MP401": {"MP405"},
}
TURNED_ON = {code: {"MP201", "MP301"} for code in ("MP105", "MP111", "MP112", "MP113", "MP115")}
REVEALED = {
    "MP201": {"MP505"},  # a cast by name in a loss, which has an edit of its own
    "MP202": {"MP501"},
    "MP204": {"MP508"},
    "MP208": {"MP106", "MP201"},
    "MP407": {"MP408"},
    "MP504": {"MP505"},
    "MP505": {"MP504"},
    **TURNED_ON,
    **LEFT,
}


def cases() -> list[tuple[str, str]]:
    """Every fixture of one file that something is found in, with each Keras that it is for."""
    found = []
    for path in sorted(FIXTURES.glob("*/*.py")):
        marks = marks_from_source(path.read_text(encoding="utf-8"))
        name = str(path.relative_to(FIXTURES))
        if not any(mark.code == "MP001" for mark in marks.findings(marks.keras[0])):  # that is no Python
            found += [(name, keras) for keras in marks.keras if marks.findings(keras)]
    return found


@cache
def text_of(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


@cache
def found_in(text: str, keras: str) -> tuple[Finding, ...]:
    return tuple(findings_in(facts_of(text, keras)))


def codes(findings: tuple[Finding, ...]) -> Counter[str]:
    return Counter(finding.code for finding in findings)


def fixed(text: str, *fixes: Fix) -> str:
    done = edited_bytes(text.encode(), "fixture.py", [fix.edits for fix in fixes])
    assert done is not None
    return done.decode()


def told(finding: Finding, text: str, after: str) -> str:
    diff = "".join(difflib.unified_diff(text.splitlines(True), after.splitlines(True), n=1))
    return f"{finding.code} at {finding.location}: {finding.fix}\n{diff}"


def same(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.message, finding.location


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)


def around(text: str, fix: Fix) -> tuple[list[str], list[str]]:
    """The lines before the first and behind the last that an edit touches."""
    lines = text.split("\n")
    first = min(edit.location.line for edit in fix.edits)
    ends = [
        (edit.location, edit.location.end_column == 1 and edit.location.end_line > edit.location.line)
        for edit in fix.edits
    ]
    last = max(place.end_line - is_whole_line for place, is_whole_line in ends)
    return lines[: first - 1], lines[last:]


def texts_cast(program: ast.Module) -> list[str]:
    """Casts of a string: TensorFlow refuses them."""
    casts = [node for node in ast.walk(program) if isinstance(node, ast.Call) and node.args]
    return [
        ast.unparse(node)
        for node in casts
        if isinstance(node.func, ast.Attribute)
        if node.func.attr == "cast" and isinstance(getattr(node.args[0], "value", None), str)
    ]


def read_too_early(program: ast.Module) -> set[tuple[str, str]]:
    """Names that a function reads above the first line that binds them."""
    found = set()
    for function in (node for node in ast.walk(program) if isinstance(node, ast.FunctionDef)):
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        bound: dict[str, int] = {}
        for name in names:
            if isinstance(name.ctx, ast.Store):
                bound[name.id] = min(name.lineno, bound.get(name.id, name.lineno))
        given = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        early = (name.id for name in names if name.lineno < bound.get(name.id, 0))
        found |= {(function.name, name) for name in early if name not in given}
    return found


def asked_of_bare_optimizers(text: str, keras: str) -> set[str]:
    """What a LossScaleOptimizer alone has, and a program reads of an optimizer that is none, and that no compile() has
    wrapped under the same name."""
    facts = facts_of(text, keras)
    reads = (read for read in facts.reads if read.name in OF_WRAPPER and all(map(is_bare_optimizer, options(read.of))))
    return {read.name for read in reads if not is_wrapped_by_own_compile(facts, read.of, read)}


def is_bare_optimizer(value: Value) -> bool:
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return False
    name = value.callee.name
    return kind_of_class(name) == "optimizer" and name.rpartition(".")[2] not in WRAPPER_CLASSES


@pytest.mark.parametrize(("name", "keras"), cases())
def test_each_fix_mends_what_it_is_for_and_nothing_else(name: str, keras: str) -> None:
    text = text_of(name)
    before = found_in(text, keras)
    for finding in before:
        if finding.fix is None:
            continue
        after = fixed(text, finding.fix)
        said = told(finding, text, after)
        assert not texts_cast(ast.parse(after)), said
        assert read_too_early(ast.parse(after)) <= read_too_early(ast.parse(text)), said
        assert asked_of_bare_optimizers(after, keras) <= asked_of_bare_optimizers(text, keras), said
        left = found_in(after, keras)
        assert same(finding) not in map(same, left), said
        new = codes(left) - codes(before)
        assert set(new) <= REVEALED.get(finding.code, set()), f"new: {new}\n{said}"
        assert comments(after) == comments(text), said
        head, tail = around(text, finding.fix)
        assert after.split("\n")[: len(head)] == head, said
        assert not tail or after.split("\n")[-len(tail) :] == tail, said


def in_rounds(text: str, keras: str, unsafe: bool) -> str:
    """What `--fix` makes of it."""
    for _ in range(MOST_ROUNDS):
        fixes = [f.fix.edits for f in found_in(text, keras) if f.fix is not None and (f.fix.safe or unsafe)]
        if not fixes:
            return text
        done = edited_bytes(text.encode(), "fixture.py", chosen_together(fixes))
        assert done is not None and done.decode() != text
        text = done.decode()
    raise AssertionError(f"there is no end of it:\n{text}")


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize(("name", "keras"), cases())
def test_fixing_comes_to_an_end_and_says_nothing_new(name: str, keras: str, unsafe: bool) -> None:
    text = text_of(name)
    before = found_in(text, keras)
    after = in_rounds(text, keras, unsafe)
    ast.parse(after)
    allowed = set().union(*((LEFT if unsafe else REVEALED).get(finding.code, set()) for finding in before))
    new = codes(found_in(after, keras)) - codes(before)
    assert set(new) <= allowed, f"new: {new}\n{after}"
    assert comments(after) == comments(text)


def test_the_rules_say_which_kinds_of_fixes_they_have() -> None:
    seen: dict[str, set[str]] = {}
    for name, keras in cases():
        for finding in found_in(text_of(name), keras):
            if finding.fix is not None:
                seen.setdefault(finding.code, set()).add("safe" if finding.fix.safe else "unsafe")
    assert {rule.code: set(rule.fixes) for rule in all_rules() if rule.fixes} == seen
    assert len(seen) >= 45


@pytest.mark.parametrize(("name", "keras"), cases()[::7])
def test_line_ends_and_a_byte_order_mark_stay(name: str, keras: str) -> None:
    text = text_of(name)
    windows = text.replace("\n", "\r\n")
    plain, other = found_in(text, keras), found_in(windows, keras)
    assert [finding.fix for finding in other] == [finding.fix for finding in plain]
    for finding in plain:
        if finding.fix is not None:
            data = b"\xef\xbb\xbf" + windows.encode()
            done = edited_bytes(data, "fixture.py", [finding.fix.edits])
            assert done == b"\xef\xbb\xbf" + fixed(text, finding.fix).replace("\n", "\r\n").encode()
