"""Notebooks of any kind: cells that are no code, JSON that is no notebook, bytes that are no JSON."""

from __future__ import annotations

import json
import warnings
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzzing import Fuzz
from mutations import mutated, with_other_bytes
from test_fuzz_sources import checked_in_process

MAGICS = (
    *("%matplotlib inline\n", "!pip install x\n", "model.fit?\n", "%%bash\nls\n", "%%time\n", "%%timeit -n 1\nx = 1\n"),
    *(
        "%time x = f()\n",
        "x = !ls\n",
        "x = %who\n",
        "%",
        "%%",
        "!",
        "?",
        "??\n",
        "%%\n",
        "pip install x\n",
        "ls -l\\\n",
    ),
    *(
        "!ls \\\n  -l\n",
        "files = !ls \\\n",
        "# mpdoctor: ignore[MP101]\n",
        "%load_ext x\nimport y\n",
        "'''",
        "(\n",
        "\\",
    ),
)
VALUES = (
    None,
    True,
    0,
    -1,
    1e400,
    float("nan"),
    10**400,
    "",
    "code",
    "markdown",
    "raw",
    "é\ud800",
    [],
    {},
    [[]],
    [None],
)
LANGUAGES = ("python", "ipython", "Python3", "julia", "R", "", "é", 3, None, ["python"])


def a_cell(random: Random, text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    for _ in range(random.choice((0, 0, 1, 3))):
        lines.insert(random.randrange(len(lines) + 1), random.choice(MAGICS))
    source: object = random.choice((lines, "".join(lines), [line.rstrip("\n") for line in lines]))
    return {"cell_type": random.choice(("code", "code", "code", "markdown", "raw")), random.choice(SOURCES): source}


SOURCES = ("source", "source", "source", "source", "input")


def a_notebook(random: Random) -> bytes:
    lines = mutated(random).decode(errors="replace").splitlines(keepends=True)
    cuts = sorted(random.randrange(len(lines) + 1) for _ in range(random.randrange(5)))
    pieces = [lines[start:end] for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    cells: Any = [a_cell(random, "".join(piece)) for piece in pieces]
    language = random.choice(LANGUAGES) if random.random() < 0.2 else "python"
    notebook: Any = {
        "cells": cells,
        "metadata": {"language_info": {"name": language}, "kernelspec": {"language": language}},
        "nbformat": 4,
    }
    if random.random() < 0.2:  # as version 3 had them
        notebook = {"worksheets": [{"cells": notebook.pop("cells")}], **notebook}
    for _ in range(random.choice((0, 0, 1, 2, 5))):
        notebook = with_other_value(random, notebook)
    text = json.dumps(notebook, ensure_ascii=random.random() < 0.5, indent=random.choice((None, 1)))
    data = text.encode(random.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16")), errors="surrogatepass")
    return with_other_bytes(random, data) if random.random() < 0.2 else data


def with_other_value(random: Random, value: Any) -> Any:
    """The same, with another value somewhere in it."""
    keys = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    if not keys or random.random() < 0.2:
        return random.choice(
            (*deepcopy(VALUES), value, value, [value], {"x": value}, json.loads("[" * 500 + "]" * 500))
        )
    key = random.choice(keys)
    if random.random() < 0.1:
        del value[key]
    else:
        value[key] = with_other_value(random, value[key])
    return value


def a_check(folder: Path, random: Random) -> None:
    path = folder / "train.ipynb"
    path.write_bytes(a_notebook(random))
    checked_in_process(random, random.choice((path, folder)))


@pytest.mark.fuzz
def test_no_notebook_breaks_a_check(fuzz: Fuzz, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fuzz("notebooks", partial(a_check, tmp_path))
