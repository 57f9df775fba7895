"""Tables of pandas: which calls make one, and which give the same columns again."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.values import Value, is_api

WRITTEN_OUT, READ = "pandas.DataFrame", "pandas.read_csv"
_CHOOSING_ROWS = (
    *("copy", "sample", "head", "tail", "dropna", "drop_duplicates", "reset_index", "sort_values", "sort_index"),
)


def whole_table(value: Value | None) -> Call | None:
    """The call that makes a table, or the one that a copy or a choice of rows is made of."""
    while isinstance(value, Call) and value.method in _CHOOSING_ROWS:
        value = value.receiver
    return value if isinstance(value, Call) and is_api(value.callee, WRITTEN_OUT, READ) else None
