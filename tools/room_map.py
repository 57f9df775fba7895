"""The rooms of the architecture page, read from the code itself: a table of them, and a map with imports as arrows.

An arrow is left out where a path of other arrows says the same. The picture is SVG in the reader's own colour and
font: it asks nobody for anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH, BOX, HEIGHT, ROW = 900, 168, 40, 86  # pixels: the picture, a box, from row to row
NOT_SHOWN = frozenset(("__init__", "__main__"))

Imports = Mapping[str, frozenset[str]]


def map_of_rooms(package: str) -> str:
    """The packages and modules directly below one, each below those that import it, as SVG."""
    imports = imports_between_rooms(folder_of(package))
    return svg_from_rows(rows_from_imports(imports), imports)


def table_of_rooms(package: str) -> str:
    """The same in a table, with the first sentence of each room's docstring."""
    lines = ["| Room | What it holds |", "|---|---|"]
    folder = folder_of(package)
    for room in (room for row in rows_from_imports(imports_between_rooms(folder)) for room in row):
        file = folder / room / "__init__.py"
        lines.append(f"| `{room}` | {_first_sentence(file if file.exists() else folder / f'{room}.py')} |")
    return "\n".join(lines)


def folder_of(package: str) -> Path:
    return ROOT.joinpath(*package.split("."))


def _first_sentence(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph)[0].replace("|", r"\|")


def imports_between_rooms(folder: Path) -> dict[str, frozenset[str]]:
    """Which rooms each room imports. A room is a package or a module directly below the folder; imports inside of
    functions count, those for the type checker alone do not."""
    prefix = ".".join(folder.relative_to(ROOT).parts) + "."
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).with_suffix("").parts[0]
        if room in NOT_SHOWN:
            continue
        imported = {name.removeprefix(prefix).split(".")[0] for name in _imported(path) if name.startswith(prefix)}
        found.setdefault(room, set()).update(imported - {room})
    return {room: frozenset(imported & set(found)) for room, imported in found.items()}


def _imported(path: Path) -> Iterable[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {id(inner) for node in ast.walk(tree) if _is_for_types(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def rows_from_imports(imports: Imports) -> list[list[str]]:
    """Each room one row below the lowest of those that import it; rooms that import each other share a row."""
    reach = {room: _reached(room, imports) for room in imports}

    def depth(room: str) -> int:
        above = [other for other in imports if room in reach[other] and other not in reach[room]]
        return 1 + max(map(depth, above), default=-1)

    rows: dict[int, list[str]] = {}
    for room in sorted(imports):
        rows.setdefault(depth(room), []).append(room)
    return [rows[number] for number in sorted(rows)]


def arrows_from_imports(imports: Imports) -> list[tuple[str, str]]:
    """The imports that no path over other rooms says already."""
    reach = {room: _reached(room, imports) for room in imports}
    return [
        (room, imported)
        for room in sorted(imports)
        for imported in sorted(imports[room])
        if not any(imported in reach[other] and room not in reach[other] for other in imports[room] - {imported})
    ]


def _reached(room: str, imports: Imports) -> frozenset[str]:
    reached: set[str] = set()
    waiting = [room]
    while waiting:
        for imported in imports[waiting.pop()] - reached:
            reached.add(imported)
            waiting.append(imported)
    return frozenset(reached)


def svg_from_rows(rows: list[list[str]], imports: Imports) -> str:
    centres = {
        room: (WIDTH * (2 * column + 1) // (2 * len(row)), ROW * number + HEIGHT // 2 + 4)
        for number, row in enumerate(rows)
        for column, room in enumerate(row)
    }
    arrows = [
        _arrow(centres[room], centres[to]) for room, to in arrows_from_imports(imports) if {room, to} <= {*centres}
    ]
    boxes = [_box(room, *centre) for room, centre in centres.items()]
    height = ROW * (len(rows) - 1) + HEIGHT + 8
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Which room imports which" '
        'xmlns="http://www.w3.org/2000/svg" style="max-width:100%;height:auto" font-family="inherit" font-size="15">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>\n' + "\n".join((*arrows, *boxes)) + "\n</svg>"
    )


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = start, end
    if y1 == y2:  # in one row
        side = BOX // 2 if x1 < x2 else -BOX // 2
        path = f"M{x1 + side} {y1}L{x2 - side} {y2}"
    else:
        y1, y2 = y1 + HEIGHT // 2, y2 - HEIGHT // 2
        middle = (y1 + y2) // 2
        path = f"M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".45" marker-end="url(#tip)"/>'


def _box(room: str, x: int, y: int) -> str:
    return (
        f'<rect x="{x - BOX // 2}" y="{y - HEIGHT // 2}" width="{BOX}" height="{HEIGHT}" rx="6" '
        'fill="var(--md-default-bg-color, #fff)" stroke="currentColor"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="currentColor">{escape(room)}</text>'
    )
