"""The settings of one run, frozen: the command line and [tool.mpdoctor]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.versions import Keras, KerasPackage
from mpdoctor.finding import Severity
from mpdoctor.project.files import PathPatterns
from mpdoctor.project.targets import Target

if TYPE_CHECKING:
    from mpdoctor.source.kept_sources import KeptSources

FORCED_POLICY = "mixed_float16"  # on a program without mixed precision, where --policy says nothing


@dataclass(frozen=True)
class Settings:
    """Options of `mpdoctor check`, with their defaults.

    keras
        The Keras to judge source by where `--keras` or the configuration names it, else None: then the target decides.
    what_if
        Whether a program without mixed precision is run once more, under FORCED_POLICY.
    holds_policy
        Whether `policy` is set where the program itself sets a global policy, too.
    python
        The interpreter that examines, where `--python` was given.
    budget, timeout
        Seconds. `timeout` bounds the time until the first training step.
    select, ignore
        Codes, prefixes of codes ("MP3") or names; an empty `select` means all.
    per_file_ignores
        Patterns of paths, and the rules that do not speak there.
    not_examined
        Of further targets that were named, why each can't be examined, in a sentence.
    recorded_batch
        The file of a batch that another training kept, which the script's own training takes in place of its batches.
    docs_url
        Where the pages of the rules are published, for links in reports.
    show_output
        Whether what the script prints is shown, on standard error.
    keep_run
        The directory that keeps request, events and stderr of each run of the examiner.
    unsaved
        What to take in place of what a file holds, by its absolute path, where only the source is read.
    edited
        What to read and to run in place of what a file of the program holds, by its real path: both stages obey it, and
        the file stays as it is. A program that reads its own file with `open()` reads what the disk holds.
    edits_after_run
        Whether edits may rest on what a run showed, as those of `mend`: `check --fix` reads the source alone.
    kept
        What earlier checks of this process have parsed, where one program is read again and again.
    command
        What the user typed, for the report's last line.
    """

    targets: tuple[Target, ...]
    script_args: tuple[str, ...] = ()
    static: bool = False
    probe: bool = True
    all_fits: bool = False
    what_if: bool = True
    second_training: bool = True
    reference: bool = False
    recorded_batch: Path | None = None
    steps: int = 50
    budget: float = 60.0
    timeout: float = 600.0
    policy: str = "auto"
    holds_policy: bool = False
    python: Path | None = None
    device: str = "auto"
    seed: int | None = None
    keras: Keras | None = None
    assume_mixed: bool = False
    custom_objects: str | None = None
    allow_code_in_file: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[PathPatterns, tuple[str, ...]], ...] = ()
    fail_on: Severity = Severity.WARNING
    exit_zero: bool = False
    cache: bool = True
    keep_run: Path | None = None
    show_output: bool = False
    docs_url: str = ""
    not_examined: tuple[str, ...] = ()
    unsaved: Mapping[Path, bytes] = field(default_factory=dict)
    edited: Mapping[str, bytes] = field(default_factory=dict)
    edits_after_run: bool = False
    kept: KeptSources | None = None
    command: str = ""

    @property
    def is_about_one(self) -> bool:
        """Whether one target was named: of several the source alone is read."""
        return len(self.targets) + len(self.not_examined) == 1

    @property
    def is_of_files(self) -> bool:
        """Whether only known files on the disk are read: no program that brings others along, and no text that was
        handed over in place of a file."""
        is_program = self.is_about_one and self.targets[0].kind != "directory"
        return self.static and not (is_program or self.unsaved or self.edited) and all(map(_is_read, self.targets))

    def chooses(self, code: str, name: str) -> bool:
        """Whether --select and --ignore leave this rule switched on."""
        named = any(names_rule(text, code, name) for text in self.select) or not self.select
        return named and not any(names_rule(text, code, name) for text in self.ignore)


def _is_read(target: Target) -> bool:
    is_on_disk = target.path is not None and target.content is None and not target.is_saved
    return is_on_disk and bool(target.files or target.kind != "directory")


def names_rule(selector: str, code: str, name: str) -> bool:
    """Whether one text after --select or --ignore means this rule: its code, a prefix of it, or its name."""
    text = selector.strip()
    return bool(text) and (code.startswith(text.upper()) or text.lower() == name)


_PACKAGES: dict[str, KerasPackage] = {"keras": "keras", "tf_keras": "tf_keras"}


def keras_from_text(text: str, because: str = "") -> Keras:
    """The Keras that `--keras 3`, `--keras tf_keras` or `--keras 2.15` names. Raises ValueError with a sentence for the
    user."""
    wanted = text.strip()
    because = because or f"--keras {wanted}"
    if wanted in _PACKAGES:
        return Keras(_PACKAGES[wanted], because=because)
    if not re.fullmatch(r"\d+(\.\d+){0,2}", wanted):
        raise ValueError(f"{text!r} is no Keras: give 3, tf_keras, or a version such as 2.15.")
    numbers = tuple(int(number) for number in wanted.split("."))
    version = wanted if len(numbers) > 1 else ""
    if numbers[0] == 3:
        return Keras("keras", version, because=because)
    if numbers[0] == 2 and numbers[1:2] < (16,):
        return Keras("tf.keras", version, version, because)
    if numbers[0] == 2:  # from 2.16 on TensorFlow's own Keras is Keras 3, and Keras 2 lives in tf_keras
        return Keras("tf_keras", version, version, because)
    raise ValueError(f"there is no Keras {wanted}: give 3, tf_keras, or a version such as 2.15.")
