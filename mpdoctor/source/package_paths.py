"""Directories besides its own in which a package has Python look for its modules: what its `__init__` puts into
`__path__`, in terms of `__file__` and texts that stand there. Nothing is executed."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.source_record import Problem
from mpdoctor.source.reading import text_from_bytes, tree_from_text

_PATH = "__path__"
_DEEPEST = 20  # expressions within one another
_LONGEST = 4096  # characters of a path
_SAME = ("abspath", "realpath", "normpath", "fspath", "str", "Path", "PurePath", "resolve", "absolute", "as_posix")
_JOINING = ("join", "joinpath", "Path", "PurePath")


@dataclass(frozen=True)
class AddedDirectories:
    """Directories in which Python looks for a package's modules `before` the package's own directory, and `behind`
    it."""

    before: tuple[Path, ...] = ()
    behind: tuple[Path, ...] = ()


def directories_added_by(text: bytes, path: Path) -> AddedDirectories:
    """The directories that a package adds to its `__path__` and that lie in the package or beside it. `text`: of its
    `__init__`, the file at `path`."""
    decoded = text_from_bytes(text, str(path)) if _PATH.encode() in text else ""
    tree = tree_from_text(decoded, str(path)) if isinstance(decoded, str) and decoded else None
    if tree is None or isinstance(tree, Problem):
        return AddedDirectories()
    reader = _Reader(str(path))
    for statement in _statements(tree.body):
        reader.read(statement)
    around = path.parent.parent
    return AddedDirectories(_directories_inside(reader.before, around), _directories_inside(reader.behind, around))


def _directories_inside(directories: list[str], root: Path) -> tuple[Path, ...]:
    folders = (Path(os.path.normpath(directory)) for directory in directories)
    return tuple(dict.fromkeys(directory for directory in folders if directory.is_relative_to(root)))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module's top level, with those in its branches, in order."""
    waiting = body[::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
            blocks = [statement.body, getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
            blocks[1:1] = [handler.body for handler in getattr(statement, "handlers", [])]
            waiting += [inner for block in reversed(blocks) for inner in reversed(block)]


class _Reader:
    """Follows the texts that a module's top level binds to names, and what it does to `__path__`."""

    def __init__(self, file: str) -> None:
        self.before: list[str] = []
        self.behind: list[str] = []
        self._names = {"__file__": file}
        self._own = os.path.dirname(file)  # noqa: PTH120 - paths are texts here

    def read(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == _PATH:
                self._replace(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind(name, value)
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name == _PATH:
                self.behind += self._texts_in(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=arguments)):
                if name == _PATH:
                    self._change(method, arguments)

    def _bind(self, name: str, value: ast.expr) -> None:
        text = self._text(value)
        if text is None:
            self._names.pop(name, None)
        else:
            self._names[name] = text

    def _change(self, method: str, arguments: list[ast.expr]) -> None:
        match method, arguments:
            case "append", [value]:
                self.behind += self._texts_in(ast.List([value]))
            case "extend", [values]:
                self.behind += self._texts_in(values)
            case "insert", [ast.Constant(value=0), value]:
                self.before[:0] = self._texts_in(ast.List([value]))
            case "insert", [_, value]:
                self.behind += self._texts_in(ast.List([value]))

    def _replace(self, value: ast.expr) -> None:
        """`__path__ = [here, *__path__]`. Where the old path is left out, the package's own directory comes last."""
        items = list(_items(value))
        own = next((place for place, item in enumerate(items) if _is_old_path(item)), len(items))
        for item in items[own:]:
            self.behind += self._texts_in(ast.List([item]))
        self.before[:0] = [text for item in items[:own] for text in self._texts_in(ast.List([item]))]

    def _texts_in(self, value: ast.expr) -> list[str]:
        return [text for item in _items(value) if (text := self._text(item)) is not None]

    def _text(self, node: ast.expr, depth: int = 0) -> str | None:
        """The path, or the part of one, that an expression stands for."""
        if depth > _DEEPEST:
            return None

        def text_of(inner: ast.expr) -> str | None:
            return self._text(inner, depth + 1)

        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=0)) if name == _PATH:
                return self._own
            case ast.Attribute(value=inner, attr="parent"):
                return _directory_of(text_of(inner))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _path_from_parts("".join, [text_of(left), text_of(right)])
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _path_from_parts(_joined_path, [text_of(left), text_of(right)])
            case ast.JoinedStr(values=parts):
                return _path_from_parts("".join, [text_of(part) for part in parts])
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return text_of(inner)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._text_of_call(function, arguments, text_of)
        return None

    def _text_of_call(
        self, function: ast.expr, arguments: list[ast.expr], text_of: Callable[[ast.expr], str | None]
    ) -> str | None:
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        texts = [text_of(argument) for argument in arguments]
        if isinstance(function, ast.Attribute) and (name == "joinpath" or not arguments):
            texts.insert(0, text_of(function.value))  # a method of a path
        if name == "dirname" and len(texts) == 1:
            return _directory_of(texts[0])
        if name in _SAME and len(texts) == 1:
            return texts[0]
        return _path_from_parts(_joined_path, texts) if name in _JOINING else None


def _items(value: ast.expr) -> Iterator[ast.expr]:
    """The items of a list display, or of a sum of lists; any other expression is itself the only item."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                waiting += items[::-1]
            case ast.Starred(value=inner):
                waiting.append(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_list(left) or _is_list(right):
                waiting += [right, left]
            case _:
                yield node


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple)) or _is_old_path(node)


def _is_old_path(node: ast.expr) -> bool:
    """Whether it is `__path__`, or what is made of it: `list(__path__)`, `extend_path(__path__, __name__)`."""
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return isinstance(node, ast.Name) and node.id == _PATH


def _directory_of(path: str | None) -> str | None:
    return None if path is None else os.path.dirname(path)  # noqa: PTH120


def _joined_path(parts: list[str]) -> str:
    return os.path.join(*parts)  # noqa: PTH118


def _path_from_parts(combine: Callable[[list[str]], str], texts: list[str | None]) -> str | None:
    """The path put together of these parts; None where a part is not known, where there is none, or where they are too
    long."""
    known = [text for text in texts if text is not None]
    if not known or len(known) < len(texts) or sum(map(len, known)) > _LONGEST:
        return None
    return combine(known)
