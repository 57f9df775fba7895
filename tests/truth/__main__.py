"""Runs scripts, prints the table, shows a script: see `python -m tests.truth --help`."""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import count, islice
from pathlib import Path

from .comparing import compared, line_from_outcome, outcomes_from_files, run_and_write
from .generator import KINDS, script_from_seed
from .results import rows_from_files
from .table import markdown_from_outcomes

BEGIN, END = "<!-- counts -->", "<!-- end of the counts -->"


def run(given: argparse.Namespace) -> None:
    folder = Path(given.folder or tempfile.mkdtemp(prefix="truth-"))
    numbers = given.numbers or range(given.first, given.first + given.scripts)
    scripts = (script_from_seed(given.seed, number) for number in numbers)
    if given.sick:
        scripts = (script for script in scripts if not script.truth.is_healthy)
    for outcome in run_and_write(scripts, folder, given.results):
        wrong = ", ".join(outcome.wrong) or "ok"
        print(f"{outcome.seed} {outcome.number} {outcome.kind} ({outcome.keras}): {wrong}", flush=True)


def table(given: argparse.Namespace) -> None:
    told = markdown_from_outcomes(outcomes_from_files(given.results))
    if given.page is None:
        print(told)
        return
    before, rest = given.page.read_text(encoding="utf-8").split(BEGIN, 1)
    given.page.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def judge(given: argparse.Namespace) -> None:
    """Truths and definitions have changed since: what was recorded and reported then is compared anew. A script whose
    text has changed is taken out, to be run again."""
    lines = []
    for was in outcomes_from_files([given.results]):
        script = script_from_seed(was.seed, was.number)
        kept = [given.folder / f"{script.name}.{kind}.json" for kind in ("record", "report")]
        text = given.folder / f"{script.name}.py"
        if not text.exists() or text.read_text(encoding="utf-8") != script.text:
            print(f"{script.name} is another text now: run it again")
            continue
        record, report = (json.loads(path.read_text(encoding="utf-8")) for path in kept)
        lines.append(line_from_outcome(compared(script, record, report, was.seconds)))
    given.results.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def remedies(given: argparse.Namespace) -> None:
    from .remedies import Made, made, told

    numbers = given.numbers or range(given.first, given.first + given.scripts)
    sick = (script for number in numbers if not (script := script_from_seed(given.seed, number)).truth.is_healthy)
    for result in made(sick, Path(given.folder or tempfile.mkdtemp(prefix="remedies-")), given.results):
        place = f"{result.seed} {result.number} {result.disease} ({result.keras})"
        print(f"{place}: {result.tried}, {result.again}, {result.heals}", flush=True)
    print(told(rows_from_files(Made, [given.results])))


def mend(given: argparse.Namespace) -> None:
    from .mends import Mend, mends, told

    numbers = given.numbers or range(given.first, given.first + given.scripts)
    sick = (script for number in numbers if not (script := script_from_seed(given.seed, number)).truth.is_healthy)
    for row in mends(islice(sick, given.most), Path(given.folder or tempfile.mkdtemp(prefix="mends-")), given.results):
        result = "mended" if row.mended else "not mended"
        print(f"{row.seed} {row.number} {row.disease} ({row.keras}): {result}, {row.after}, {row.edits}", flush=True)
    print(told(rows_from_files(Mend, [given.results])))


def rooms(given: argparse.Namespace) -> None:
    from .rooms import Room, of_battery, of_generator, of_precision, rooms, told

    folder = Path(given.folder or tempfile.mkdtemp(prefix="rooms-"))
    generated = islice(of_generator(given.seed, count(given.first), folder), given.scripts)
    models = [*(of_battery() if given.battery else ()), *generated, *of_precision(range(given.precision), folder)]
    for row in rooms((model for model in models if given.only in f"{model.name}-{model.keras}"), folder, given.results):
        verdict = {None: row.why, True: "holds", False: "does not hold"}[row.holds]
        print(f"{row.name} ({row.keras}): {verdict}", flush=True)
    print(told(rows_from_files(Room, [given.results])))


def smallest(given: argparse.Namespace) -> None:
    from .mends import Mend
    from .smallest import Smallest, smallest, told

    folder = Path(given.folder or tempfile.mkdtemp(prefix="smallest-"))
    for row in smallest(rows_from_files(Mend, given.mended), folder, given.results):
        print(f"{row.seed} {row.number} {row.disease}: {row.written}, smaller: {row.smaller or 'none'}", flush=True)
    print(told(rows_from_files(Smallest, [given.results])))


