"""Tables of pandas: which calls make one, which give the same columns again, and which columns are filled with text."""

from __future__ import annotations

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Attribute, Collection, Item, Value, is_api, known, options

WRITTEN_OUT, READ = "pandas.DataFrame", "pandas.read_csv"
_CHOOSING_ROWS = (
    *("copy", "sample", "head", "tail", "dropna", "drop_duplicates", "reset_index", "sort_values", "sort_index"),
)
_GIVING_TEXT = ("lower", "upper", "strip", "lstrip", "rstrip", "title", "capitalize", "replace", "slice", "zfill")


def whole_table(value: Value | None) -> Call | None:
    """The call that makes a table, or the one that a copy or a choice of rows is made of."""
    made = tables_behind(value)[-1:]
    is_table = bool(made) and isinstance(made[0], Call) and is_api(made[0].callee, WRITTEN_OUT, READ)
    return made[0] if is_table and isinstance(made[0], Call) else None


def tables_behind(value: Value | None) -> list[Value]:
    """The value, what it is a copy or a choice of rows of, and so on."""
    tables = [value] if value is not None else []
    while isinstance(value, Call) and value.method in _CHOOSING_ROWS and value.receiver is not None:
        value = value.receiver
        tables.append(value)
    return tables


def is_column_of_text(value: Value) -> bool:
    """Whether a column that is written so certainly holds text: texts alone, or a column that is made text, or in which
    a program fills or replaces by words, which it would not do among numbers."""
    if isinstance(value, Operation):  # any number in the column would raise
        return value.operator == "+" and any(isinstance(known(operand), str) for operand in value.operands)
    return _is_made_by_call(value) if isinstance(value, Call) else _is_word(value)


def _is_made_by_call(call: Call) -> bool:
    if is_api(call.callee, "numpy.where"):
        return len(call.args) == 3 and all(_is_word(option) for given in call.args[1:] for option in options(given))
    of = call.receiver
    if isinstance(of, Attribute):
        return of.name == "str" and call.method in _GIVING_TEXT
    return isinstance(of, Item) and not call.open and _is_made_text(call.method, call.args)


def _is_made_text(method: str, given: tuple[Value, ...]) -> bool:
    """Whether this method of a column makes it text: `astype(str)`, `map(str)`, `fillna("none")`, `replace({"m":
    "male"})`."""
    if len(given) == 1 and method in ("astype", "map", "apply"):
        is_named = method == "astype" and known(given[0]) in ("str", "string")
        return is_named or is_api(given[0], "builtins.str")
    if len(given) == 1 and method == "replace" and isinstance(given[0], Collection):
        given = given[0].parts if given[0].kind == "dict" and not given[0].open else ()
    return method in ("fillna", "replace") and len(given) >= (2 if method == "replace" else 1) and _are_words(given)


def _are_words(values: tuple[Value, ...]) -> bool:
    return all(map(_is_word, values))


def _is_word(value: Value) -> bool:
    """Whether it is a text that no number is written as: "nan" may be read as one."""
    text = known(value)
    return isinstance(text, str) and any(map(str.isalpha, text)) and text.lower() not in ("nan", "inf", "infinity")
