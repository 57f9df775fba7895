"""Does the lint gate's time grow with the files, and no faster, and how much memory does it take?

Lays the given trees side by side, again and again, until there are as many files as were asked for, checks each of the
sizes once without a cache and once with what that left in one, and prints time per file, the peak memory of all
processes together, and the ratio of time per file at the largest and the smallest size (aim: at most 1.2, and 1 GiB).

    pip download --no-deps --dest . tf-models-official && unzip -q tf_models_official-*.whl -d tf-models-official
    python benchmarks/scale.py tf-models-official --files 1000 10000
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lint_speed import MPDOCTOR, Cost, cost

MOST_GROWTH = 1.2
MOST_MEMORY = 1024  # MiB
SUFFIX = ".py"


def lay_side_by_side(trees: Sequence[Path], count: int, directory: Path) -> None:
    """Copies of the trees' Python files, `count` of them, each copy in a folder of its own."""
    left = count
    for number in itertools.count():
        for tree in trees:
            for file in sorted(tree.rglob(f"*{SUFFIX}")):
                if not left:
                    return
                copied = directory / f"{tree.name}{number}" / file.relative_to(tree)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copied)
                left -= 1


def costs(trees: Sequence[Path], count: int, scratch: Path | None) -> dict[str, Cost]:
    """Of a first run without a cache, and of one that finds all its files unchanged."""
    with tempfile.TemporaryDirectory(dir=scratch) as made:
        place, empty = Path(made) / "files", Path(made) / "empty"
        place.mkdir()
        empty.mkdir()
        lay_side_by_side(trees, count, place)
        first = cost([*MPDOCTOR, "--no-cache"], place, empty)
        cost(MPDOCTOR, place, empty)
        return {"first": first, "again": cost(MPDOCTOR, place, empty)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--files", nargs="+", type=int, default=[1000, 10_000])
    parser.add_argument("--scratch", type=Path, help="where the copies lie while they are measured")
    given = parser.parse_args()
    empty = [tree for tree in given.trees if not any(tree.rglob(f"*{SUFFIX}"))]
    if empty:
        parser.error(f"no file {SUFFIX} lies in {empty[0]}")
    measured: dict[int, dict[str, Cost]] = {}
    for count in sorted(given.files):
        measured[count] = costs(given.trees, count, given.scratch)
        for name, spent in measured[count].items():
            print(
                f"{count:6} files, {name}: {spent.wall:7.1f} s wall, {1000 * spent.processor / count:6.2f} ms of a "
                f"processor for each, {spent.memory:5} MiB"
            )
        sys.stdout.flush()
    fewest, most = min(measured), max(measured)
    for name in measured[most]:
        growth = (measured[most][name].processor / most) / (measured[fewest][name].processor / fewest)
        print(f"{name}: {growth:.2f} times as long for each file at {most} as at {fewest} (aim: at most {MOST_GROWTH})")
    memory = max(spent.memory for spent in measured[most].values())
    print(f"memory: {memory} MiB (aim: at most {MOST_MEMORY})")


if __name__ == "__main__":
    main()
