"""The file cannot be read as Python: it has a syntax error, a wrong encoding, or is no text at all.

## Why it matters
Python itself would stop at the same place, and nothing else in the file was checked.

## Flagged
```python
model.compile(optimizer="adam"
```

## Fixed
```python
model.compile(optimizer="adam")
```

## Versions
All. The syntax is that of the Python that runs mpdoctor: to check a file for a newer Python, install mpdoctor
in that Python.

## Where users met it
Files for Python 2, merge conflicts left in place, notebooks saved under a `.py` name.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.program.source_facts import SourceFacts

SEVERITY = Severity.ERROR
SAYS_THAT_NO_MODEL_CAME = True


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.unreadable is not None:
        yield Finding(
            facts.unreadable.message,
            f"{facts.unreadable.remedy or 'Fix the line'}, then check again: nothing else in this file was checked.",
            facts.unreadable.location,
        )
    for cell in facts.broken_cells:
        yield Finding(cell.message, "Fix the cell, then check again: the other cells were read.", cell.location)
