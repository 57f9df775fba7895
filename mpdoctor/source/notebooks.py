"""Notebooks: the code of all cells as one program, without what IPython alone understands.

`%matplotlib inline`, `!pip install`, `model.fit?` and the like become `pass`; `%time x = f()` keeps its statement, and
`%env NAME=value` sets the variable; a cell that begins with `%%bash` or `%%html` is no Python and left out, one that
begins with `%%time` is. The prompts of a session, `>>> ` and `In [1]: `, are taken away as IPython does it. Lines stay
where they are. A cell that cites in BibTeX is to be copied and not run. A cell that is no Python even so is told, and
the others are read.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mpdoctor.facts.location import Cells, Location, lines_of
from mpdoctor.program.source_record import Problem
from mpdoctor.source.reading import Source, problem_of_many_parts, tree_from_text

SUFFIX = ".ipynb"
MOST_PARTS = 2_000_000  # lists and objects, of which Python makes 70 bytes each; images and tables of text need none
SAVED_AGAIN = "Save it again as a notebook"
# Cell magics whose body is Python that runs in the notebook's own namespace.
_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "snakeviz", "wandb", "heat", "scalene")
# Magics that IPython also understands without the %.
_AUTOMAGIC = "pip|conda|mamba|cd|ls|ll|cat|cp|mkdir|mv|rm|rmdir|man|less|more|load_ext|matplotlib|autoreload"
_LINE_MAGIC = re.compile(
    rf"""(?P<indent>\s*)(?:[%!?]|(?:{_AUTOMAGIC})[ \t]+[\w./~$"'*{{-]|[\w.\[\]'"]+\?{{1,2}}\s*$)"""
)
_ASSIGNED_MAGIC = re.compile(r"(?P<target>\s*[A-Za-z_][\w.,\s\[\]'\"]*?=\s*)[%!]")
_COMPOUND = "async|class|def|for|if|try|while|with"  # statements that nothing may stand before on their line
# A prompt in a cell's first line, and any prompt; all are taken away if the first or second line has one. First `>>> `,
# whose `...` begins no session; then `In [1]: `.
_PROMPTS = (
    (re.compile(r">>>(?: |$)"), re.compile(r"(?:>>>|\.\.\.)(?: |$)")),
    (_IN := re.compile(r"(?:(?:\[(?:nav|ins)\])? )?In \[\d+\]: |[ \t]*\.{3,}: ?"), _IN),
)
# `%env NAME=value` and `%env NAME value`, of a value that IPython does not look up first
_VARIABLE_SET = re.compile(r"(?P<indent>\s*)%(?:env|set_env)[ \t]+(?P<name>\w+)(?:=|[ \t]+)(?P<value>[^${}]+)$")
_SETUP = re.compile(
    r"[%!]?\s*(?:sudo\s+)?(?:pip3?|conda|mamba|apt(?:-get)?|python3? -m pip|matplotlib|\w*load_ext|autoreload|config)\b"
)
_CITATION = re.compile(r"\s*@[A-Za-z]+\s*\{\s*[^\s,{}=]+\s*,")  # `@article{key,`, which is no decorator
_TIMED = re.compile(rf"(?P<indent>\s*)%time[ \t]+(?!(?:{_COMPOUND})\b)(?=[A-Za-z_(])")


def source_from_notebook(data: str | bytes, path: str) -> Source | Problem:
    """All code cells as one module, or the reason why the file is no notebook."""
    try:
        notebook = _json_from(data.removeprefix("\ufeff") if isinstance(data, str) else data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return Problem(
            f"Byte {error.start} is not valid UTF-8, in which notebooks are written.", Location(path, line), SAVED_AGAIN
        )
    except json.JSONDecodeError as error:
        is_empty = not error.doc.strip()
        message = f"It is no notebook: its JSON cannot be read from here on ({error.msg})."
        return Problem(
            "It is empty: no notebook." if is_empty else message, Location(path, error.lineno, error.colno), SAVED_AGAIN
        )
    except (RecursionError, ValueError) as error:  # ValueError: a number of more digits than Python reads
        return Problem(f"It is no notebook that Python can read: {error}.", Location(path, 1), SAVED_AGAIN)
    if not isinstance(notebook, dict) or _cells(notebook) is None:
        return Problem("It is no notebook: there are no cells in it.", Location(path, 1), SAVED_AGAIN)
    language = _language(notebook)
    if not language.startswith(("python", "ipython")):
        return Source(path, "", ast.Module([], []), passed_over=f"a notebook in {language.capitalize()}")
    return _source_from_cells(notebook, path)


class NotebookProgram(NamedTuple):
    """The code of all cells as Python runs it, where the cells begin, and the magics and shell commands that are left
    out of it, each once, those of the setup last."""

    text: str
    cells: Cells
    left_out: tuple[str, ...]


def program_from_notebook(data: bytes, path: str) -> NotebookProgram | None:
    """The notebook's program, with the lines of `source_from_notebook`; None where a cell, or the notebook itself, is
    no Python."""
    source = source_from_notebook(data, path)
    if isinstance(source, Problem) or source.broken_cells or source.passed_over:
        return None
    text = source.text if source.program_text is None else source.program_text
    left_out = dict.fromkeys(_left_out(source.text, text))
    return NotebookProgram(text, source.cells, tuple(sorted(left_out, key=_is_setup)))


def _is_setup(line: str) -> bool:
    """Whether a line for IPython installs something or sets how it is shown: no other cell reads what it leaves."""
    return _SETUP.match(line) is not None


def _left_out(text: str, program: str) -> Iterator[str]:
    """The lines, without their indentation, that became nothing, `pass` or None in the program."""
    for line, kept in zip(lines_of(text), lines_of(program), strict=True):
        is_replaced = kept.strip() == "pass" or kept.endswith("None")
        is_cell_left_out = not kept and _cell_magic(line) not in (None, *_PYTHON_CELLS)
        if line != kept and (is_replaced or is_cell_left_out):
            yield line.strip()


def _cell_magic(line: str) -> str | None:
    """The name of the magic that a whole cell is given to; None where there is none in its first line."""
    magic = re.match(r"\s*%%\s*(\w*)", line)
    return magic and magic[1]


def _json_from(text: str) -> Any:
    if text.count("[") + text.count("{") > MOST_PARTS:
        raise ValueError(f"it has more than {MOST_PARTS:,} lists and objects")
    return json.loads(text)


def without_magics(cell: str) -> str:
    """A cell's text as Python: as many lines, each of them where it was."""
    lines = lines_of(cell)
    first = next((number for number, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")), 0)
    magic = _cell_magic(lines[first])
    if magic is not None:
        if magic not in _PYTHON_CELLS:
            return "\n" * (len(lines) - 1)
        lines[first] = ""
    return "\n".join(_lines_without_magics(lines))


def _lines_without_magics(lines: list[str]) -> Iterator[str]:
    continued = False
    for line in lines:
        if continued:
            plain: str | None = ""
        elif timed := _TIMED.match(line):
            yield timed["indent"] + "0;".ljust(timed.end() - len(timed["indent"])) + line[timed.end() :]
            continue
        elif variable := _VARIABLE_SET.match(line):
            name, text = variable["name"], variable["value"].strip()
            yield f"{variable['indent']}import os as _os; _os.environ[{name!r}] = {text!r}"
            continue
        elif magic := _LINE_MAGIC.match(line):
            plain = magic["indent"] + "pass"
        elif assigned := _ASSIGNED_MAGIC.match(line):
            plain = assigned["target"] + "None"
        else:
            plain = None
        yield line if plain is None else plain
        continued = plain is not None and line.endswith("\\")


def _source_from_cells(notebook: dict[str, Any], path: str) -> Source | Problem:
    texts: list[str] = []
    programs: list[str] = []
    body: list[ast.stmt] = []
    places: list[tuple[int, int]] = []
    broken: list[Problem] = []
    first = 1
    cells = list(_code(notebook))
    too_many = problem_of_many_parts("\n".join(text for _, text in cells), path)
    if too_many is not None:
        return too_many
    for number, text in cells:
        places.append((number, first))
        cell = _python_of_cell(text, path)
        if isinstance(cell, Problem):
            place = cell.location
            moved = dataclasses.replace(
                place, line=place.line + first - 1, end_line=place.end_line + first - 1 if place.end_line else 0
            )
            broken.append(Problem(cell.message, moved))
        else:
            programs.append(cell.text)
            body.extend(ast.increment_lineno(cell.tree, first - 1).body)
        texts.append(text)
        first += text.count("\n") + 1
    if broken and _is_python2(notebook):
        return Problem("It is a notebook for Python 2.", Location(path, 1), "Port it to Python 3")
    program_text = None if broken or programs == texts else "\n".join(programs)
    return Source(path, "\n".join(texts), ast.Module(body, []), tuple(places), tuple(broken), program_text=program_text)


class _PythonCell(NamedTuple):
    """A cell as Python runs it, and its tree, whose columns are those of the cell as it is written."""

    text: str
    tree: ast.Module


def _python_of_cell(text: str, path: str) -> _PythonCell | Problem:
    tree = tree_from_text(text, path)
    if not isinstance(tree, Problem):
        return _PythonCell(text, tree)
    if _CITATION.match(text):
        return _PythonCell("\n" * text.count("\n"), ast.Module([], []))
    plain = without_magics(text)
    again = tree_from_text(plain, path)
    if isinstance(again, ast.Module):
        return _PythonCell(plain, again)
    taken = _taken_away(text)
    if not any(taken):
        return _problem_of_cell(tree, again)
    plain = without_magics(_without_first_characters(taken, text))
    moved = tree_from_text(plain, path)
    if isinstance(moved, Problem):
        return _problem_of_cell(tree, moved)
    return _PythonCell(plain, _with_moved_columns(moved, taken))


def _taken_away(text: str) -> list[int]:
    """How many characters IPython takes away from each line: the indentation of the first one that holds something,
    then the prompts."""
    lines = lines_of(text)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip(" \t"))]
    taken = [len(indent) * line.startswith(indent) for line in lines]
    for initial, prompt in _PROMPTS:
        seen = zip((initial, prompt), lines[first : first + 2], taken[first:], strict=False)
        if any(pattern.match(line, before) for pattern, line, before in seen):
            prompts = [prompt.match(line, before) for line, before in zip(lines, taken, strict=True)]
            taken = [match.end() if match else before for match, before in zip(prompts, taken, strict=True)]
    return taken


