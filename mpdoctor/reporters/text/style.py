"""Signs, counts and numbers, and names of the user's on one line."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass
from mpdoctor.reporters.printable import one_line, shortened

LONGEST_NAME = 120
READABLE = 100  # columns of sentences, however wide the terminal is: source lines and tables take all


@dataclass(frozen=True)
class Style:
    """`blocks`: whether characters beyond ASCII can be shown."""

    width: int = 80
    blocks: bool = True

    def sign(self, beautiful: str, plain: str) -> str:
        return beautiful if self.blocks else plain

    @property
    def dot(self) -> str:
        return self.sign(" · ", ", ")

    @property
    def arrow(self) -> str:
        return self.sign("→", "->")

    @property
    def dash(self) -> str:
        return self.sign("–", "-")

    @property
    def more(self) -> str:
        return self.sign("…", "...")

    def name(self, text: str, longest: int = LONGEST_NAME) -> str:
        """A name of the user's, on one line."""
        return shortened(one_line(text), longest, self.more)

    def listed(self, names: list[str] | tuple[str, ...], most: int = 4) -> str:
        shown = [self.name(name, 60) for name in names[:most]]
        left = len(names) - len(shown)
        return ", ".join(shown) + (f" and {left} more" if left else "")


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def number_text(value: float) -> str:
    """A number as people write it: 32768, 2.91e-11, 0.0427, inf."""
    if value == value and abs(value) < 1e7 and value == int(value):
        return str(int(value))
    return f"{value:.3g}"
