"""Everything of mpdoctor that differs on a GPU, in one command, on one page.

What was seen on one stands in docs/measurements/lost_digits.md. On a machine that has a GPU, with TensorFlow and a
checkout of this repository,

    python -m benchmarks.on_a_gpu --output on_a_gpu.md

tells what TensorFlow sees there, runs each script of the battery (fixtures/battery) twice, on the CPU and on the GPU,
and lists those whose verdict or findings differ; holds the gradients of 14 models against a calculation of its own on
both (benchmarks/fidelity.py); and compares five models (benchmarks/compared) under each policy on both, with time and
memory of the device. `--jobs 8` runs eight scripts of the battery at a time; models are compared one after the other.
`--device cpu` does all of it on the CPU alone, to see the shape of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.fidelity import NEAR, Row, rows_of_all
from mpdoctor.reporters.markdown.escaping import code, prose, table

ROOT = Path(__file__).resolve().parents[1]
BATTERY = ROOT / "fixtures" / "battery"
MODELS = Path(__file__).parent / "compared"
FIDELITY = ("model", "scale", "fidelity", "flushed, worst", "apart: share flushed", "cosine")
STEPS = "50"
SECONDS = 900  # for one script
# What is known to differ on a GPU, and where the page shows it.
DIFFERS = (
    ("memory growth, and out of memory in the short training", "a script that ends with `failed` there alone"),
    ("memory of the device", "the row `peak memory, device`"),
    ("TF32: float32 products with 10 bits of mantissa", "verdicts and losses under float32; the fidelity of gradients"),
    ("sums of float16 numbers in float32", "the shares flushed, and how far the calculation lies apart"),
    ("XLA, which Keras 3 chooses by itself on a GPU", "`jit_compile` of the trainings, and no casts in their graphs"),
    ("shapes for tensor cores", "the reasons under a comparison, and MP802"),
    ("cuDNN's recurrent layers in two dtypes", "`lstm` under each policy"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="the page; without it, on standard output")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="what is held against the CPU")
    parser.add_argument("--python", default=sys.executable, help="the Python that has TensorFlow")
    parser.add_argument("--scripts", nargs="*", help="of the battery, by name; without it all")
    parser.add_argument("--models", nargs="*", help="to compare policies on, by name; without it all")
    parser.add_argument("--rounds", default="3", help="of each comparison")
    parser.add_argument("--budget", default="60", help="seconds for each model whose gradients are compared")
    parser.add_argument("--jobs", type=int, default=1, help="scripts of the battery at a time")
    options = parser.parse_args(arguments)
    environment = mpdoctor("env", "--python", options.python)
    if options.device == "gpu" and not sees_a_gpu(environment.stdout):
        print(f"TensorFlow sees no GPU here:\n{environment.stdout}", file=sys.stderr)
        return 2
    scripts = chosen(sorted(BATTERY.glob("*/*.py")), options.scripts)
    with ThreadPoolExecutor(options.jobs) as pool:
        checked = list(pool.map(lambda path: (path, *checked_on_both(path, options)), scripts))
    page = page_from(
        environment.stdout,
        options.device,
        checked,
        {where: fidelity_on(where, options) for where in dict.fromkeys(("cpu", options.device))},
        [(path, compared_on_each(path, options)) for path in chosen(sorted(MODELS.glob("*.py")), options.models)],
    )
    if options.output is None:
        print(page)
    else:
        options.output.write_text(page, encoding="utf-8")
    return 0


def sees_a_gpu(environment: str) -> bool:
    """`environment`: what `mpdoctor env` prints."""
    named = re.findall(r"^GPU(?: \d+)? +(.+)$", environment, re.MULTILINE)
    return any(not name.startswith("none") for name in named)


def chosen(paths: list[Path], names: list[str] | None) -> list[Path]:
    return [path for path in paths if names is None or path.stem in names]


def checked_on_both(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The diagnoses on the CPU and on the device; {} where mpdoctor told none."""
    cpu, device = (
        told(mpdoctor("check", "--output-format", "json", "--quiet", "--steps", STEPS, "--seed", "7", "--device", where,
                      "--python", options.python, path.name, cwd=path.parent))
        for where in ("cpu", options.device)
    )  # fmt: skip
    print(f"{path.stem}: {summary(cpu)} / {summary(device)}", file=sys.stderr)
    return cpu, device


