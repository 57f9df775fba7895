"""What does the lint gate say of published packages?

Prints, for every unpacked package, the findings of `mpdoctor check --static` by rule and severity, the wall time and
the peak memory, in the form of the tables of benchmarks/real_trees.md. Whether a finding is right, a reader of the
package's source has to judge: `--list` prints where each is.

    pip download --no-deps --dest . keras-hub && unzip -q keras_hub-*.whl -d keras-hub
    python benchmarks/real_trees.py --keras 3 keras-hub
    python benchmarks/real_trees.py --keras 3 --assume-mixed --list keras-hub
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from lint_speed import memory_of_group

COLUMNS = ("package", "Keras", "assume-mixed", "rule", "severity", "findings")


def diagnosis_of_tree(tree: Path, options: list[str]) -> tuple[dict[str, Any], float, int]:
    """The diagnosis, the wall time in seconds, and the peak memory of all processes together in MiB."""
    command = [sys.executable, "-m", "mpdoctor", "check", "--static", "--exit-zero", "--output-format=json", *options]
    with tempfile.TemporaryFile() as told:
        start, most = time.perf_counter(), 0
        process = subprocess.Popen(
            [*command, tree.name], cwd=tree.parent, stdout=told, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while process.poll() is None:
            most = max(most, memory_of_group(process.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        told.seek(0)
        if process.returncode != 0:
            sys.exit(f"mpdoctor ended with {process.returncode} on {tree}.")
        return json.load(told), seconds, most >> 20


def package_of_tree(tree: Path) -> str:
    """Its name and version, as the wheel's own metadata say them."""
    for directory in tree.glob("*.dist-info"):
        name, _, version = directory.name[: -len(".dist-info")].rpartition("-")
        return f"{name} {version}"
    return tree.name


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--keras", default="3", help="the Keras to judge by (default 3)")
    parser.add_argument("--assume-mixed", action="store_true")
    parser.add_argument("--list", action="store_true", help="print where each finding is, too")
    given = parser.parse_args()
    options = ["--keras", given.keras, *(["--assume-mixed"] if given.assume_mixed else [])]
    mixed = "yes" if given.assume_mixed else "no"
    costs = []
    print(row(*COLUMNS), row(*("---" for _ in COLUMNS)), sep="\n")
    for tree in given.trees:
        diagnosis, seconds, memory = diagnosis_of_tree(tree.absolute(), options)
        findings, package = diagnosis["findings"], package_of_tree(tree)
        costs.append(row(package, len(list(tree.rglob("*.py"))), f"{seconds:.1f} s", f"{memory} MiB"))
        counts = Counter((finding["code"], finding["severity"]) for finding in findings)
        for (code, severity), count in sorted(counts.items()) or [(("none", "-"), 0)]:
            print(row(package, given.keras, mixed, code, severity, count))
        for finding in findings if given.list else ():
            print(f"{finding['path']}:{finding['line']}: {finding['code']} {finding['message']}", file=sys.stderr)
        for crash in diagnosis["crashed"]:
            print(f"{package}: crashed: {crash}", file=sys.stderr)
        sys.stdout.flush()
    print("", row("package", "files", "wall time", "peak memory"), row(*["---"] * 4), *costs, sep="\n")


if __name__ == "__main__":
    main()
