"""Edits that give a dtype to layers which a running program was seen to make: at the call that its line shows, and
wherever else it must stand for the layer to take it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import with_keyword
from mpdoctor.semantics.source.edits.given_dtypes import FLOAT32
from mpdoctor.semantics.source.texts.syntax_trees import called, class_around, location_of, tree_of
from mpdoctor.semantics.source.texts.written import written_at

DTYPE = "dtype"

SourceAt = Callable[[str], SourceFacts | None]  # by path


class NoPlace(Exception):
    """No edit gives the layer that dtype. The text says why, in a clause."""


@dataclass(frozen=True)
class MadeLayer:
    """A live layer: its path in the model, its class, the line that made it and the line of its class if that is the
    user's. `with_parts`: whether layers that it is given take their own dtype, as that in a Bidirectional. `turn`:
    which of how many layers of its class it is that the line makes, in the order in which they are made; (0, 0) where
    nobody knows. `beside_others`: whether the line makes layers of other classes, too, which counts where its call does
    not name the class."""

    path: str
    class_name: str
    made_at: Location | None
    class_at: Location | None = None
    with_parts: bool = False
    turn: tuple[int, int] = (0, 0)
    beside_others: bool = False


def given_dtype(layer: MadeLayer, source_at: SourceAt, dtype: str = FLOAT32) -> tuple[Edit, ...]:
    """The edits after which the layer is made with this dtype.

    Raises NoPlace."""
    if layer.made_at is None:
        raise NoPlace(f"no line of the program's makes `{layer.path}`")
    facts = _source(source_at, layer.made_at.path, layer.path)
    edits: list[Edit] = []
    for call in _making(facts, layer):
        for making in (call, *(_layers_given(call) if layer.with_parts else ())):
            own = layer.class_at if making is call else None
            home = facts if own is None else _source(source_at, own.path, layer.path)
            name, line = (called(making), 0) if own is None else (layer.class_name, own.line)
            beside_others = layer.beside_others and called(making) != layer.class_name
            made = replace(layer, beside_others=beside_others)
            edits.append(_edit(facts, making, made, _class(home, name, line), home, dtype))
    return tuple(dict.fromkeys(edits))


def _source(source_at: SourceAt, path: str, layer: str) -> SourceFacts:
    facts = source_at(path)
    if facts is None or tree_of(facts) is None:
        raise NoPlace(f"the source of {path}, which makes `{layer}`, is not at hand")
    return facts


def makings_of_class_around(facts: SourceFacts, line: int) -> tuple[str, list[Location]]:
    """The name of the innermost class whose body holds this line, and the places of the calls of that name; ("", [])
    outside of classes."""
    around, tree = class_around(facts, line), tree_of(facts)
    if around is None or tree is None:
        return "", []
    name, nodes = around.name, ast.walk(tree)
    return name, [location_of(facts, node) for node in nodes if isinstance(node, ast.Call) and called(node) == name]


def line_of_class_around(facts: SourceFacts, line: int) -> int | None:
    """The line of the innermost class whose body holds this one."""
    around = class_around(facts, line)
    return around.lineno if around is not None else None


# --- which call makes it ----------------------------------------------------------------------------------------------
def _making(facts: SourceFacts, layer: MadeLayer) -> list[ast.Call]:
    """The calls on the layer's line that may have made it: those that give its name; else, of the calls of its class on
    the nearest line, the one whose turn it was. Where one call makes several layers (a loop, a function), all of them
    get the dtype."""
    assert layer.made_at is not None
    line, tree = layer.made_at.line, tree_of(facts)
    assert tree is not None
    around = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= line <= _end(node)]
    fitting = _calls_of_class(around, layer, tree)
    named = [call for call in fitting if _name_given(call) == layer.path.rsplit("/", 1)[-1]]
    nearest = max((call.lineno for call in fitting), default=0)
    calls = named or [call for call in fitting if call.lineno == nearest]
    if not calls:
        raise NoPlace(f"line {line} of {facts.path} shows no call that makes `{layer.path}`")
    number, count = layer.turn
    if len(calls) == count and not named:
        return [sorted(calls, key=lambda call: call.col_offset)[number]]
    return calls


def _calls_of_class(calls: list[ast.Call], layer: MadeLayer, tree: ast.Module) -> list[ast.Call]:
    """The calls of the layer's class by its name; without any, calls of classes under any name, which may be an alias;
    without any, calls of variables."""
    return (
        [call for call in calls if called(call) == layer.class_name]
        or [call for call in calls if called(call)[:1].isupper()]
        or [call for call in calls if _is_of_a_value(call, tree)]
    )


def _is_of_a_value(call: ast.Call, tree: ast.Module) -> bool:
    """Whether what is called is a value: `BLOCKS[kind](8)`, `getattr(layers, kind)(8)`, `make(8)` where `make` is a
    variable that holds a class."""
    if isinstance(call.func, ast.Name):
        return call.func.id not in _defined(tree) and call.func.id not in vars(builtins)
    return isinstance(call.func, ast.Subscript) or (isinstance(call.func, ast.Call) and called(call.func) == "getattr")


def _defined(tree: ast.Module) -> set[str]:
    """The names of the functions that the file defines."""
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def _end(node: ast.expr) -> int:
    return node.end_lineno or node.lineno


def _name_given(call: ast.Call) -> str | None:
    values = (word.value for word in call.keywords if word.arg == "name")
    return next((str(value.value) for value in values if isinstance(value, ast.Constant)), None)


def _layers_given(call: ast.Call) -> Iterator[ast.Call]:
    for argument in [*call.args, *(word.value for word in call.keywords)]:
        for node in ast.walk(argument):
            if isinstance(node, ast.Call) and called(node)[:1].isupper():
                yield node


# --- where the dtype goes ---------------------------------------------------------------------------------------------
def _edit(
    facts: SourceFacts, call: ast.Call, layer: MadeLayer, own: ast.ClassDef | None, home: SourceFacts, dtype: str
) -> Edit:
    """The edit that gives a layer its dtype: in its class, where that takes none, else in the call. `own`: the class
    that is called, which stands in `home`."""
    in_class = None if own is None else _in_class(home, own, dtype, layer)
    return in_class or _with_dtype(facts, call, dtype, layer)


def _class(facts: SourceFacts, name: str, line: int = 0) -> ast.ClassDef | None:
    """The class of this name; of several that on the line, else the first."""
    tree = tree_of(facts)
    classes = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name]
    return next((definition for definition in classes if definition.lineno == line), next(iter(classes), None))


def _in_class(facts: SourceFacts, own: ast.ClassDef, dtype: str, layer: MadeLayer) -> Edit | None:
    """The edit of a class whose `__init__` hands no dtype on: at the call of its base's `__init__`, so for all
    instances. None where the class takes a dtype."""
    initializer = next((m for m in own.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    if initializer is None:
        return _in_base(facts, own, dtype, layer)
    above = next(_calls_above(initializer), None)
    takes = initializer.args
    if any(parameter.arg == DTYPE for parameter in (*takes.args, *takes.kwonlyargs)):
        return None
    if above is None:
        raise NoPlace(f"`{own.name}.__init__` hands no dtype to the class above it")
    if takes.kwarg is not None and _hands_on(above, takes.kwarg.arg):
        return _beside_what_is_given(facts, above, takes.kwarg.arg, dtype) if layer.beside_others else None
    return _in_base(facts, own, dtype, layer) or _with_dtype(facts, above, dtype, layer)


def _beside_what_is_given(facts: SourceFacts, above: ast.Call, name: str, dtype: str) -> Edit | None:
    """`**{"dtype": "float32", **kwargs}` in the place of `**kwargs`, by which a dtype that is given counts."""
    handed = [word.value for word in above.keywords if word.arg is None and isinstance(word.value, ast.Name)]
    names = [value for value in handed if value.id == name]
    return Edit(location_of(facts, names[0]), f'{{"{DTYPE}": {dtype}, **{name}}}') if len(names) == 1 else None


def _in_base(facts: SourceFacts, own: ast.ClassDef, dtype: str, layer: MadeLayer) -> Edit | None:
    """What there is to do in a class of the same file that it derives from; None where that takes a dtype."""
    for base in own.bases:
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        above = _class(facts, name)
        if above is not None and above is not own:
            return _in_class(facts, above, dtype, layer)
    return None


def _calls_above(initializer: ast.FunctionDef) -> Iterator[ast.Call]:
    """The calls of the base's `__init__`: `super().__init__(…)`, `Layer.__init__(self, …)`."""
    for node in ast.walk(initializer):
        if isinstance(node, ast.Call) and called(node) == "__init__":
            yield node


def _hands_on(call: ast.Call, name: str) -> bool:
    """Whether the call is given `**name`, perhaps as a part of another dictionary."""
    return any(
        isinstance(node, ast.Name) and node.id == name
        for word in call.keywords
        if word.arg is None
        for node in ast.walk(word.value)
    )


def _with_dtype(facts: SourceFacts, call: ast.Call, dtype: str, layer: MadeLayer) -> Edit:
    place = location_of(facts, call)
    given = with_keyword(facts, place, DTYPE, dtype) or _put_last(facts, place, f"{DTYPE}={dtype}")
    if given is None:
        raise NoPlace(f"the call at line {place.line} of {facts.path}, which makes `{layer.path}`, cannot be edited")
    return given


def _put_last(facts: SourceFacts, call: Location, argument: str) -> Edit | None:
    """The edit that adds an argument behind all others, `*args` and `**kwargs` included, whose contents are unknown."""
    written = written_at(facts, call)
    if written is None or not written.arguments:
        return None
    last = written.arguments[-1].end
    return Edit(written.span(last, last), f", {argument}")
