"""An optimizer's override of `apply_gradients` made into one of `apply`, which Keras 3's LossScaleOptimizer calls."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.semantics.source.edits.expressions import replaced
from mpdoctor.semantics.source.edits.statements import line_before, statement_at
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of
from mpdoctor.semantics.source.texts.written import text_of

_OLD, _NEW = "apply_gradients", "apply"
_GIVEN = ("grads", "trainable_variables")  # the parameters of `apply` in Keras 3.0 to 3.15
_HEADER = re.compile(rf"def {_OLD}\((self, *\w+[^()]*)\)")
_BASE = f"super().{_OLD}"


def as_override_of_apply(facts: SourceFacts, method: FunctionFacts) -> list[Edit | None]:
    """The edits: other parameters, the pairs put together in the first line, and taken apart again for `super()`.
    [None] where the override uses a second parameter for more than to pass it on, or its own name otherwise."""
    definition = _definition(facts, method)
    header = statement_at(facts, method.location)
    written = _HEADER.match(header.text) if header is not None else None
    calls = _calls_of_base(definition) if definition is not None else None
    if definition is None or header is None or written is None or calls is None:
        return [None]
    pairs = _parameters(definition)[1]
    first = definition.body[0 if ast.get_docstring(definition) is None or len(definition.body) == 1 else 1]
    return [
        Edit(header.span(*written.span()), f"def {_NEW}(self, {_GIVEN[0]}, {_GIVEN[1]}=None)"),
        line_before(facts, location_of(facts, first), f"{pairs} = list(zip({', '.join(_GIVEN)}))"),
        *(_call_of_apply(facts, call) for call in calls),
    ]


def _calls_of_base(definition: ast.FunctionDef) -> list[ast.Call] | None:
    """The calls of the base class's method, where nothing else names it or uses what they pass on."""
    calls = [node for node in ast.walk(definition) if isinstance(node, ast.Call) and ast.unparse(node.func) == _BASE]
    mentions = sum(isinstance(node, ast.Attribute) and node.attr == _OLD for node in ast.walk(definition))
    others = _parameters(definition)[2:]
    is_passed_on = _names(definition, *others) == sum(_names(call, *others) for call in calls)
    is_plain = all(call.args and not isinstance(call.args[0], ast.Starred) for call in calls)
    fits = is_plain and is_passed_on and mentions == len(calls) and not _names(definition, *_GIVEN)
    return calls if fits else None


def _call_of_apply(facts: SourceFacts, call: ast.Call) -> Edit | None:
    pairs = text_of(facts, location_of(facts, call.args[0]))
    return replaced(facts, location_of(facts, call), f"super().{_NEW}(*zip(*{pairs}))") if pairs is not None else None


def _definition(facts: SourceFacts, method: FunctionFacts) -> ast.FunctionDef | None:
    functions = _functions(facts) if method.location.path == facts.path else []
    return next((node for node in functions if (node.lineno, node.name) == (method.location.line, _OLD)), None)


@lru_cache(maxsize=1)
def _functions(facts: SourceFacts) -> list[ast.FunctionDef]:
    tree = tree_of(facts)
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree is not None else []


def _parameters(definition: ast.FunctionDef) -> list[str]:
    given = definition.args
    starred = [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, *starred)]


def _names(node: ast.AST, *names: str) -> int:
    """How often one of these names is read or assigned in it."""
    return sum(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