def left_out(given: argparse.Namespace) -> None:
    from .left_out import LeftOut, left_out, told
    from .mends import Mend

    for row in left_out(rows_from_files(Mend, given.mended), given.folder, given.results):
        print(f"{row.seed} {row.number} {row.title}: {row.shown_by or 'could be left out'}", flush=True)
    print(told(rows_from_files(LeftOut, [given.results])))


def show(given: argparse.Namespace) -> None:
    script = script_from_seed(given.seed, given.number)
    print(script.text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="run scripts that the results do not hold yet")
    runs.add_argument("results", type=Path)
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--first", type=int, default=0)
    runs.add_argument("--scripts", type=int, default=len(KINDS))
    runs.add_argument("--numbers", type=int, nargs="+", help="these alone")
    runs.add_argument("--sick", action="store_true", help="only scripts with a defect")
    runs.add_argument("--folder", help="where scripts, records and reports are kept")
    runs.set_defaults(does=run)
    tables = commands.add_parser("table", help="the counts, in Markdown")
    tables.add_argument("results", type=Path, nargs="+")
    tables.add_argument("--page", type=Path, help="write them into this page instead: docs/measurements.md")
    tables.set_defaults(does=table)
    judges = commands.add_parser("judge", help="compare what was kept of a run anew, and write the results over")
    judges.add_argument("results", type=Path)
    judges.add_argument("folder", type=Path)
    judges.set_defaults(does=judge)
    tries = commands.add_parser("remedies", help="make the edits that were tried, of sick scripts alone, and count")
    tries.add_argument("results", type=Path)
    tries.add_argument("--seed", type=int, default=1)
    tries.add_argument("--first", type=int, default=0)
    tries.add_argument("--scripts", type=int, default=len(KINDS))
    tries.add_argument("--numbers", type=int, nargs="+", help="these alone")
    tries.add_argument("--folder", help="where scripts and records are kept")
    tries.set_defaults(does=remedies)
    mends = commands.add_parser("mend", help="mend sick scripts, train what came of it in plain Keras, and count")
    mends.add_argument("results", type=Path)
    mends.add_argument("--seed", type=int, default=1)
    mends.add_argument("--first", type=int, default=0)
    mends.add_argument("--scripts", type=int, default=len(KINDS))
    mends.add_argument("--most", type=int, help="this many sick ones")
    mends.add_argument("--numbers", type=int, nargs="+", help="these alone")
    mends.add_argument("--folder", help="where scripts, reports and records are kept")
    mends.set_defaults(does=mend)
    ends = commands.add_parser(
        "rooms", help="try the loss scales that --reference recommends, in plain Keras, and count"
    )
    ends.add_argument("results", type=Path)
    ends.add_argument("--battery", action="store_true", help="the battery's healthy scripts")
    ends.add_argument("--seed", type=int, default=1)
    ends.add_argument("--first", type=int, default=0)
    ends.add_argument("--scripts", type=int, default=0, help="this many healthy ones of the seed")
    ends.add_argument("--precision", type=int, default=0, help="this many seeds of tests/support/lost_precision.py")
    ends.add_argument("--only", default="", help="scripts with this in their NAME-KERAS")
    ends.add_argument("--folder", help="where scripts, batches and gradients are kept")
    ends.set_defaults(does=rooms)
    least = commands.add_parser("smallest", help="try fewer float32 layers than mend wrote, and count")
    least.add_argument("results", type=Path)
    least.add_argument("mended", type=Path, nargs="+", help="results of `mend`")
    least.add_argument("--folder", help="where scripts and records are kept")
    least.set_defaults(does=smallest)
    without = commands.add_parser("left-out", help="leave each edit that mend made out, and count which were needed")
    without.add_argument("results", type=Path)
    without.add_argument("mended", type=Path, nargs="+", help="results of `mend`")
    without.add_argument("--folder", type=Path, required=True, help="where `mend` has kept its reports")
    without.set_defaults(does=left_out)
    shows = commands.add_parser("show", help="one script, as a text that runs alone")
    shows.add_argument("seed", type=int)
    shows.add_argument("number", type=int)
    shows.set_defaults(does=show)
    given = parser.parse_args()
    given.does(given)


if __name__ == "__main__":
    main()
