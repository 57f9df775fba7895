"""Saved diagnoses, damaged at random: each is refused in one sentence, or shown in every format, in a report that its
own readers read, without anything hidden in it."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import jsonschema
import pytest
import samples
from fuzzing import Fuzz
from markdown_it import MarkdownIt
from test_hostile_diagnoses import COMMANDS, CONTROL, HIDDEN, crafted

from mpdoctor.cli import main
from mpdoctor.cli.output import Output, OutputFormat, put_out
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.json.saved_diagnosis import NotADiagnosis, diagnosis_from_json

SCHEMAS = Path(__file__).parents[1] / "support" / "schemas"
WHOLE = [json_reporter.render(make()) for make in samples.SAMPLES.values()]
WHOLE += [json_reporter.render(crafted("crafted")), json_reporter.render(samples.hostile())]
TEXTS = ["", " ", "\n", CONTROL, COMMANDS, "\ud800", "]]>", "<script>", "{{ 7 }}", "```\n::error::", "%0A", "[/b][red]",
         "x" * 5000, "é 数\u202e🧪", "a/b\\c", "https://u:p@ss@h/?sig=1", "api_key='x'", "nan", "MP201", "done", "\x00",
         "`a` " * 900, "| a |\n| - |", "&#1;&lt;", "://" * 300]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**300, -(10**30), 5e-324, 1e308, -1e308,
           1.7976931348623157e308, 2.2e-308, 0.5, -0.0, "nan", "inf", "-inf", float("nan"), float("inf"), 1e-45,
           65504]  # fmt: skip


def odd(rng: random.Random) -> Any:
    """A value of any kind."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(TEXTS)
    if kind in (1, 2):
        return rng.choice(NUMBERS)
    if kind == 3:
        return json.loads("[" * (deep := rng.choice([3, 40, 60, 400])) + "]" * deep)
    if kind == 4:
        return functools.reduce(lambda inner, _: {"layers": inner}, range(rng.choice([2, 30, 300])), rng.choice(TEXTS))
    return rng.choice([None, True, False, [], {}, [None], {"": ""}, [[]], ["a", 1], {"a": [{}]}])


def places(told: Any) -> list[tuple[Any, Any]]:
    """Every container and key in some JSON."""
    found, left = [], [told]
    while left:
        here = left.pop()
        keys = here if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
        found += [(here, key) for key in keys]
        left += [here[key] for key in keys]
    return found


def damage(told: Any, rng: random.Random) -> None:
    everywhere = places(told)
    if not everywhere:
        return
    # a diagnosis is mostly steps and layers: its few other places are as likely
    shallow = [place for place in everywhere if isinstance(place[0], dict)]
    around, key = rng.choice(shallow if shallow and rng.random() < 0.7 else everywhere)
    value = around[key]
    if rng.random() < 0.6 and value not in (None, {}, []):
        around[key] = another_of_its_kind(value, rng)
        return
    kind = rng.randrange(8)
    if kind == 0:
        del around[key]
    elif kind == 2 and isinstance(value, dict):
        around[key] = {**value, rng.choice(TEXTS): odd(rng)}
    elif kind == 3:
        around[key] = rng.choice(everywhere)[0]
        if around[key] is around or not _is_finite(told):
            around[key] = None
    else:
        around[key] = odd(rng)


def another_of_its_kind(value: Any, rng: random.Random) -> Any:
    """What may still be a diagnosis."""
    if isinstance(value, str):
        return rng.choice([value + rng.choice(TEXTS), rng.choice(TEXTS) + value, rng.choice(TEXTS)])
    if isinstance(value, list):
        return rng.choice([value * rng.choice([2, 5, 60]), value[::-1], value[: rng.randrange(len(value))]])
    if isinstance(value, dict):
        return {key: value[key] for key in rng.sample(list(value), rng.randint(0, len(value)))}
    if isinstance(value, bool):
        return not value
    same = [number for number in NUMBERS if type(number) is type(value)]
    return rng.choice(same)


def _is_finite(told: Any) -> bool:
    """Whether nothing in it holds itself, and there is not too much of it."""
    try:
        return len(json.dumps(told)) < 2_000_000
    except (ValueError, RecursionError):
        return False


def damaged(rng: random.Random) -> bytes:
    told = json.loads(rng.choice(WHOLE[:-1] if rng.random() < 0.9 else WHOLE))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        damage(told, rng)
    text = bytearray(json.dumps(told).encode())
    if rng.random() < 0.05:
        for _ in range(rng.choice([1, 3, 20])):
            text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text[: rng.randrange(len(text))] if rng.random() < 0.02 else text)


@functools.cache
def validator(name: str, kind: Any) -> Any:
    return kind(json.loads((SCHEMAS / name).read_text(encoding="utf-8")))


def read(form: OutputFormat, report: str) -> None:
    """Raises where a reader of this format would stumble."""
    if form in (OutputFormat.svg, OutputFormat.junit):
        ElementTree.fromstring(report)
    elif form is OutputFormat.html:
        html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(report)
    elif form is OutputFormat.sarif:
        validator("sarif-2.1.0-rtm.4.json", jsonschema.Draft4Validator).validate(json.loads(report))
    elif form is OutputFormat.gitlab:
        validator("gitlab-code-quality.json", jsonschema.Draft202012Validator).validate(json.loads(report))
    elif form is OutputFormat.markdown:
        html = [token for token in MarkdownIt("commonmark", {"html": True}).parse(report) if token.type == "html_block"]
        assert all(token.content.startswith(("<details>", "</details>")) for token in html)
    elif form is OutputFormat.json:
        assert json.loads(json_reporter.render(diagnosis_from_json(report))) == json.loads(report)


def shown(form: OutputFormat, diagnosis: Any) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = put_out(diagnosis, Output(form))
    assert "reporter broke" not in err.getvalue(), err.getvalue()[-3000:]
    assert status == diagnosis.exit_code
    return out.getvalue()


def refused(text: bytes, folder: Path) -> None:
    """By `mpdoctor show`, in one sentence and with status 2."""
    file = folder / "saved.json"
    file.write_bytes(text)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(["show", str(file)])
    assert (end.value.code, out.getvalue()) == (2, "")
    (line,) = err.getvalue().splitlines()
    assert line.startswith("mpdoctor: ") and not HIDDEN.search(line) and len(line) < 700


@pytest.mark.fuzz
def test_damaged_diagnoses(fuzz: Fuzz, tmp_path: Path) -> None:
    counts = {"refused": 0, "shown": 0}

    def case(rng: random.Random) -> None:
        text = damaged(rng)
        try:
            diagnosis = diagnosis_from_json(text)
        except NotADiagnosis:
            refused(text, tmp_path)
            counts["refused"] += 1
            return
        counts["shown"] += 1
        for form in OutputFormat:
            report = shown(form, diagnosis)
            assert not HIDDEN.search(report), form
            # the readers of these take a second
            if form not in (OutputFormat.html, OutputFormat.sarif) or rng.random() < 0.2:
                read(form, report)

    fuzz("diagnoses", case)
    assert min(counts.values()) > 0 or sum(counts.values()) < 20, counts
    print(f"diagnoses: {counts}")
