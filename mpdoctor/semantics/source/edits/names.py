"""The names under which a program uses a library's modules, and the imports that an edit needs."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import KERAS_OPS
from mpdoctor.program.events import Use
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import replaced
from mpdoctor.semantics.source.edits.statements import statement_at

TENSORFLOW = "tensorflow"
_OF_TENSORFLOW = re.compile(r"\btf\.([a-z]\w*(?:\.\w+)*)")
DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "bool")


@lru_cache(maxsize=8)
def _imported(facts: SourceFacts) -> dict[str, str]:
    """The name of each module and each name that the file imports at its top level, by the full dotted one; and, under
    "", the number of the line behind which another import goes."""
    imported: dict[str, str] = {}
    bound: set[str] = set()
    for number, line in enumerate(facts.lines, 1):
        if not line.startswith(("import ", "from ")):
            continue
        try:
            statement = ast.parse(line).body[0]
        except (SyntaxError, ValueError, IndexError):
            continue  # it goes on on the next line
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.asname or alias.name
                if alias.asname or "." not in alias.name:
                    imported.setdefault(alias.name, name)
                else:
                    imported.setdefault(alias.name, alias.name)
                    imported.setdefault(alias.name.partition(".")[0], alias.name.partition(".")[0])
                bound.add(name)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                imported.setdefault(f"{statement.module}.{alias.name}", alias.asname or alias.name)
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            imported[""] = str(number)
    return imported


def name_of(facts: SourceFacts, *modules: str) -> str | None:
    """How the file calls the first of these modules that it imports; None where it imports none of them."""
    imported = _imported(facts)
    return next((imported[module] for module in modules if module in imported), None)


def with_import(facts: SourceFacts, module: str) -> list[Edit] | None:
    """A line that imports it behind the last import, [] where the file has one; None where no line is known to be."""
    imported = _imported(facts)
    if imported.get(module) == module:
        return []
    number = int(imported.get("", "0"))
    if not number:
        return None
    end = len(facts.lines[number - 1]) + 1
    return [Edit(Location(facts.path, number, end, number, end), f"\nimport {module}")]


def tensorflow(facts: SourceFacts) -> str | None:
    """What the file calls TensorFlow, `tf` as a rule; None where it does not import it."""
    return name_of(facts, TENSORFLOW, "tensorflow.compat.v2")


def keras_name(facts: SourceFacts, name: str) -> str | None:
    """How this file can write a public name of its own Keras: `keras.ops.cast`, `tf.keras.layers.Layer`."""
    if facts.keras.package == "tf_keras":
        direct = name_of(facts, "tf_keras", "tensorflow.keras")
    elif facts.keras.is_keras3:
        direct = name_of(facts, "keras", "tensorflow.keras")
    else:
        direct = name_of(facts, "tensorflow.keras", "keras")
    if direct is not None:
        return f"{direct}.{name}"
    through = tensorflow(facts)
    return f"{through}.keras.{name}" if through is not None else None


def keras_ops(facts: SourceFacts) -> str | None:
    """`ops` or `keras.ops`, as the file can say it."""
    if not facts.keras.is_keras3:
        return None
    keras = name_of(facts, "keras")
    return name_of(facts, "keras.ops") or (f"{keras}.ops" if keras is not None else None)


def advice_in_names_of(facts: SourceFacts, advice: str) -> str:
    """Advice that says `tf.cast(x, tf.float32)`, as this file can write it: with its own name for TensorFlow; where it
    has none, with keras.ops if that has all the functions that the advice names."""
    named = set(_OF_TENSORFLOW.findall(advice))
    if not named:
        return advice
    tf = tensorflow(facts)
    if tf is not None:
        return _OF_TENSORFLOW.sub(rf"{tf}.\1", advice)
    ops = keras_ops(facts)
    if ops is None or named - {*KERAS_OPS, *DTYPES}:
        return advice
    return _OF_TENSORFLOW.sub(
        lambda found: f'"{found[1]}"' if found[1] in DTYPES else f"{ops}.{KERAS_OPS[found[1]]}", advice
    )


def named_instead(facts: SourceFacts, use: Use, name: str) -> Edit | None:
    """A public name of Keras ("mixed_precision.Policy") in the place of another name: as this file can say it, or
    imported under the name that the file has for the old one."""
    if not use.is_import:
        written = keras_name(facts, name)
        return replaced(facts, use.location, written) if written is not None else None
    statement = statement_at(facts, use.location)
    texts = [token.text for token in statement.tokens] if statement is not None else []
    if statement is None or texts[:1] != ["from"] or "import" not in texts or {",", "(", "*"} & set(texts):
        return None
    module, _, last = name.rpartition(".")
    keras = "tensorflow.keras" if use.api.root == "tensorflow" else use.api.root
    bound = texts[-1]
    renamed = "" if bound == last else f" as {bound}"
    return replaced(facts, statement.location, f"from {keras}.{module} import {last}{renamed}")
