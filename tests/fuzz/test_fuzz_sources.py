"""Programs of any kind: none breaks the source stage, a rule or a reporter, whatever stands in it."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from random import Random

import pytest
from fuzzing import Fuzz
from judging import KERASES
from mutations import mutated

from mpdoctor.diagnosis import diagnose
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.reporters import concise, github, gitlab, html, json, junit, markdown, sarif, svg, terminal
from mpdoctor.settings.options import Settings

RENDERED = (concise.render, github.render, gitlab.render, json.render, junit.render, sarif.render)
RENDERED_SELDOM = (html.render, markdown.render, svg.render, terminal.render)
SEVERAL = ("a.py", "b.py", "pkg/__init__.py", "pkg/c.py")
TARGETS = (*["alone/a.py"] * 3, "several", "several/a.py", "several/pkg")
IMPORTS = ("import b\n", "from b import *\n", "import pkg.c as c\n", "from pkg import c, d\n", "from .b import x\n", "")


def a_program(folder: Path, random: Random) -> None:
    target = folder / random.choice(
        ("alone/a.py", "alone/a.py", "alone/a.py", "several", "several/a.py", "several/pkg")
    )
    is_alone = target.parent.name == "alone"
    for path in [target] if is_alone else [folder / "several" / name for name in SEVERAL]:
        imports = "" if is_alone else random.choice(IMPORTS) + random.choice(IMPORTS)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(imports.encode() + mutated(random))
    checked_in_process(random, target)


def checked_in_process(random: Random, target: Path) -> None:
    """By one Keras or another, and shown in one format or another."""
    settings = Settings(
        (target_from_text(str(target)),),
        static=True,
        keras=random.choice((None, *KERASES.values())),
        assume_mixed=random.random() < 0.5,
        cache=False,
    )
    diagnosis = diagnose(settings, SilentProgress())
    assert diagnosis.crashed == ()
    assert diagnosis.exit_code in (0, 1, 2)
    assert random.choice(RENDERED if random.random() < 0.95 else RENDERED_SELDOM)(diagnosis) is not None


@pytest.mark.fuzz
def test_no_program_breaks_a_check(fuzz: Fuzz, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seeds' own syntax, as they are parsed to be changed
        fuzz("sources", partial(a_program, tmp_path))