def fidelity_on(where: str, options: argparse.Namespace) -> list[Row]:
    """A row for each model; for one that no check reached, why."""
    try:
        rows, missing = rows_of_all(options.python, options.budget, where)
    except RuntimeError as reason:
        rows, missing = [], [str(reason)]
    print(f"gradients on the {where.upper()}: {len(rows)} models", file=sys.stderr)
    return [*rows, *(Row(name, not_measured="no check reached it") for name in missing)]


def compared_on_each(path: Path, options: argparse.Namespace) -> dict[str, str]:
    """By device: what the others are held against, and the CPU."""
    return {where: compared_on(where, path, options) for where in dict.fromkeys((options.device, "cpu"))}


def compared_on(where: str, path: Path, options: argparse.Namespace) -> str:
    """The comparison as Markdown, or why there is none."""
    done = mpdoctor("compare", "--output-format", "markdown", "--quiet", "--rounds", options.rounds, "--device",
                    where, "--python", options.python, path.name, cwd=path.parent)  # fmt: skip
    print(f"{path.stem}: compared, {done.returncode}", file=sys.stderr)
    return done.stdout or prose(f"{path.name} was not compared: {done.stderr[-500:]}")


def mpdoctor(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpdoctor", *arguments]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    try:
        return subprocess.run(command, cwd=cwd, env=quiet, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"it did not end within {SECONDS} seconds")


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        diagnosis: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {}
    return diagnosis


# --- the page ---------------------------------------------------------------------------------------------------------
def page_from(
    environment: str,
    device: str,
    checked: list[tuple[Path, dict[str, Any], dict[str, Any]]],
    fidelity: dict[str, list[Row]],
    compared: list[tuple[Path, dict[str, str]]],
) -> str:
    differing = [(path, cpu, there) for path, cpu, there in checked if summary(cpu) != summary(there)]
    rows = [(code(path.stem), prose(summary(cpu)), prose(summary(there))) for path, cpu, there in differing]
    parts = [
        f"# mpdoctor on a {device.upper()}",
        "```text\n" + environment.replace("```", "'''").rstrip() + "\n```",
        f"## The battery: {len(checked)} scripts, {len(differing)} of them differ from the CPU",
        table(("script", "on the CPU", f"on the {device.upper()}"), rows) if rows else "None differs.",
        f"XLA compiled the training of {listed(jitted(checked))}.",
        f"## Gradients against a calculation of its own: {listed(apart(fidelity))} further apart than {NEAR}",
        *(
            f"On the {where.upper()}:\n\n{table(FIDELITY, [cells(row) for row in rows])}"
            for where, rows in fidelity.items()
        ),
        "## Five models under each policy",
        *(
            f"### {path.stem} on the {where.upper()}\n\n{shown.replace('### ', '#### ', 1)}"
            for path, by_device in compared
            for where, shown in by_device.items()
        ),
        "## Where to look",
        table(("what differs on a GPU", "where it shows"), DIFFERS),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def summary(diagnosis: dict[str, Any]) -> str:
    """Verdicts and the codes of findings: "healthy; MP910"."""
    if not diagnosis:
        return "no diagnosis"
    verdicts = ", ".join(str(probe["verdict"]) for probe in diagnosis["probes"]) or "no training"
    codes = ", ".join(sorted({str(finding["code"]) for finding in diagnosis["findings"]})) or "no findings"
    return f"{verdicts}; {codes}"


def cells(row: Row) -> tuple[str, ...]:
    return tuple(code(text) if text else "" for text in row.cells)


def apart(fidelity: dict[str, list[Row]]) -> list[str]:
    return [f"{row.name} ({where})" for where, rows in fidelity.items() for row in rows if not row.is_near]


def jitted(checked: Iterable[tuple[Path, dict[str, Any], dict[str, Any]]]) -> list[str]:
    return [path.stem for path, _, there in checked if any(probe["jit_compile"] for probe in there.get("probes", ()))]


def listed(names: list[str]) -> str:
    return ", ".join(map(code, names)) or "none"


if __name__ == "__main__":
    sys.exit(main())
