"""Makes a rule and its fixtures: `python -m tools.new_rule layers stray-cast "A layer casts its output twice."`

The code is the next free one of the family. What is left to write stands as TODO in the files, and the rule contract
(`pytest tests/rules/test_rules_contract.py -k mpNNN`) fails until it is written.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGGED, CLEAN = 3, 5  # the fewest fixtures that the contract wants
RULE = '''"""{summary}

## Why it matters
TODO: what follows from it, in numbers that were measured.

## Flagged
```python
TODO
```

## Fixed
```python
TODO
```

## Versions
TODO: in which TensorFlow and Keras this was seen; `KERAS = ("3",)` below where it holds for one generation only.

## Where users met it
TODO: owner/repository#number.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.program.source_facts import SourceFacts

SEVERITY = Severity.WARNING


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.calls_of("TODO"):
        yield Finding("TODO: the thing, and what follows from it.", "TODO: the line that mends it.", call.location)
'''


def families(root: Path = ROOT) -> list[str]:
    return sorted(path.parent.name for path in (root / "mpdoctor" / "rules").glob("*/__init__.py"))


def next_code(family: str, root: Path = ROOT) -> str:
    """The code after the last one of a family, "mp219". Raises ValueError where its hundred is full."""
    numbers = [int(path.name[2:5]) for path in (root / "mpdoctor" / "rules" / family).glob("mp[0-9]*.py")]
    taken = {int(path.name[2:5]) for path in (root / "mpdoctor" / "rules").glob("*/mp[0-9]*.py")}
    number = max(numbers) + 1
    if number in taken or number // 100 != max(numbers) // 100:
        raise ValueError(f"the codes of {family} are used up")
    return f"mp{number:03}"


def files_of_rule(family: str, name: str, summary: str, root: Path = ROOT) -> dict[Path, str]:
    """The rule and its fixtures, by path. `name`: as `explain` takes it, "stray-cast".

    Raises ValueError for a name or a summary that the contract would refuse."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"{name!r} is no name of a rule: lower case, words joined by -")
    if not re.fullmatch(r"[^.]+\.", summary):
        raise ValueError("the summary is one sentence, with a full stop")
    code = next_code(family, root)
    fixtures = root / "fixtures" / "rules" / code
    files = {root / "mpdoctor" / "rules" / family / f"{code}_{name.replace('-', '_')}.py": RULE.format(summary=summary)}
    for kind, count, text in (
        ("flagged", FLAGGED, f"TODO: real code  # expect: {code.upper()}\n"),
        ("clean", CLEAN, "TODO: right code that looks like the wrong one\n"),
    ):
        files.update({fixtures / f"{kind}_todo_{number}.py": text for number in range(1, count + 1)})
    return files


def write(files: dict[Path, str]) -> Iterable[Path]:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.new_rule", description=__doc__.partition("\n")[0])
    parser.add_argument("family", choices=families())
    parser.add_argument("name", help="what is wrong, never the cure: stray-cast")
    parser.add_argument("summary", help="the first sentence of its documentation")
    given = parser.parse_args()
    try:
        files = files_of_rule(given.family, given.name, given.summary)
    except ValueError as error:
        parser.error(str(error))
    for path in write(files):
        print(path.relative_to(ROOT))
    subprocess.run([sys.executable, "-m", "tools.readme"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