def _without_first_characters(taken: list[int], text: str) -> str:
    return "\n".join(line[count:] for line, count in zip(lines_of(text), taken, strict=True))


def _with_moved_columns(tree: ast.Module, taken: list[int]) -> ast.Module:
    """The tree with its columns moved to where the code stands in the cell."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.col_offset += taken[node.lineno - 1]
            node.end_col_offset = (node.end_col_offset or 0) + taken[(node.end_lineno or node.lineno) - 1]
    return tree


def _problem_of_cell(as_it_is: Problem, without: Problem) -> Problem:
    """The problem to report of a cell, of the two with and without its magics and prompts: the later one, since those
    are no errors."""
    return without if as_it_is.location.line <= without.location.line else as_it_is


def _code(notebook: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The cells of code: number among all cells, text. Notebooks of format 3 call the text `input`."""
    for number, cell in enumerate(_cells(notebook) or (), 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        text = cell.get("source", cell.get("input", ""))
        if isinstance(text, list):
            text = "".join(part for part in text if isinstance(part, str))
        if isinstance(text, str):
            yield number, "\n".join(lines_of(text)).removesuffix("\n")


def _cells(notebook: dict[str, Any]) -> list[Any] | None:
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):  # format 3
        cells = [
            cell
            for sheet in notebook["worksheets"]
            if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
            for cell in sheet["cells"]
        ]
    return cells if isinstance(cells, list) else None


def _language(notebook: dict[str, Any]) -> str:
    """What the notebook's kernel runs, in small letters; Python where it says nothing."""
    said = (
        _metadata(notebook, "language_info", "name")
        or _metadata(notebook, "kernelspec", "language")
        or {"ir": "r"}.get(_metadata(notebook, "kernelspec", "name"), "python")
    )
    return said.lower()


def _is_python2(notebook: dict[str, Any]) -> bool:
    version, name = _metadata(notebook, "language_info", "version"), _metadata(notebook, "kernelspec", "name")
    return version.startswith("2.") or name == "python2"


def _metadata(notebook: dict[str, Any], group: str, name: str) -> str:
    metadata = notebook.get("metadata")
    inner = metadata.get(group) if isinstance(metadata, dict) else None
    value = inner.get(name) if isinstance(inner, dict) else None
    return value if isinstance(value, str) else ""
