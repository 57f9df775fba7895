"""The HTML report: read by a strict parser, and opened in a real browser."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest
import samples
from browser import MISSING, Browser
from generated import diagnoses
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mpdoctor.facts.location import Location
from mpdoctor.facts.machine.environment import RUN_AS
from mpdoctor.facts.training import NamedOperand, StepFacts, TensorFacts
from mpdoctor.finding import Diagnosis, Probe, Verdict
from mpdoctor.reporters import html, markdown
from mpdoctor.reporters.html.colours import coloured
from mpdoctor.reporters.html.grouping import groups_from_findings
from mpdoctor.reporters.html.plot import HEIGHT, WIDTH, bars_from_frames, course_of_loss, course_of_scale, runs
from mpdoctor.reporters.printable import one_line
from mpdoctor.reporters.reading_order import weightiest_first
from mpdoctor.reporters.text.checklist import checklist_from_diagnosis
from mpdoctor.reporters.text.excerpts import ExcerptLine
from mpdoctor.reporters.text.operations import numbers_at
from mpdoctor.reporters.text.plot import rows_from_scales, sparkline
from mpdoctor.reporters.text.style import Style

QUICK = [Phase.explicit, Phase.reuse, Phase.generate]  # to shrink a diagnosis takes minutes
EVERY = [*samples.SAMPLES.values(), samples.hostile, samples.many_findings, samples.broken_operation]
needs_browser = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def parsed(page: str) -> Element:
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def texts(element: Element) -> str:
    return "".join(element.itertext())


# --- the markup -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sample", EVERY)
def test_the_page_is_right_html(sample: Any) -> None:
    root = parsed(html.render(sample()))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        for reference in (element.get("aria-labelledby") or "").split():
            assert reference in ids
        address = element.get("href") or "#main"
        assert address[1:] in ids if address.startswith("#") else address.startswith("https://example.org/")
        assert not [name for name in element.attrib if name.startswith("on") or name in ("style", "src")]
    assert len(list(root.iter("script"))) == 1
    assert not [tag for tag in ("img", "iframe", "object", "link", "a[target]") if list(root.iter(tag))]


@pytest.mark.parametrize("sample", EVERY)
def test_the_page_can_be_heard(sample: Any) -> None:
    """Landmarks, headings in order, headers of tables, pictures with words."""
    root = parsed(html.render(sample()))
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(list(root.iter(landmark))) == 1
    assert root.get("lang") == "en"
    levels = [int(element.tag[1]) for element in root.iter() if re.fullmatch("h[1-6]", str(element.tag))]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for table in root.iter("table"):
        assert all(header.get("scope") in ("col", "row") for header in table.iter("th"))
        assert all(texts(header).strip() or header.get("aria-label") for header in table.iterfind(".//thead//th"))
        widths = {len(list(row)) for row in table.iter("tr")}
        assert len(widths) == 1
    for picture in root.iter("svg"):
        assert picture.get("aria-hidden") == "true" or (picture.get("role") == "img" and picture.get("aria-labelledby"))


def test_the_page_holds_everything() -> None:
    root = parsed(html.render(samples.collapsing()))
    told = texts(root)
    for text in (
        "2 errors, 1 warning in train.py: the loss scale collapses to 5.82e-11",
        "812.5² is beyond 65504",
        "return tf.square(x)",
        'Square(dtype="float32")',
        "32768 → 5.82e-11. Skipped: all 50 steps; inf or NaN first in the gradient of dense/kernel.",
        "With a floor the scale would have stayed at 1.",
        "mpdoctor check train.py",
    ):
        assert text in told
    (marked,) = [texts(mark) for mark in root.iter("mark") if "square" in texts(mark)]
    assert marked == "tf.square(x)"
    rows = [[texts(cell) for cell in row] for row in root.iter("tr")]
    assert ["dense_1", "Dense", "mixed_float16", "float16", "float32", "float16", "MP201"] in rows
    assert ["square", "Square", "float16", "inf or NaN", "", "0.1", "20%", "0%", "40%"] in rows


def test_hostile_names_are_text() -> None:
    root = parsed(html.render(samples.hostile()))
    cells = [texts(cell) for cell in root.iter("th")]
    assert one_line(samples.NASTY)[:100] in "".join(cells)
    assert "{{ 7 * 7 }}" in texts(root)


def test_a_code_leads_to_its_page_where_there_is_one() -> None:
    told = samples.collapsing()
    pages = {
        "MP904": "https://example.org/a/",
        "MP201": "javascript:alert(1)",
        "MP903": 'https://example.org/" onclick="x',
    }
    rules = tuple(dataclasses.replace(rule, url=pages[rule.code]) for rule in told.rules)
    root = parsed(html.render(dataclasses.replace(told, rules=rules)))
    links = {texts(link): link.get("href") for link in root.iter("a") if not (link.get("href") or "#").startswith("#")}
    assert links == {"MP904": "https://example.org/a/"}
    titles = [texts(title).split()[1] for title in root.iter("h3") if title.get("class") == "title"]
    assert titles == ["MP904", "MP903", "MP201"]


def test_many_findings_are_grouped_by_file() -> None:
    """In the order of the findings; what knows no line comes last, and nothing is left out."""
    root = parsed(html.render(samples.many_findings()))
    groups = [group for group in root.iter("div") if group.get("class") == "group"]
    assert [texts(next(group.iter("h3"))) for group in groups] == [
        "models/encoder.py 9 findings",
        "models/decoder.py 8 findings",
        "train.py 4 findings",
        "No line is known 2 findings",
    ]
    assert [len(list(group.iter("article"))) for group in groups] == [9, 8, 4, 2]
    assert not [
        group for group in parsed(html.render(samples.collapsing())).iter("div") if group.get("class") == "group"
    ]


@pytest.mark.parametrize(("number", "groups"), [(0, 0), (10, 0), (11, 1)])
def test_ten_findings_can_be_overlooked(number: int, groups: int) -> None:
    assert len(groups_from_findings([samples.SHADOWED] * number)) == groups


def test_a_finding_holds_its_ticket() -> None:
    """Just what the Markdown reporter says of it."""
    told = weightiest_first(samples.collapsing())
    written = markdown.render(told)
    articles = [article for article in parsed(html.render(told)).iter("article") if article.get("data-markdown")]
    assert len(articles) == 3
    for article, finding in zip(articles, told.findings, strict=True):
        ticket = article.get("data-markdown") or ""
        assert ticket in written and ticket.startswith(f"#### {finding.severity.value} {finding.code}")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (["def f(x):"], ["keyword:def", "name:f"]),
        (["x = 'a' + 1.5  # so"], ["string:'a'", "number:1.5", "comment:# so"]),
        (['"""A def', "that for ends", '"""', "for x in y:"], ["string:that for ends", "keyword:for", "keyword:in"]),
        (["    Dense(10),", "])"], ["number:10"]),
        (["\u2026 = ?? \\ `$` 数据 🧪"], []),
        (["%matplotlib inline", "return True"], ["keyword:return", "keyword:True"]),
    ],
)
def test_words_of_python_have_colours(lines: list[str], kinds: list[str]) -> None:
    """Whatever is marked of a line; and the text stays, character for character."""
    for start, end in itertools.combinations((0, 2, 5, 240), 2):
        shown = [ExcerptLine(n, line[:start], line[start:end], line[end:]) for n, line in enumerate(lines)]
        told = coloured(shown)
        for line, as_it_was in zip(told, shown, strict=True):
            parts = ("".join(text for text, _ in tokens) for tokens in (line.before, line.marked, line.after))
            assert tuple(parts) == (as_it_was.before, as_it_was.marked, as_it_was.after)
    whole = coloured([ExcerptLine(n, line) for n, line in enumerate(lines)])
    assert set(kinds) <= {f"{kind}:{text}" for line in whole for text, kind in line.before if kind}


def test_the_line_that_broke_says_what_went_in() -> None:
    root = parsed(html.render(samples.broken_operation()))
    said = [texts(line) for line in root.iter("p")]
    assert "In line 9: Square in float16: numbers up to 812 go in, inf comes out, 660,156 in float32" in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"in_float32": None}, "Square in float16: numbers up to 812 go in, inf comes out"),
        (
            {"operands": (NamedOperand("h", 812.0),)},
            "Square in float16: largest |h| 812 goes in, inf comes out, 660,156 in float32",
        ),
        (
            {"operands": (NamedOperand("h", 812.0), NamedOperand("self.w", 0.5)), "in_float32": None},
            "Square in float16: largest |h| 812, |self.w| 0.5 go in, inf comes out",
        ),
        ({"in_float32": math.inf}, "Square in float16: numbers up to 812 go in, inf comes out"),
        (
            {"name": "Log", "holds_zero": True, "result": "-inf", "in_float32": None},
            "Log in float16: numbers up to 812, 0 among them, go in, -inf comes out",
        ),
        (
            {"name": "Log", "holds_zero": True, "largest": 0.0, "result": "-inf", "in_float32": None},
            "Log in float16: 0 goes in, -inf comes out",
        ),
        ({"given": "data"}, ""),
        ({"largest": math.inf}, ""),
        ({"location": None}, ""),
        ({"location": Location("train.py", 10)}, ""),
        ({"location": Location("model.py", 9)}, ""),
        ({"location": Location("train.py", 9, cell=2)}, ""),
    ],
)
def test_numbers_stand_at_the_line_of_their_operation(changes: dict[str, Any], says: str) -> None:
    told = samples.broken_operation()
    training = told.probes[0].training
    operation = dataclasses.replace(training.culprit.operation, **changes)  # type: ignore[union-attr, type-var]
    culprit = dataclasses.replace(training.culprit, operation=operation)  # type: ignore[type-var]
    of_loss = dataclasses.replace(training, culprit=None, loss_culprit=operation)
    for facts in (dataclasses.replace(training, culprit=culprit), of_loss):
        changed = dataclasses.replace(told, probes=(dataclasses.replace(told.probes[0], training=facts),))
        assert numbers_at(told.findings[0], changed, Style()) == says
        in_source = dataclasses.replace(told.findings[0], stage="source")
        assert numbers_at(in_source, changed, Style()) == ""
        other_model = dataclasses.replace(told.findings[0], model="train.py#2")
        assert numbers_at(other_model, changed, Style()) == ""


@given(diagnoses())
@settings(max_examples=25, suppress_health_check=list(HealthCheck), phases=QUICK)
def test_any_diagnosis_is_right_html(diagnosis: Diagnosis) -> None:
    root = parsed(html.render(diagnosis))
    assert len(list(root.iter("script"))) == 1
    assert len(list(root.iter("article"))) == len(diagnosis.findings) + len(diagnosis.probes)


# --- the pictures ---------------------------------------------------------------------------------------------------
def steps(*scales: float | None) -> tuple[StepFacts, ...]:
    return tuple(StepFacts(scale, True, None, scale) for scale in scales)


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.split())]


EXTREME = [5e-324, -5e-324, 1e-310, 2.0**-1074, 1.0, -1e308, 1e308, sys.float_info.max, -sys.float_info.max, 0.0]


@given(st.lists(st.none() | st.sampled_from(EXTREME) | st.floats(), min_size=1, max_size=6))
def test_any_number_can_be_drawn(numbers: list[float | None]) -> None:
    """Within the picture, and every tick is a number."""
    magnitudes = [5.0 if number is None else abs(number) for number in numbers]
    frames = [TensorFacts("a", "A", "float16", (1,), number, number, number, number, 0.0) for number in magnitudes]
    bars = bars_from_frames(frames)
    assert all(0 <= size <= WIDTH for bar in bars for size in (bar.width, bar.limit))
    for course in (course_of_scale(steps(*numbers)), course_of_loss(steps(*numbers))):
        if course is not None:
            assert all(0 <= y <= HEIGHT and 0 <= x <= WIDTH for line in course.lines for x, y in points(line))
            assert all(0 <= tick.y <= HEIGHT and tick.label.lstrip("-")[0].isdigit() for tick in course.ticks)
    for blocks in (True, False):
        spark = sparkline(numbers, 4, blocks)
        assert len(spark) in (0, min(len(numbers), 4))
        rows, _ = rows_from_scales(numbers, blocks)
        assert {len(row) for row in rows} == {len(numbers)}


def test_a_scale_is_drawn_in_powers_of_two() -> None:
    course = course_of_scale(steps(8.0, 4.0, 2.0, 1.0))
    assert course is not None
    heights = [y for _, y in points(course.lines[0])]
    assert len({round(after - before, 1) for before, after in itertools.pairwise(heights)}) == 1
    assert [tick.label for tick in course.ticks] == ["1", "2", "4", "8"]


@pytest.mark.parametrize("course_from_steps", [course_of_scale, course_of_loss])
@pytest.mark.parametrize(
    "scales",
    [
        [1.0],
        [5e-324, 1.7e308],
        [0.0, 1.0, float("inf")],
        [float("nan"), 2.0, None, 4.0, float("nan")],
        [2.0] * 10_000,
        [3.4e38, 1e-45],
        [-1.0, 1.0],
    ],
)
def test_no_picture_leaves_its_frame(course_from_steps: Any, scales: list[float | None]) -> None:
    course = course_from_steps(steps(*scales))
    if course is None:
        return
    for x, y in itertools.chain.from_iterable(map(points, (*course.lines, *course.areas))):
        assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT
    assert all(run.x >= 0 and run.x + run.width <= WIDTH + 0.1 for run in course.gone)
    assert 2 <= len(course.ticks) <= 7
    gaps = [abs(a.y - b.y) for a, b in itertools.pairwise(course.ticks)]
    assert min(gaps) >= 14  # the labels do not touch


def test_what_is_no_number_is_not_drawn() -> None:
    assert course_of_scale(steps(None, float("nan"))) is None
    assert course_of_loss(()) is None
    assert [(run.x, run.width) for run in runs([True, False, False, True])] == [(0, 250), (750, 250)]
    (bar,) = bars_from_frames([samples.collapsing().probes[0].training.culprit.overflow])  # type: ignore[union-attr]
    assert (bar.width, bar.is_finite) == (WIDTH, False)


# --- in a browser ---------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def page(folder: Path, sample: Any) -> Path:
    file = folder / "report.html"
    file.write_text(html.render(sample()), encoding="utf-8")
    return file


@needs_browser
@pytest.mark.parametrize("sample", EVERY)
def test_it_opens_and_asks_for_nothing(browser: Browser, tmp_path: Path, sample: Any) -> None:
    file = page(tmp_path, sample)
    for width, dark in ((1100, False), (400, True), (320, False)):
        browser.open(file, width=width, dark=dark)
        assert browser.said() == []
        assert browser.asked_for() == [file.as_uri()]
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.scripts.length") == 1
    browser.open(file, width=794, media="print")
    assert browser.run("document.documentElement.scrollWidth") <= 794


# Every text against what lies behind it; WCAG's formula
CONTRASTS = """
(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const worst = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const color = numbers(element.closest("svg") ? style.fill : style.color);
    const [dark, bright] = [light(color), light(ground(element))].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) worst[element.tagName + "." + element.getAttribute("class")] = ratio;
  }
  return worst;
})()
"""


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "sample",
    [
        samples.collapsing,
        samples.many_layers,
        samples.hostile,
        samples.what_if,
        samples.many_findings,
        samples.broken_operation,
    ],
)
def test_every_text_stands_out(browser: Browser, tmp_path: Path, sample: Any, dark: bool) -> None:
    browser.open(page(tmp_path, sample), dark=dark)
    assert browser.run(CONTRASTS) == {}
    grounds = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall("[0-9]+", grounds))) < 300) is dark


@needs_browser
def test_the_measure_of_contrast_can_fail(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.collapsing))
    browser.run("document.documentElement.style.setProperty('--soft', '#999999')")
    assert "P.soft mono" in browser.run(CONTRASTS) and "text.null" in browser.run(CONTRASTS)


@needs_browser
def test_hostile_names_stay_text_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.hostile))
    assert browser.run("document.querySelectorAll('img, iframe, object, form, [onerror], [onclick]').length") == 0
    names = browser.run("Array.from(document.querySelectorAll('.searchable tbody th'), cell => cell.textContent)")
    assert any("[/b][red]<script>alert(1)</script>" in name for name in names)
    assert any("{{ 7 * 7 }}" in name for name in names)


@needs_browser
def test_the_layers_can_be_searched(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.many_layers))
    shown = "Array.from(document.querySelectorAll('.searchable tbody tr')).filter(row => row.offsetHeight).length"
    assert browser.run(shown) == 22
    search = """(() => {
      const field = document.querySelector('input[type=search]');
      field.value = %r;
      field.dispatchEvent(new Event('input'));
      return document.querySelector('output').textContent;
    })()"""
    assert browser.run(search % "float32 MULTI") == "1 of 22"
    assert browser.run(shown) == 1
    assert browser.run(search % "") == ""
    assert browser.run(shown) == 22


FINDINGS = "Array.from(document.querySelectorAll('.finding')).filter(finding => finding.offsetHeight).length"
GROUPS = "Array.from(document.querySelectorAll('.group')).filter(group => group.offsetHeight).length"


@needs_browser
def test_many_findings_can_be_filtered(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.many_findings))
    choose = """(([about, value]) => {
      const choice = Array.from(document.querySelectorAll('label'))
        .find(label => label.textContent.startsWith(about)).querySelector('select');
      choice.value = Array.from(choice.options, option => option.value).find(option => option.startsWith(value));
      choice.dispatchEvent(new Event('change'));
      return choice.closest('search').querySelector('output').textContent;
    })(%s)"""
    assert browser.run("Array.from(document.querySelectorAll('select')[0].options, one => one.text)") == [
        "all",
        "error (10)",
        "warning (7)",
        "info (6)",
    ]
    assert (browser.run(FINDINGS), browser.run(GROUPS)) == (23, 4)
    assert browser.run(choose % ["Severity", "error"]) == "10 of 23"
    assert browser.run(choose % ["Rule", "MP904"]) == "1 of 23"
    assert (browser.run(FINDINGS), browser.run(GROUPS)) == (1, 1)
    browser.run("document.body.insertAdjacentHTML('beforeend', '<a href=#finding-2>2</a>')")
    browser.run("document.querySelector('body > a:last-child').click()")
    assert (browser.run(FINDINGS), browser.run(GROUPS)) == (23, 4)
    assert browser.run("document.querySelector('.filterable output').textContent") == ""


CLIPBOARDS = {
    "clipboard": "copiedText = null; Object.defineProperty(navigator, 'clipboard',"
    " {value: {writeText: async (text) => { copiedText = text; }}, configurable: true})",
    "forbidden": "copiedText = null; Object.defineProperty(navigator, 'clipboard',"
    " {value: {writeText: async () => { throw new Error('no'); }}, configurable: true});"
    "document.execCommand = () => { copiedText = document.activeElement.value; return true; }",
    "none": "copiedText = null; Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true});"
    "document.execCommand = () => { copiedText = document.activeElement.value; return true; }",
}
PRESS = """(async () => {
  const button = document.querySelector('.finding > .copy');
  button.click();
  await new Promise((done) => setTimeout(done, 50));
  return [document.activeElement === button, button.textContent, document.querySelector('[role=status]').textContent];
})()"""


@needs_browser
@pytest.mark.parametrize("clipboard", CLIPBOARDS)
def test_a_finding_is_copied_as_markdown(browser: Browser, tmp_path: Path, clipboard: str) -> None:
    browser.open(page(tmp_path, samples.collapsing))
    browser.run(CLIPBOARDS[clipboard])
    assert browser.run(PRESS) == [True, "Copied", "Copied"]
    ticket = browser.run("copiedText")
    assert ticket.startswith("#### error MP904") and ticket in markdown.render(samples.collapsing())
    assert browser.run("document.querySelectorAll('textarea').length") == 0


@needs_browser
def test_what_cannot_be_copied_is_shown_to_be_copied_by_hand(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.collapsing))
    browser.run(CLIPBOARDS["none"] + "; document.execCommand = () => false")
    for _ in range(2):
        assert browser.run(PRESS) == [False, "Copy as Markdown", ""]
    assert browser.run("document.querySelectorAll('textarea').length") == 1
    assert browser.run("document.activeElement.value").startswith("#### error MP904")
    assert browser.run(CONTRASTS) == {}


@needs_browser
def test_prose_is_as_wide_as_its_card(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.collapsing), width=1280)
    left = "Array.from(document.querySelectorAll('.finding > p'), p => p.parentElement.clientWidth - p.offsetWidth)"
    assert max(browser.run(left)) <= 40  # what the card pads


@needs_browser
def test_without_scripts_nothing_is_missing(browser: Browser, tmp_path: Path) -> None:
    file, findings = page(tmp_path, samples.many_layers), tmp_path / "findings.html"
    findings.write_text(html.render(samples.many_findings()), encoding="utf-8")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(file)
        assert browser.said() == []
        assert browser.run("document.querySelectorAll('input').length") == 0
        rows = "document.querySelectorAll('.searchable tbody tr').length"
        assert browser.run(rows) == 22
        browser.open(findings)
        assert browser.run("document.querySelectorAll('select, button').length") == 0
        assert (browser.run(FINDINGS), browser.run(GROUPS)) == (23, 4)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


@needs_browser
def test_it_is_walked_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.collapsing))
    reached = []
    for _ in range(30):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(browser.run("(document.activeElement.getAttribute('href') || document.activeElement.tagName)"))
    assert reached[:5] == ["#main", "#findings", "#training", "#layers", "#environment"]
    assert "SUMMARY" in reached and "BUTTON" in reached
    assert "https://example.org/activation-overflows/" in reached
    browser.open(page(tmp_path, samples.many_findings))
    order = browser.run("Array.from(document.querySelectorAll('#findings select, #findings a'), one => one.tagName)")
    assert order[:3] == ["SELECT", "SELECT", "A"]


def test_every_verdict_has_a_page() -> None:
    for verdict in Verdict:
        probe = Probe(samples.training(samples.good_steps(3)), verdict, "why it is so")
        assert verdict.value in texts(parsed(html.render(samples.diagnosis(probes=(probe,)))))


def test_a_stage_that_saw_again_what_another_had_found_did_not_find_nothing() -> None:
    texts = {check.title: check.text for check in checklist_from_diagnosis(samples.one_error(), Style())}
    assert texts["Source"] == "1 error" and texts["Model"].endswith("nothing else found")
    texts = {check.title: check.text for check in checklist_from_diagnosis(samples.healthy(), Style())}
    assert texts["Model"].endswith("nothing found")


def test_the_line_below_the_first_shows_code_as_code() -> None:
    environment = {RUN_AS: "a script of its cells, without `%run <b>`"}
    assert "without <code>%run &lt;b&gt;</code>" in html.render(
        dataclasses.replace(samples.one_error(), environment=environment)
    )
