"""How many layers `mpdoctor mend` writes in float32, beside the smallest set with which plain Keras trains: all smaller
sets are tried."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.fixes.texts import edited
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.made.layers import MadeLayer, NoPlace, given_dtype
from mpdoctor.semantics.source.texts.syntax_trees import called

from .comparing import PlainKeras
from .generator import Script, script_from_seed
from .mends import Mend, trains
from .results import Results

MOST_LAYERS = 8
FLOAT32 = "` computes in float32"


@dataclass(frozen=True)
class Smallest:
    """One mended script. `layers`: all that compute in 16 bits; `written`: those that mend gave float32; `smaller`: a
    set of fewer with which it trains as well, [] where there is none; `runs`: how many sets were tried."""

    seed: int
    number: int
    keras: str
    disease: str
    layers: list[str]
    written: list[str]
    smaller: list[str]
    runs: int

    @property
    def least(self) -> int:
        return len(self.smaller) or len(self.written)


def smallest(mended: Iterable[Mend], folder: Path, path: Path) -> Iterator[Smallest]:
    """The results of those that mend heals with float32 layers alone, and that the file does not hold yet."""
    results = Results(path, Smallest)
    folder.mkdir(parents=True, exist_ok=True)
    with PlainKeras(folder) as plain:
        for row in mended:
            written = [title.removesuffix(FLOAT32).removeprefix("`") for title in row.edits if title.endswith(FLOAT32)]
            if results.holds(row.seed, row.number) or not row.trains or len(written) < max(len(row.edits), 1):
                continue
            result = _smallest(row, written, script_from_seed(row.seed, row.number), plain)
            if result is not None:
                yield results.added(result)


def _smallest(row: Mend, written: list[str], script: Script, plain: PlainKeras) -> Smallest | None:
    """None where the model has more layers than all sets can be tried of."""
    layers = layers_of(script.text)
    if not set(written) <= set(layers) or len(layers) > MOST_LAYERS:
        return None
    tried = [chosen for count in range(1, len(written)) for chosen in combinations(layers, count)]
    smaller: list[str] = []
    runs = 0
    for chosen in tried:
        runs += 1
        path = plain.folder / f"{script.name}_smaller.py"
        path.write_text(_in_float32(script.text, {name: layers[name] for name in chosen}), encoding="utf-8")
        if trains(plain.record(script, path)):
            smaller = list(chosen)
            break
    return Smallest(row.seed, row.number, row.keras, row.disease, list(layers), written, smaller, runs)


def layers_of(text: str) -> dict[str, MadeLayer]:
    """Those with a name and without a dtype of their own."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        given = {keyword.arg: keyword.value for keyword in node.keywords} if isinstance(node, ast.Call) else {}
        name = given.get("name")
        if isinstance(node, ast.Call) and isinstance(name, ast.Constant) and "dtype" not in given:
            layer = MadeLayer(str(name.value), called(node), Location("train.py", node.lineno))
            try:
                _in_float32(text, {layer.path: layer})
            except NoPlace:
                continue
            found[layer.path] = layer
    return found


def _in_float32(text: str, layers: dict[str, MadeLayer]) -> str:
    """Raises NoPlace."""
    facts = SourceFacts("train.py", text)
    edits = [edit for layer in layers.values() for edit in given_dtype(layer, lambda _: facts)]
    return edited(text, dict.fromkeys(edits))


def told(rows: list[Smallest]) -> str:
    """The counts, in Markdown."""
    lines = [
        "| Defect | Keras | Script | Layers | In float32 | Smallest set | Sets tried |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        place = f"`show {row.seed} {row.number}`"
        counts = f"{len(row.layers)} | {len(row.written)} | {row.least} | {row.runs}"
        lines.append(f"| {row.disease} | {row.keras} | {place} | {counts} |")
    written, least = sum(len(row.written) for row in rows), sum(row.least for row in rows)
    lines.append(f"| **all** | | {len(rows)} | | {written} | {least} | {sum(row.runs for row in rows)} |")
    return "\n".join(lines)
