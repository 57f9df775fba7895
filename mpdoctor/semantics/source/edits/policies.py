"""Edits that switch a program to another global policy: in the calls that set one, or in a line of its own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import is_layer_class
from mpdoctor.program.events import Call, Event
from mpdoctor.program.policy_settings import SET_FLOATX
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api
from mpdoctor.semantics.source.edits.expressions import argument_replaced, replaced
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.edits.statements import line_before, line_behind, statement_at, without_statement
from mpdoctor.semantics.source.layers.model_layers import policies_written
from mpdoctor.semantics.source.texts.syntax_trees import called, tree_of
from mpdoctor.semantics.source.texts.written import Written, callee_text, text_of

SETTER = "mixed_precision.set_global_policy"  # in Keras 2.4 and later, and in Keras 3
FLOATX = "float32"
LEAVING = ("return", "yield", "raise")  # behind such a statement nothing runs

SourceAt = Callable[[str], SourceFacts | None]  # by path


def switching_edits(facts: SourceFacts, policy: str, source_at: SourceAt) -> tuple[Edit, ...] | None:
    """The edits after which the program sets this global policy, and no other one later. `facts`: of the whole run,
    with the events in imported files. None where it cannot be said in the program's own names, or a call that sets
    another policy is not to be edited."""
    edits: list[Edit] = []
    for call in facts.policy_calls:
        if policies_written(call) == (policy,):
            continue
        home = facts if call.location.path == facts.path else source_at(call.location.path)
        edit = _in_call(home, call, policy) if home is not None else None
        if edit is None:
            return None
        edits.append(edit)
    if not any(
        call.context.reached and not call.context.branches and _names_policy(call) for call in facts.policy_calls
    ):
        line = policy_line(facts, policy)
        if line is None:
            return None
        edits.append(line)
    return tuple(dict.fromkeys(edits))


def _names_policy(call: Call) -> bool:
    return not (isinstance(call.callee, Api) and call.callee.is_(SET_FLOATX))


def _in_call(facts: SourceFacts, call: Call, policy: str) -> Edit | None:
    if not _names_policy(call):  # the dtype of weights: 16 bits are no part of a mixed policy
        return argument_replaced(facts, call.location, "value", 0, f'"{FLOATX}"')
    named = argument_replaced(facts, call.location, "policy", 0, f'"{policy}"')
    return named or argument_replaced(facts, call.location, "dtype_policy", 0, f'"{policy}"')


def set_at_top(facts: SourceFacts, policy: str, instead_of: Event) -> tuple[Edit | None, Edit | None]:
    """A policy that is set before the first layer is made, and no longer where it was. None where the program does that
    under a condition or in another file, sets other policies too, or where it is none of 16 bits."""
    context = instead_of.context
    is_certain = context.reached and not context.branches and not context.loops and not _is_in_if(facts, instead_of)
    is_only = all(call is instead_of for call in facts.policy_calls)
    if not (is_certain and is_only and policy in HALF_POLICIES and instead_of.location.path == facts.path):
        return None, None
    return policy_line(facts, policy), without_statement(facts, instead_of.location)


def _is_in_if(facts: SourceFacts, event: Event) -> bool:
    """Whether an `if` is around it, which may be an option of the program's though nothing else than one arm is seen to
    be taken."""
    line = event.location.line
    return any(node.lineno <= line <= (node.end_lineno or 0) for node in _conditions(facts))


@lru_cache(maxsize=1)
def _conditions(facts: SourceFacts) -> list[ast.If]:
    """All `if` statements but `if __name__ == "__main__"`."""
    tree = tree_of(facts)
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If)] if tree is not None else []
    return [condition for condition in conditions if not _is_of_main(condition)]


def _is_of_main(condition: ast.If) -> bool:
    return "__name__" in {node.id for node in ast.walk(condition.test) if isinstance(node, ast.Name)}


def policy_instead(facts: SourceFacts, call: Call, policy: str) -> list[Edit] | None:
    """The call that sets a global policy, in the place of another one that stands by itself."""
    setter = keras_name(facts, SETTER)
    added: list[Edit] = []
    if setter is None:
        imported, setter = _imported(facts)
        added = _line_before_import_of(facts, call, imported.strip())
        if not added:
            return None
    statement = statement_at(facts, call.location)
    stands_alone = statement is not None and statement.text == text_of(facts, call.location)
    edit = replaced(facts, call.location, f'{setter}("{policy}")') if stands_alone else None
    return [*added, edit] if edit is not None else None


def _line_before_import_of(facts: SourceFacts, call: Call, line: str) -> list[Edit]:
    """A line before the import that brings the name by which a call begins."""
    tree, name = tree_of(facts), callee_text(facts, call.location).partition(".")[0]
    statements = tree.body if tree is not None else []
    numbers = [statement.lineno for statement in statements if name in _bound(statement)]
    return [Edit(Location(facts.path, number, 1, number, 1), f"{line}\n") for number in numbers[:1]]


def under_float32(facts: SourceFacts, made_at: Location, policy: str) -> tuple[Edit, ...]:
    """The lines that set the policy float32 before the statement that makes a layer, and the mixed policy again behind
    it; () where that makes more than one object, returns it, or is no statement of its own."""
    setter, statement = keras_name(facts, SETTER), statement_at(facts, made_at)
    if setter is None or statement is None or statement.tokens[0].text in LEAVING or not _makes_one(facts, statement):
        return ()
    before = line_before(facts, made_at, f'{setter}("{FLOATX}")')
    behind = line_behind(facts, made_at, f'{setter}("{policy}")')
    return (before, behind) if before is not None and behind is not None else ()


def _makes_one(facts: SourceFacts, statement: Written) -> bool:
    """Whether one call in the statement may make an object of a class."""
    place, tree = statement.location, tree_of(facts)
    nodes = ast.walk(tree) if tree is not None else ()
    calls = [node for node in nodes if isinstance(node, ast.Call) and place.line <= node.lineno <= place.end_line]
    return sum(called(call)[:1].isupper() for call in calls) == 1


def policy_line(facts: SourceFacts, policy: str) -> Edit | None:
    """A line that sets this policy, behind the imports at the top; where a file that is imported makes layers, right
    behind the import of Keras or TensorFlow, before them."""
    tree = tree_of(facts)
    if tree is None:
        return None
    setter = keras_name(facts, SETTER)
    imported = ""
    if setter is None:
        imported, setter = _imported(facts)
    leading = list(_leading_imports(tree.body))
    if not leading:
        return None
    last = leading[-1]
    if _makes_layers_while_imported(facts):
        root = setter.partition(".")[0]
        last = next((statement for statement in leading if root in _bound(statement)), last)
    number = last.end_lineno or last.lineno
    end = len(facts.lines[number - 1]) + 1
    new = f'\n{imported}\n{setter}("{policy}")'
    return Edit(Location(facts.path, number, end, number, end), new)


def _imported(facts: SourceFacts) -> tuple[str, str]:
    """An import, and the name that it brings: `from keras.layers import Dense` alone names no module."""
    roots = {use.api.root for use in facts.uses}
    if "keras" in roots and (facts.keras.is_keras3 or facts.keras.package == "tf_keras"):
        return "import keras\n", f"keras.{SETTER}"
    if facts.keras.package == "tf_keras":
        return "import tf_keras\n", f"tf_keras.{SETTER}"
    return "import tensorflow as tf\n", f"tf.keras.{SETTER}"


def _leading_imports(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The imports before the first function, class, or call that may make a layer."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
            continue
        defines = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if defines or any(isinstance(node, ast.Call) and called(node)[:1].isupper() for node in ast.walk(statement)):
            return


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return {alias.asname or alias.name for alias in statement.names} if isinstance(statement, ast.ImportFrom) else set()


def _makes_layers_while_imported(facts: SourceFacts) -> bool:
    return any(
        isinstance(call.callee, Api)
        and is_layer_class(call.callee.name)
        and call.location.path != facts.path
        and call.context.reached
        and not call.context.callers
        for call in facts.calls
    )
