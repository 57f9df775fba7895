"""What one run of mpdoctor was asked to do: the command line and [tool.mpdoctor], frozen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Severity
from mpdoctor.targets import Target


@dataclass(frozen=True)
class Settings:
    """Options of `mpdoctor check`, with their defaults.

    keras
        The Keras to judge source by where `--keras` was given, else None: then the target decides.
    python
        The interpreter that examines, where `--python` was given.
    budget, timeout
        Seconds. `timeout` bounds the time until the first training step.
    select, ignore
        Codes, prefixes of codes ("MP3") or names; an empty `select` means all.
    command
        What the user typed, for the report's last line.
    """

    targets: tuple[Target, ...]
    script_args: tuple[str, ...] = ()
    static: bool = False
    probe: bool = True
    steps: int = 50
    budget: float = 60.0
    timeout: float = 600.0
    policy: str = "auto"
    python: Path | None = None
    device: str = "auto"
    seed: int | None = None
    keras: Keras | None = None
    assume_mixed: bool = False
    custom_objects: str | None = None
    allow_code_in_file: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity = Severity.WARNING
    exit_zero: bool = False
    command: str = ""
