"""The contract that every rule keeps: files, documentation and fixtures agree, so that nothing can be
forgotten."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from judging import KERASES, expected_in, facts_of, findings_in, lines_and_codes
from marks import marks_from_source

from mpdoctor.rules import registry
from mpdoctor.rules.registry import Rule, all_rules

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "rules"
RULE_FILES = sorted((ROOT / "mpdoctor" / "rules").glob("*/mp[0-9]*.py"))
FIXTURE_FILES = sorted(FIXTURES.glob("mp*/*.py"))
SOURCE_RULES = [rule for rule in all_rules() if {"in_source", "in_suppression"} & set(rule.looks)]
SECTIONS = ("Why it matters", "Flagged", "Fixed", "Versions", "Where users met it")
FEWEST_FLAGGED, FEWEST_CLEAN = 3, 5


def code_of(path: Path) -> str:
    return path.name[:5].upper()


def code_blocks(rule: Rule, section: str) -> list[str]:
    content = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", rule.docs, re.S | re.M)
    return re.findall(r"^```python\n(.*?)^```", content[1], re.S | re.M) if content else []


def keras_for(rule: Rule, example: str) -> str:
    """The Keras that an example says it is written for, else the newest that its rule speaks about."""
    written_for = marks_from_source(example).settings.get(("keras", ""))
    if written_for is not None:
        return written_for.partition(",")[0]
    return "3" if "3" in rule.keras else "tf_keras"


def test_families_that_look_at_runs_have_nothing_for_source() -> None:
    looking = {rule.family for rule in all_rules() if "source" in rule.stages or "in_suppression" in rule.looks}
    assert {rule.family for rule in all_rules()} - looking == set(registry.LOOKING_AT_RUNS)


def test_rules_of_runs_alone_have_nothing_for_source() -> None:
    others = [rule for rule in all_rules() if rule.family not in registry.LOOKING_AT_RUNS]
    alone = {rule.code for rule in others if not {"in_source", "in_suppression"} & rule.looks.keys()}
    assert alone == {code.upper() for code in registry.OF_RUNS_ALONE}


def test_every_rule_file_is_registered() -> None:
    assert [code_of(path) for path in sorted(RULE_FILES, key=code_of)] == [rule.code for rule in all_rules()]


@pytest.mark.parametrize("path", RULE_FILES, ids=code_of)
def test_the_file_name_says_code_and_name(path: Path) -> None:
    assert re.fullmatch(r"mp\d{3}_[a-z0-9]+(_[a-z0-9]+)*", path.stem)
    rule = registry.rule_by_code_or_name(code_of(path))
    assert rule is not None
    assert rule.name == path.stem[6:].replace("_", "-")
    assert registry.rule_by_code_or_name(rule.name) is rule


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_the_documentation_is_complete(rule: Rule) -> None:
    assert re.findall(r"^## (.+)$", rule.docs, re.M) == list(SECTIONS)
    assert re.fullmatch(r"[^.]+(\.[^. ][^.]*)*\.", rule.summary), "the first paragraph is one sentence"
    assert len(code_blocks(rule, "Flagged")) == 1
    assert len(code_blocks(rule, "Fixed")) == 1
    assert "Keras" in rule.docs.partition("## Versions")[2] or "All" in rule.docs.partition("## Versions")[2]


@pytest.mark.parametrize("rule", SOURCE_RULES, ids=lambda rule: rule.code)
def test_the_examples_of_the_documentation_hold(rule: Rule) -> None:
    flagged, fixed = code_blocks(rule, "Flagged")[0], code_blocks(rule, "Fixed")[0]
    keras = keras_for(rule, flagged)
    assert {finding.code for finding in findings_in(facts_of(flagged, keras))} == {rule.code}
    assert findings_in(facts_of(fixed, keras)) == []


@pytest.mark.parametrize("path", FIXTURE_FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_fixture_gives_exactly_its_marks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for keras in marks_from_source(text).keras:
        findings = findings_in(facts_of(text, keras, path.name, path.parent))
        assert lines_and_codes(findings) == expected_in(text, keras), (keras, [finding.message for finding in findings])


@pytest.mark.parametrize("rule", SOURCE_RULES, ids=lambda rule: rule.code)
def test_every_source_rule_has_fixtures(rule: Rule) -> None:
    files = sorted((FIXTURES / rule.code.lower()).glob("*.py"))
    flagged = [path for path in files if path.name.startswith("flagged")]
    clean = [path for path in files if path.name.startswith("clean")]
    assert len(flagged) >= FEWEST_FLAGGED
    assert len(clean) >= FEWEST_CLEAN
    assert set(files) == {*flagged, *clean}
    for path in flagged:
        text = path.read_text(encoding="utf-8")
        marked = {code for keras in marks_from_source(text).keras for _, code in expected_in(text, keras)}
        assert rule.code in marked, path
    for path in clean:
        text = path.read_text(encoding="utf-8")
        assert not any(code == rule.code for keras in KERASES for _, code in expected_in(text, keras)), path


@pytest.mark.parametrize("path", FIXTURE_FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_fixture_belongs_to_a_rule_and_names_known_kerases(path: Path) -> None:
    assert path.parent.name.upper() in {rule.code for rule in SOURCE_RULES}
    assert "todo" not in path.stem, "named after what it shows"
    assert set(marks_from_source(path.read_text(encoding="utf-8")).keras) <= set(KERASES)


@pytest.mark.parametrize("path", RULE_FILES, ids=code_of)
def test_a_rule_file_makes_no_class_and_compiles_no_pattern(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "compile"]


def forget_rules() -> None:
    for known in (registry.all_rules, registry._files):
        known.cache_clear()


def test_a_rule_file_that_registers_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "family" / "mp999_says_nothing.py"
    path.parent.mkdir()
    (path.parent / "__init__.py").write_text("")
    path.write_text('"""It has documentation and looks at nothing."""\n')
    monkeypatch.setattr(registry.rules, "__path__", [*registry.rules.__path__, str(tmp_path)])
    forget_rules()
    try:
        with pytest.raises(AttributeError, match="mp999_says_nothing"):
            registry.all_rules()
    finally:
        monkeypatch.undo()
        forget_rules()
        for name in [name for name in sys.modules if name.startswith("mpdoctor.rules.family")]:
            del sys.modules[name]


def test_two_files_with_one_code_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "family" / "mp101_another_name.py"
    path.parent.mkdir()
    (path.parent / "__init__.py").write_text("")
    path.write_text('"""Docs."""\nSEVERITY = None\ndef in_source(facts): return []\n')
    monkeypatch.setattr(registry.rules, "__path__", [*registry.rules.__path__, str(tmp_path)])
    forget_rules()
    try:
        with pytest.raises(ImportError, match="MP101"):
            registry.all_rules()
    finally:
        monkeypatch.undo()
        forget_rules()
        for name in [name for name in sys.modules if name.startswith("mpdoctor.rules.family")]:
            del sys.modules[name]
