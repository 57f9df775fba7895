"""The progress bar, on standard error."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from mpdoctor.reporters.printable import one_line


class TerminalProgress:
    """A spinner, the name of the stage, where its steps are counted a bar and their number, and the time so far."""

    def __init__(self) -> None:
        self.bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self.task: TaskID | None = None

    def stage(self, name: str) -> None:
        description = one_line(name)  # a file's name may hold anything, and a script can name a stage, too
        if self.task is None:
            self.bars.start()
            self.task = self.bars.add_task(description, total=None, count="")
        else:
            self.bars.update(self.task, description=description, total=None, completed=0, count="")

    def steps(self, done: int, total: int) -> None:
        if self.task is not None:
            self.bars.update(self.task, completed=done, total=total, count=f"{done} of {total}")

    def close(self) -> None:
        self.bars.stop()
        if self.task is not None:
            self.bars.console.show_cursor()  # a signal may have come while it was being stopped
