"""The HTML report: read by a strict parser, and opened in a real browser."""

from __future__ import annotations

import itertools
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

from mpdoctor.facts.training import StepFacts, TensorFacts
from mpdoctor.finding import Diagnosis, Probe, Verdict
from mpdoctor.reporters import html
from mpdoctor.reporters.html.plot import HEIGHT, WIDTH, bars_from_frames, course_of_loss, course_of_scale, runs
from mpdoctor.reporters.printable import one_line
from mpdoctor.reporters.text.plot import rows_from_scales, sparkline

QUICK = [Phase.explicit, Phase.reuse, Phase.generate]  # to shrink a diagnosis takes minutes
EVERY = [*samples.SAMPLES.values(), samples.hostile]
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
        for reference in (*(element.get("aria-labelledby") or "").split(), (element.get("href") or "#main")[1:]):
            assert reference in ids
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
    some = [5.0 if number is None else abs(number) for number in numbers]
    frames = [TensorFacts("a", "A", "float16", (1,), number, number, number, number, 0.0) for number in some]
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
@pytest.mark.parametrize("sample", [samples.collapsing, samples.hostile, samples.what_if, samples.many_layers])
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


@needs_browser
def test_without_scripts_nothing_is_missing(browser: Browser, tmp_path: Path) -> None:
    file = page(tmp_path, samples.many_layers)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(file)
        assert browser.said() == []
        assert browser.run("document.querySelectorAll('input').length") == 0
        rows = "document.querySelectorAll('.searchable tbody tr').length"
        assert browser.run(rows) == 22
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


@needs_browser
def test_it_is_walked_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, samples.collapsing))
    reached = []
    for _ in range(12):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(browser.run("(document.activeElement.getAttribute('href') || document.activeElement.tagName)"))
    assert reached[:5] == ["#main", "#findings", "#training", "#layers", "#environment"]
    assert "SUMMARY" in reached


def test_every_verdict_has_a_page() -> None:
    for verdict in Verdict:
        probe = Probe(samples.training(samples.good_steps(3)), verdict, "why it is so")
        assert verdict.value in texts(parsed(html.render(samples.diagnosis(probes=(probe,)))))
