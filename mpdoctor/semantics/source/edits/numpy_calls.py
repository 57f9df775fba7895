"""Edits of a call of NumPy's that refuses float16: what it is given, or draws, in float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import put_around
from mpdoctor.semantics.source.edits.names import name_of
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of

REFUSED = "array type float16 is unsupported in linalg"


def given_in_float32(facts: SourceFacts, raised_at: Location) -> tuple[str, tuple[Edit, ...]] | None:
    """(a title, the edits): what this line gives functions of numpy.linalg, as float32 arrays. None where the file does
    not name numpy, or the line no such function."""
    numpy = name_of(facts, "numpy")
    given = [call.args[0] for call in _of_linalg(facts, raised_at.line) if call.args]
    if numpy is None or not given or any(isinstance(value, ast.Starred) for value in given):
        return None
    arrays = [put_around(facts, location_of(facts, value), f"{numpy}.asarray(", ', "float32")') for value in given]
    edits = tuple(edit for each in arrays for edit in each or ())
    return ("Give NumPy float32", edits) if all(arrays) else None


def _of_linalg(facts: SourceFacts, line: int) -> Iterator[ast.Call]:
    """The calls of functions of numpy.linalg on a line."""
    module = name_of(facts, "numpy.linalg")
    names = {f"{each}.linalg" for each in (name_of(facts, "numpy"), "numpy") if each} | ({module} if module else set())
    for node in ast.walk(tree_of(facts) or ast.Module([], [])):
        if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        owner, _, function = ast.unparse(node.func).rpartition(".")
        if owner in names or (not owner and name_of(facts, f"numpy.linalg.{function}") == function):
            yield node
