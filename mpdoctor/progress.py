"""Progress of a long run: reported by the pipeline, shown (or not) by the command line."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told in this order: a stage, perhaps its steps, the next stage …, and one close at the end."""

    def stage(self, name: str) -> None:
        """A new stage begins: "starting Python 3.11", "importing TensorFlow", "running train.py"."""

    def steps(self, done: int, total: int) -> None:
        """How far the present stage is, where that is known."""

    def close(self) -> None:
        """End: remove what is on the screen."""


class SilentProgress:
    """Shows nothing."""

    def stage(self, name: str) -> None:
        pass

    def steps(self, done: int, total: int) -> None:
        pass

    def close(self) -> None:
        pass
