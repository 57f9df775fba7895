"""The contents of arrays and tables that a program writes out itself."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation, Read
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import (
    MISSING,
    Api,
    Attribute,
    Collection,
    Item,
    Known,
    Value,
    is_api,
    known,
    leaves,
    options,
)
from mpdoctor.semantics.source.programs.branches import happen_together
from mpdoctor.semantics.source.programs.data.pandas_tables import (
    READ,
    WRITTEN_OUT,
    is_column_of_text,
    tables_behind,
    whole_table,
)

ARRAYS = (
    *("numpy.array", "numpy.asarray", "tensorflow.constant", "tensorflow.convert_to_tensor"),
    *("pandas.Series", "pandas.Index"),
)
FILLED = {"numpy.zeros": 1, "numpy.ones": 1, "numpy.empty": 1, "numpy.full": 2}  # position of `dtype`
CSV_READERS = ("csv.reader", "csv.DictReader")
_LEAVING_TABLES = ("pandas", "numpy", "builtins", "sklearn", "seaborn", "matplotlib")
CONVERTING = ("astype", "to_numpy")
DATES = ("pandas.to_datetime", "pandas.date_range", "pandas.to_timedelta", "pandas.DatetimeIndex")


def non_numeric_content(facts: SourceFacts, value: Value) -> str | None:
    """What an array or table holds that is no number, None if it is certainly or perhaps numeric."""
    if _text_columns(facts, value) or any(_text_columns(facts, *taken) for taken in _tables_as_array(facts, value)):
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
    """What np.array(…) and the like hold: by the dtype, else by what they are made from."""
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
    """Whether it is `row["Age"]` of Python's own csv module, which converts nothing unless it is told how to read
    quotes."""
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


def _tables_as_array(facts: SourceFacts, value: Value) -> Iterator[tuple[Value, Read | Call]]:
    """The table of `table.to_numpy()`, `table.values` and `np.array(table)`, and where it is taken as an array."""
    if isinstance(value, Attribute) and value.name == "values":
        yield from ((value.of, read) for read in facts.reads if read.of is value.of and read.name == "values")
    elif isinstance(value, Call):
        is_array = is_api(value.callee, "numpy.array", "numpy.asarray") and len(value.given) == 1
        table = value.receiver if value.method == "to_numpy" and not value.given else None
        table = value.given[0] if is_array else table
        yield from () if table is None else ((table, value),)


def _text_columns(facts: SourceFacts, value: Value | None, taken: Read | Call | None = None) -> set[object]:
    """The columns of a pandas table that certainly hold text: of one that the program writes out, reads as text or has
    filled with text before, or of a choice of its columns or rows. Not those that the program changes in the table, or
    takes out of it."""
    if isinstance(value, Item):
        chosen = value.index.items if isinstance(value.index, Collection) else (value.index,)
        return _text_columns(facts, value.of, taken) & ({known(column) for column in chosen} - {MISSING})
    table = whole_table(value)
    if table is None:
        return set()
    columns = {*_columns_made_of_text(table), *_columns_filled_with_text(facts, tables_behind(value), taken)}
    changed = set(_changed_columns(facts, table)) if columns else set()
    return set() if MISSING in changed else columns - changed


def _columns_filled_with_text(facts: SourceFacts, tables: list[Value], taken: Read | Call | None) -> Iterator[object]:
    """The names of the columns in which the program writes text before the table, the first of `tables`, is taken as an
    array."""
    if taken is None or _may_be_changed_elsewhere(facts, tables[-1]):
        return
    for write in facts.writes:
        is_before = write.order < taken.order and happen_together(write.context, taken.context)
        if is_before and any(write.of is table for table in tables) and is_column_of_text(write.value):
            yield known(write.index)


def _may_be_changed_elsewhere(facts: SourceFacts, table: Value) -> bool:
    """Whether a table is given to something that is not followed, or kept by an object, and may be changed there."""
    calls = (call for call in facts.calls if call.result is None and not _leaves_tables(call.callee))
    handed_out = [given for call in calls for given in call.given]
    handed_out += [write.value for write in facts.writes if write.name]
    return any(_is_same_table(leaf, table) for value in handed_out for leaf in leaves(value))


def _leaves_tables(callee: Value) -> bool:
    return isinstance(callee, Api) and callee.root in _LEAVING_TABLES


def _columns_made_of_text(table: Call) -> Iterator[object]:
    """The names of the columns that hold text from the start: by what the table is written out from, or by the dtypes
    that the reader is given."""
    if is_api(table.callee, WRITTEN_OUT):
        yield from (name for name, column in _entries(table.argument(0, "data")) if _holds_text(column))
    elif is_api(table.callee, READ):
        yield from (name for name, dtype in _entries(table.keyword("dtype")) if _is_text_dtype(dtype))


def _entries(value: Value | None) -> Iterator[tuple[object, Value]]:
    """The names and values of a dict that is written out."""
    if isinstance(value, Collection) and value.kind == "dict":
        yield from zip(map(known, value.keys), value.items, strict=False)


def _changed_columns(facts: SourceFacts, table: Call) -> Iterator[object]:
    """The columns that a program writes, deletes, pops or changes in place, in a table or a copy of it, but for those
    that hold text then; MISSING where it may be any of them."""
    for write in facts.writes:
        if _is_same_table(write.of, table) and not is_column_of_text(write.value):
            names = write.index.items if isinstance(write.index, Collection) else (write.index,)
            yield from map(known, names)
        elif isinstance(write.of, Attribute) and _is_same_table(write.of.of, table):  # `table.loc[…] = …`
            yield MISSING
    for call in facts.calls:
        yield from _changed_by_call(call, table)


def _changed_by_call(call: Call, table: Call) -> Iterator[object]:
    of, is_in_place = call.receiver, known(call.keyword("inplace")) is True
    if isinstance(of, Item) and is_in_place and _is_same_table(of.of, table):
        yield known(of.index)
    elif call.method == "pop" and _is_same_table(of, table):
        yield known(call.argument(0, "item"))
    elif (call.method == "update" or is_in_place) and _is_same_table(of, table):
        yield MISSING


def _is_same_table(value: Value | None, table: Value) -> bool:
    """Whether a value is this table, a copy of it or some of its rows, or may be: in a loop over several."""
    return any(option is table or whole_table(option) is table for option in options(value))
