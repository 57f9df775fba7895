"""How fast is the lint gate beside other linters?

Wall time, processor time and peak memory of `mpdoctor check --static`, torchfix, flake8 and ruff (rules E and F; with
--pylint of pylint too, which takes minutes), of parsing alone, and of a program that parses its options with typer and
does nothing, on the given trees and on one small file. They take turns, so that a busy machine slows all; it prints
medians, their ratio to mpdoctor's (of wall time; with --processor of processor time, which a busy machine changes
less), and the ratios that are aimed at. Nobody remembers anything, but for "again": that is mpdoctor as it is used, the
second time, when no file has changed; and Python's bytecode of all of them, which pip compiles when it installs a tool
and a checkout may lack: each runs once on the small file before the first measured run. Trees are unpacked packages,
for example

    pip download --no-deps --dest . tf-models-official && unzip -q tf_models_official-*.whl -d tf-models-official
    python benchmarks/lint_speed.py --runs 5 --peers ../peers/bin tf-models-official

`--peers` is the directory with the other linters' programs; those that are not there are left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SMALL = Path(__file__).parents[1] / "fixtures" / "projects" / "healthy_transformer.py"
MPDOCTOR = [sys.executable, "-m", "mpdoctor", "check", "--static", "--exit-zero", "--output-format=concise"]
PARSE = (
    "import ast, pathlib, sys\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('*.py') if pathlib.Path(sys.argv[1]).is_dir() else [sys.argv[1]]:\n"
    "    try: ast.parse(open(path, 'rb').read())\n"
    "    except SyntaxError: pass\n"
)
BARE = (
    "import typer\napp = typer.Typer(rich_markup_mode=None)\n@app.command()\ndef main(path: str) -> None: pass\napp()\n"
)
# (of whom, to whom, what it should be at most or at least): on the small file, and on a tree.
AIMS_FOR_ONE_FILE = (("mpdoctor", "flake8", "at most 0.35"),)
AIMS_FOR_TREES = (("torchfix", "mpdoctor", "at least 4"), ("again", "ruff", "at most 2"))
PEERS = {
    "torchfix": ["--select=ALL"],
    "flake8": [],
    "pylint": ["--jobs=0", "--score=n", "--recursive=y"],
    "ruff": ["check", "--select=E,F", "--no-cache", "--isolated", "--quiet"],
}


def commands(peers: Path | None, left_out: set[str]) -> dict[str, list[str]]:
    found = {
        "mpdoctor": [*MPDOCTOR, "--no-cache"],
        "again": MPDOCTOR,
        "parsing": [sys.executable, "-c", PARSE],
        "typer": [sys.executable, "-c", BARE],
    }
    for name, options in PEERS.items():
        program = shutil.which(name, path=str(peers)) if peers else shutil.which(name)
        if program is not None and name not in left_out:
            found[name] = [str(Path(program).absolute()), *options]
    return found


class Cost(NamedTuple):
    """`wall` and `processor` in seconds, the latter of the command and of the children that it waited for; `memory`,
    the peak of all of them together, in MiB."""

    wall: float
    processor: float
    memory: int


def cost(command: list[str], tree: Path, empty: Path) -> Cost:
    """`empty`: a directory in which no configuration of this project is found."""
    start, most, next_look = time.perf_counter(), 0, 0.0
    process = subprocess.Popen(
        [*command, str(tree)],
        cwd=empty,
        env=environment(empty),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while True:
        ended, _, used = os.wait4(process.pid, os.WNOHANG)
        if ended:
            return Cost(time.perf_counter() - start, used.ru_utime + used.ru_stime, most >> 20)
        if time.perf_counter() >= next_look:
            most = max(most, memory_of_group(process.pid))
            next_look = time.perf_counter() + 0.2  # a look takes the kernel a while
        time.sleep(0.001 if time.perf_counter() - start < 1 else 0.02)  # a file is checked in a tenth of a second


def environment(empty: Path) -> dict[str, str]:
    """With bytecode kept apart from the trees of all tools: PYTHONDONTWRITEBYTECODE would have a checkout compiled anew
    in each run, which takes longer than to check a file."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "XDG_CACHE_HOME": str(empty), "PYTHONPYCACHEPREFIX": str(empty / "bytecode")}


def memory_of_group(group: int) -> int:
    """Bytes of all processes of a group, pages that forked processes share counted once (Linux' Pss); 0 elsewhere."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[2]) == group:
                    total += _proportional_size(entry)
            except (OSError, IndexError):  # it has ended meanwhile
                continue
    return total


def _proportional_size(process: Path) -> int:
    for line in (process / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=5, help="runs of each, alternating (default 5)")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--without", nargs="*", default=[], help="peers to leave out")
    parser.add_argument("--pylint", action="store_true", help="pylint as well, which takes minutes")
    parser.add_argument("--processor", action="store_true", help="ratios of processor time")
    given = parser.parse_args()
    for tree in (SMALL, *given.trees):
        tools = commands(given.peers, {*given.without, *(() if given.pylint else ("pylint",))})
        measured: dict[str, list[Cost]] = {name: [] for name in tools}
        with tempfile.TemporaryDirectory() as empty:
            for command in tools.values():
                cost(command, SMALL, Path(empty))
            cost(tools["again"], tree.absolute(), Path(empty))
            for _ in range(given.runs):
                for name, command in tools.items():
                    measured[name].append(cost(command, tree.absolute(), Path(empty)))
        medians = {name: Cost(*map(statistics.median, zip(*runs, strict=True))) for name, runs in measured.items()}
        show(tree, medians, given.runs, given.processor)


def show(tree: Path, medians: dict[str, Cost], runs: int, processor: bool) -> None:
    compared = {name: spent.processor if processor else spent.wall for name, spent in medians.items()}
    kind = "processor" if processor else "wall"
    print(f"{tree.name} (medians of {runs} alternating runs; ratios of {kind} time)")
    for name, spent in medians.items():
        ratio = compared[name] / compared["mpdoctor"]
        print(
            f"  {name:10}{spent.wall:8.2f} s wall{spent.processor:8.2f} s processor{spent.memory:8.0f} MiB"
            f"{ratio:9.2f} × mpdoctor's time"
        )
    for of, to, aim in AIMS_FOR_ONE_FILE if tree == SMALL else AIMS_FOR_TREES:
        if of in compared and to in compared:
            print(f"  {of} / {to}: {compared[of] / compared[to]:.2f} (aim: {aim})")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
