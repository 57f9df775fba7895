"""An error behind a custom loop, and one in it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from mpdoctor.examiner.probe.loop_end import came_behind_loop, came_between_steps, lines_running

pytestmark = pytest.mark.fast

PROGRAMS = {
    "behind": ("for x in [1, 2]:\n    step(x)\n1 / 0\n", True),
    "in it": ("for x in [1, 2]:\n    step(x)\n    1 / 0\n", False),
    "in the loop around it": ("for epoch in [1, 2]:\n    for x in [1, 2]:\n        step(x)\n    1 / 0\n", False),
    "in the step": ("for x in [1, 2]:\n    step(x); 1 / 0\n", False),
    "behind the function with the loop": ("def train():\n    for x in [1]:\n        step(x)\ntrain()\n1 / 0\n", True),
    "behind the loop of the function": ("def train():\n    for x in [1]:\n        step(x)\n    1 / 0\ntrain()\n", True),
    "in a function called behind it": ("def show():\n    1 / 0\nfor x in [1]:\n    step(x)\nshow()\n", True),
    "in another function of the loop": (
        "def show():\n    1 / 0\nfor x in [1]:\n    step(x)\n    show()\n",
        False,
    ),
    "a list of losses": ("losses = [step(x)\n          for x in [1]]\n1 / 0\n", True),
    "in the list": ("losses = [(step(x),\n           1 / 0)\n          for x in [1]]\n", False),
    "in one call over several lines": ("print(step(1),\n      1 / 0)\n", False),
    "while": ("n = 0\nwhile n < 2:\n    n += 1\n    step(n)\nimport no_such_module_at_all\n", True),
    "behind the inner loop of a function": (
        "def epoch():\n    for x in [1]:\n        step(x)\nfor e in [1, 2]:\n    epoch()\n    1 / 0\n",
        False,
    ),
    "in a function that is called again": (
        "def once(x):\n    step(x)\n    if x == 2:\n        1 / 0\nfor x in [1, 2]:\n    once(x)\n",
        False,
    ),
}
BETWEEN = [PROGRAMS["in the loop around it"][0], PROGRAMS["behind the inner loop of a function"][0]]


@pytest.mark.parametrize(("text", "is_behind"), PROGRAMS.values(), ids=PROGRAMS)
def test_where_the_error_came(text: str, is_behind: bool, tmp_path: Path) -> None:
    path, running = tmp_path / "train.py", []
    path.write_text(textwrap.dedent(text))

    def step(number: int) -> None:
        running.append(lines_running())

    with pytest.raises((ZeroDivisionError, ImportError)) as raised:
        exec(compile(text, str(path), "exec"), {"step": step})
    own = [(code, line) for code, line in running[0] if code.co_filename == str(path)]
    frames = raised.value.with_traceback(raised.value.__traceback__ and raised.value.__traceback__.tb_next)
    assert came_behind_loop(own, frames) is is_behind
    assert came_between_steps(own, frames) is (text in BETWEEN) or is_behind  # which is asked first
