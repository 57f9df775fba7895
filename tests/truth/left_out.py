"""Whether an edit that `mpdoctor mend` made could be left out: the mended script without it, read, trained in plain
Keras and checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from written_edits import edit_from_json

from mpdoctor.fixes.texts import edited

from .comparing import PlainKeras, report_of
from .generator import Script, script_from_seed
from .mends import Mend, seen, trains
from .results import Results

SOUND = ({"healthy"}, {"settling"})


@dataclass(frozen=True)
class LeftOut:
    """One edit of a mended script. `shown_by`: what shows that it is needed: the "script" as it is, where it is the
    only edit; "plain Keras", which does not train without it; the "check" of the script without it; "" where nothing
    does."""

    seed: int
    number: int
    keras: str
    disease: str
    title: str
    shown_by: str


def left_out(mended: Iterable[Mend], folder: Path, path: Path) -> Iterator[LeftOut]:
    """The results of those that the file of results does not hold yet. `folder`: where `mend` has kept its reports."""
    results = Results(path, LeftOut)
    with PlainKeras(folder) as plain:
        for row in mended:
            if row.mended and row.edits and not results.holds(row.seed, row.number):
                yield from map(results.added, _left_out(row, script_from_seed(row.seed, row.number), plain))


def _left_out(row: Mend, script: Script, plain: PlainKeras) -> Iterator[LeftOut]:
    report = json.loads((plain.folder / f"{script.name}.mended.json").read_text(encoding="utf-8"))
    for title in row.edits:
        rest = [edit for edit in report["edits"] if edit["title"] != title]
        shown_by = _shown_by(script, rest, plain) if rest else "script"
        yield LeftOut(row.seed, row.number, row.keras, row.disease, title, shown_by)


def _shown_by(script: Script, edits: list[dict[str, Any]], plain: PlainKeras) -> str:
    path = plain.folder / f"{script.name}_without.py"
    path.write_text(edited(script.text, map(edit_from_json, edits)), encoding="utf-8")
    if not trains(plain.record(script, path)):
        return "plain Keras"
    verdicts_and_codes = set(seen(report_of(script, path)))
    return "" if verdicts_and_codes in SOUND else "check"


def told(rows: list[LeftOut]) -> str:
    """The counts, in Markdown."""
    found = Counter(row.shown_by for row in rows)
    lines = ["| Needed, as is shown by | Edits |", "|---|---|"]
    lines += [f"| {shown_by} | {found[shown_by]} |" for shown_by in ("script", "plain Keras", "check")]
    lines += [f"| nothing | {found['']} |"]
    lines += [
        f"| `show {row.seed} {row.number}`, {row.disease}: {row.title} | could be left out |"
        for row in rows
        if not row.shown_by
    ]
    return "\n".join(lines)
