"""How fast is the lint gate beside other linters?

Wall time and peak memory of `mpdoctor check --static`, torchfix, flake8, pylint and ruff (rules E and F), and of
parsing alone, on the given trees and on one small file. They take turns, so that a busy machine slows all; it prints
medians and their ratio to mpdoctor's. Nobody remembers anything, but for "again": that is mpdoctor as it is used, the
second time, when no file has changed. Trees are unpacked packages, for example

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

SMALL = Path(__file__).parents[1] / "fixtures" / "projects" / "healthy_transformer.py"
MPDOCTOR = [sys.executable, "-m", "mpdoctor", "check", "--static", "--exit-zero", "--output-format=concise"]
PARSE = (
    "import ast, pathlib, sys\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('*.py') if pathlib.Path(sys.argv[1]).is_dir() else [sys.argv[1]]:\n"
    "    try: ast.parse(open(path, 'rb').read())\n"
    "    except SyntaxError: pass\n"
)
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
    }
    for name, options in PEERS.items():
        program = shutil.which(name, path=str(peers)) if peers else shutil.which(name)
        if program is not None and name not in left_out:
            found[name] = [program, *options]
    return found


def cost(command: list[str], tree: Path, empty: Path) -> tuple[float, int]:
    """Wall time in seconds, and the peak memory of the command and its children together, in MiB. `empty`: a directory
    in which no configuration of this project is found."""
    start, most = time.perf_counter(), 0
    process = subprocess.Popen(
        [*command, str(tree)],
        cwd=empty,
        env={**os.environ, "XDG_CACHE_HOME": str(empty)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None:
        most = max(most, memory_of_group(process.pid))
        time.sleep(0.02)
    return time.perf_counter() - start, most >> 20


def memory_of_group(group: int) -> int:
    """Resident bytes of all processes of a group, of Linux' /proc; 0 elsewhere."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[2]) == group:
                    total += int(stat[21]) * os.sysconf("SC_PAGE_SIZE")
            except (OSError, IndexError):  # it has ended meanwhile
                continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=5, help="runs of each, alternating (default 5)")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--without", nargs="*", default=[], help="peers to leave out")
    given = parser.parse_args()
    for tree in (SMALL, *given.trees):
        tools = commands(given.peers, set(given.without))
        measured: dict[str, list[tuple[float, int]]] = {name: [] for name in tools}
        with tempfile.TemporaryDirectory() as empty:
            cost(tools["again"], tree.absolute(), Path(empty))
            for _ in range(given.runs):
                for name, command in tools.items():
                    measured[name].append(cost(command, tree.absolute(), Path(empty)))
        medians = {name: statistics.median(seconds for seconds, _ in runs) for name, runs in measured.items()}
        print(f"{tree.name} (medians of {given.runs} alternating runs)")
        for name, seconds in medians.items():
            memory = statistics.median(memory for _, memory in measured[name])
            print(
                f"  {name:10}{seconds:8.2f} s{memory:8.0f} MiB   {seconds / medians['mpdoctor']:7.2f} × mpdoctor's time"
            )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
