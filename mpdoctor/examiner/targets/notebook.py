"""What the cells of a notebook find that a script does not: their own folder as the working directory, and IPython's
`display` and `get_ipython`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable, Mapping


class _Shell:
    """IPython's shell as far as cells call it. Its magics and shell commands do nothing, like those that are written
    with % and !. `config` says that no kernel of Jupyter's is there."""

    def __init__(self) -> None:
        self.config: dict[str, object] = {}

    def run_line_magic(self, name: str, line: str) -> None: ...

    def run_cell_magic(self, name: str, line: str, cell: str) -> None: ...

    def magic(self, line: str) -> None: ...

    def system(self, command: str) -> None: ...

    def system_raw(self, command: str) -> None: ...

    def getoutput(self, command: str) -> list[str]:
        return []


def _display(*objects: object, **options: object) -> None:
    """Print what a cell displays. `options` say how Jupyter would show it (`display_id`, `clear` …)."""
    print(*objects)


def names_in_notebook() -> Mapping[str, Callable[..., object]]:
    """What a cell can call without an import."""
    shell = _Shell()
    return {"display": _display, "get_ipython": lambda: shell}


def enter_folder(path: str) -> None:
    """Make the notebook's folder the working directory, as Jupyter does. Raises OSError where it cannot be entered."""
    os.chdir(os.path.dirname(path))
