"""The pictures of reports in the README, and whether they still show what mpdoctor says."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import samples

from mpdoctor.reporters import svg
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.reporters.printable import one_line

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
AGAIN = "run `python docs/images/make.py`, or with --draw where only the look changed"
EVERY = [*samples.SAMPLES.values(), samples.hostile]


def make() -> Any:
    spec = importlib.util.spec_from_file_location("make", IMAGES / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = make().NAMES


def words(picture: str) -> str:
    """What can be read in it; how rich cuts it into pieces differs from version to version."""
    root = ElementTree.fromstring(picture)
    shown = (text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text"))
    return "".join("".join(shown).split())


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_not_stale(name: str) -> None:
    drawn = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert words(drawn) == words(make().picture(IMAGES / name)), AGAIN


@pytest.mark.parametrize("name", NAMES)
def test_what_was_found_is_of_the_script_that_stands_there(name: str) -> None:
    folder = IMAGES / name
    lines = (folder / "train.py").read_text(encoding="utf-8").split("\n")
    for finding in json.loads((folder / "diagnosis.json").read_bytes())["findings"]:
        excerpt = finding["excerpt"]
        first = excerpt["first_line"] - 1
        assert lines[first : first + len(excerpt["lines"])] == excerpt["lines"], AGAIN


def test_there_is_one_healthy_one_with_a_defect_and_one_that_collapses() -> None:
    found = {
        name: diagnosis_from_json((IMAGES / name / "diagnosis.json").read_bytes()) for name in NAMES
    }  # fmt: skip
    assert [len(found[name].findings) > 0 for name in NAMES] == [False, True, True]
    assert [found[name].probes[0].verdict.value for name in NAMES] == ["healthy", "healthy", "collapsing"]


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_shows_it(name: str) -> None:
    assert f"](docs/images/{name}.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("sample", EVERY)
def test_a_picture_is_right_xml_and_asks_for_nothing(sample: Any) -> None:
    picture = svg.render(sample())
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "img"
    assert "url(http" not in picture and "@import" not in picture and "@font-face" not in picture
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg", "style", "defs", "clipPath", "rect", "g", "text", "circle",
    }  # fmt: skip


def test_a_picture_shows_hostile_names_as_they_are() -> None:
    assert "[/b][red]<script>alert(1)" in words(svg.render(samples.hostile()))
    name = "".join(one_line(samples.NASTY)[:30].split())
    assert name in words(svg.render(samples.hostile()))
