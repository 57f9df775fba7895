"""The contents of arrays and tables that a program writes out itself."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import MISSING, Api, Attribute, Collection, Item, Known, Value, is_api, known, options
from mpdoctor.semantics.source.programs.pandas_tables import READ, WRITTEN_OUT, whole_table

ARRAYS = (
    *("numpy.array", "numpy.asarray", "tensorflow.constant", "tensorflow.convert_to_tensor"),
    *("pandas.Series", "pandas.Index"),
)
FILLED = {"numpy.zeros": 1, "numpy.ones": 1, "numpy.empty": 1, "numpy.full": 2}  # position of `dtype`
CSV_READERS = ("csv.reader", "csv.DictReader")
CONVERTING = ("astype", "to_numpy")
DATES = ("pandas.to_datetime", "pandas.date_range", "pandas.to_timedelta", "pandas.DatetimeIndex")


def non_numeric_content(facts: SourceFacts, value: Value) -> str | None:
    """What an array or table holds that is no number, None if it is certainly or perhaps numeric."""
    if _text_columns(facts, value) or _text_columns(facts, _table_as_array(value)):
        return "strings"
    if isinstance(value, Collection):
        return "strings" if value.kind == "list" and value.items and _holds_text(value) else None
    if not isinstance(value, Call):
        return None
    if isinstance(value.callee, Api):
        if value.callee.name in DATES:
            return "dates"
        if value.callee.name in FILLED:
            return "Python objects" if _is_object(value.argument(FILLED[value.callee.name], "dtype")) else None
        if value.callee.is_(*ARRAYS):
            return _content_of_array(value)
    return _content_by_dtype(value.argument(0, "dtype")) if value.method in CONVERTING else None


def _content_of_array(array: Call) -> str | None:
    """Of np.array(…) and the like: by its dtype, else by what it is made from."""
    dtype, content = array.argument(1, "dtype"), array.argument(0)
    name = known(dtype)
    if dtype is None or name is None:
        return "strings" if _holds_text(content) else None
    if _is_object(dtype):
        return "strings" if _holds_text(content) else "Python objects (dtype=object)"
    if isinstance(name, str) and name.startswith(("datetime64", "M8")):
        return "dates"
    return _content_by_dtype(dtype)


def _content_by_dtype(dtype: Value | None) -> str | None:
    if _is_object(dtype):
        return "Python objects"
    return "strings" if _is_text_dtype(dtype) else None


def _is_object(value: Value | None) -> bool:
    return known(value) in ("object", "O") or is_api(value, "builtins.object", "numpy.object_", "numpy.object")


def _is_text_dtype(value: Value | None) -> bool:
    text = known(value)
    named = isinstance(text, str) and text.startswith(("str", "U", "<U", "S", "|S"))
    return named or is_api(value, "builtins.str", "numpy.str_") or dtype_named(value) == "string"


def _holds_text(value: Value | None, depth: int = 0) -> bool:
    """Whether a written-out list certainly holds a string somewhere."""
    for option in map(_repeated, options(value)):
        if isinstance(option, Collection) and option.kind in ("list", "tuple") and depth < 4:
            if not any(_holds_text(item, depth + 1) for item in option.items[:200]):
                return False
        elif not (isinstance(option, Known) and isinstance(option.value, (str, bytes))) and not _is_cell_of_csv(option):
            return False
    return value is not None


def _is_cell_of_csv(value: Value) -> bool:
    """`row["Age"]` of Python's own csv module, which converts nothing unless it is told how to read quotes."""
    row = value.of if isinstance(value, Item) else None
    reader = row.of if isinstance(row, Item) else None
    if isinstance(reader, Call) and is_api(reader.callee, "builtins.list"):
        reader = reader.argument(0)
    if not isinstance(reader, Call) or not is_api(reader.callee, *CSV_READERS):
        return False
    return not reader.open and reader.keyword("quoting") is None and reader.keyword("dialect") is None


def _repeated(value: Value) -> Value:
    """The list of `["a", "b"] * 100`."""
    if not isinstance(value, Operation) or value.operator != "*":
        return value
    lists = [part for part in value.operands if isinstance(part, Collection)]
    return lists[0] if len(lists) == 1 else value


def _table_as_array(value: Value) -> Value | None:
    """The table of `table.to_numpy()` and `table.values`."""
    if isinstance(value, Attribute):
        return value.of if value.name == "values" else None
    return value.receiver if isinstance(value, Call) and value.method == "to_numpy" and not value.given else None


def _text_columns(facts: SourceFacts, value: Value | None) -> set[object]:
    """The columns of a pandas table that certainly hold text: of one that the program writes out or reads as text, or
    of a choice of its columns or rows. Not those that the program changes in the table, or takes out of it."""
    if isinstance(value, Item):
        chosen = value.index.items if isinstance(value.index, Collection) else (value.index,)
        return _text_columns(facts, value.of) & {known(column) for column in chosen}
    table = whole_table(value)
    columns = set(_columns_made_of_text(table)) if table is not None else set()
    changed = set(_changed_columns(facts, table)) if table is not None and columns else set()
    return set() if MISSING in changed else columns - changed


def _columns_made_of_text(table: Call) -> Iterator[object]:
    """By what they are written out from, or by the dtype that a reader is given for them."""
    if is_api(table.callee, WRITTEN_OUT):
        yield from (name for name, column in _entries(table.argument(0, "data")) if _holds_text(column))
    elif is_api(table.callee, READ):
        yield from (name for name, dtype in _entries(table.keyword("dtype")) if _is_text_dtype(dtype))


def _entries(value: Value | None) -> Iterator[tuple[object, Value]]:
    """The names and values of a dict that is written out."""
    if isinstance(value, Collection) and value.kind == "dict":
        yield from zip(map(known, value.keys), value.items, strict=False)


def _changed_columns(facts: SourceFacts, table: Call) -> Iterator[object]:
    """The columns that a program writes, deletes, pops or changes in place, in a table or a copy of it; MISSING where
    it may be any of them."""
    for write in facts.writes:
        if _is_same_table(write.of, table):
            names = write.index.items if isinstance(write.index, Collection) else (write.index,)
            yield from map(known, names)
        elif isinstance(write.of, Attribute) and _is_same_table(write.of.of, table):  # `table.loc[…] = …`
            yield MISSING
    for call in facts.calls:
        of, is_in_place = call.receiver, known(call.keyword("inplace")) is True
        if isinstance(of, Item) and is_in_place and _is_same_table(of.of, table):
            yield known(of.index)
        elif call.method == "pop" and _is_same_table(of, table):
            yield known(call.argument(0, "item"))
        elif (call.method == "update" or is_in_place) and _is_same_table(of, table):
            yield MISSING


def _is_same_table(value: Value | None, table: Call) -> bool:
    """Whether a value is this table, a copy of it or some of its rows."""
    return value is table or whole_table(value) is table
