"""Edits of statements that clip gradients."""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import argument_replaced, replaced
from mpdoctor.semantics.source.edits.statements import line_behind, statement_at, without_statement
from mpdoctor.semantics.source.loops.clipping import limit_arguments
from mpdoctor.semantics.source.texts.syntax_trees import called, tree_of
from mpdoctor.semantics.source.texts.written import argument_text, callee_text, written_at


def without_clipping(facts: SourceFacts, clip: Location) -> Edit | None:
    """`gradients = tape.gradient(…)` in the place of `gradients, _ = clip_by_global_norm(tape.gradient(…), 1.0)` and of
    `gradients = [clip(g) for g in tape.gradient(…)]`; nothing where the name would be given to itself. None of other
    statements, and where the norm is kept."""
    statement, call = statement_at(facts, clip), written_at(facts, clip)
    if statement is None or call is None or statement.holds_comment:
        return None
    try:
        assign = ast.parse(statement.text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1:
        return None
    name = _name_of(assign.targets[0])
    unclipped = _unclipped(assign.value, call.text)
    if name is None or unclipped is None:
        return None
    if unclipped == name:
        return without_statement(facts, clip)
    return replaced(facts, statement.location, f"{name} = {unclipped}")


def limit_at(facts: SourceFacts, clip: Call, made: Call) -> str | None:
    """The limit as it can be written where the optimizer is made: a number, or a name or an attribute that has its
    value there, too. None where it may be another one: what is said to be its number may be a default."""
    *_, (position, name) = limit_arguments(clip)
    text = argument_text(facts, clip.location, name, position) or ""
    try:
        written = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    parts = [node for node in ast.walk(written) if isinstance(node, ast.Name | ast.Attribute | ast.Call)]
    if not parts or (isinstance(written, ast.Name | ast.Attribute) and _is_known_at(facts, text, clip, made)):
        return text
    return None


def _is_known_at(facts: SourceFacts, text: str, clip: Call, made: Call) -> bool:
    """Whether a name has one value at both calls: `LIMIT` that the file gives once, at its top; `limit` of the same
    function; or `self.limit` where the method that makes the optimizer gives it before."""
    function, tree = made.context.function, tree_of(facts)
    if tree is None:
        return False
    first, *rest = text.split(".")
    if not rest:
        given = [
            name for statement in tree.body if isinstance(statement, ast.Assign) for name in _names_given(statement)
        ]
        is_of_file = given.count(first) == _names_given(tree).count(first) == 1
        return is_of_file or (function is clip.context.function and made.order < clip.order)
    if function is None or clip.context.function is None or function.owner is not clip.context.function.owner:
        return False
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    lines = [node.lineno for node in stores if ast.unparse(node) == text]
    return bool(lines) and all(function.location.line < line < made.location.line for line in lines)


def with_scaled_limits(facts: SourceFacts, clip: Call, apply: Call) -> list[Edit] | None:
    """`clip_by_global_norm(gradients, optimizer.scale_loss(1.0))`, where this optimizer is given the gradients: what
    clips scaled gradients to scaled limits clips them as unscaled ones. A norm that is kept is divided by the scale in
    a line of its own."""
    optimizer = callee_text(facts, apply.location).rpartition(".")[0]
    if not all(map(str.isidentifier, optimizer.split("."))) or not _is_the_same_at(facts, optimizer, clip, apply):
        return None
    edits = []
    for position, name in limit_arguments(clip):
        limit = argument_text(facts, clip.location, name, position)
        if limit is not None:
            edits.append(argument_replaced(facts, clip.location, name, position, f"{optimizer}.scale_loss({limit})"))
    norm = _norm_kept(facts, clip.location)
    if norm:
        edits.append(line_behind(facts, clip.location, f"{norm} /= {optimizer}.scale_loss(1.0)"))
    made = [edit for edit in edits if edit is not None]
    return made if made and len(made) == len(edits) else None


def _is_the_same_at(facts: SourceFacts, optimizer: str, clip: Call, apply: Call) -> bool:
    """Whether this name is that optimizer where the clipping stands, too: in the same function, or in one that is
    called once, where it is an attribute of the same object or a name that the file gives once, at its top."""
    clips, applies = clip.context.function, apply.context.function
    if clips is applies:
        return True
    tree = tree_of(facts)
    if clips is None or applies is None or tree is None or _calls_of(tree, clips.name) != 1:
        return False
    first = optimizer.partition(".")[0]
    if clips.owner is not None and clips.owner is applies.owner:
        return clips.parameters[:1] == applies.parameters[:1] == (first,)
    given = [name for statement in tree.body for name in _names_given(statement) if isinstance(statement, ast.Assign)]
    return (
        [name for name in _names_given(tree) if name == first] == [name for name in given if name == first] == [first]
    )


def _calls_of(tree: ast.Module, name: str) -> int:
    return sum(isinstance(node, ast.Call) and called(node) == name for node in ast.walk(tree))


def _names_given(tree: ast.AST) -> list[str]:
    """The names that assignments, parameters and the like bind in it."""
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return stored + [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]


def _norm_kept(facts: SourceFacts, clip: Location) -> str:
    """`norm` of `gradients, norm = clip_by_global_norm(…)`; "" of another statement."""
    statement = statement_at(facts, clip)
    try:
        assign = ast.parse(statement.text).body[0] if statement is not None else None
    except (SyntaxError, ValueError, IndexError):
        return ""
    target = assign.targets[0] if isinstance(assign, ast.Assign) else None
    norm = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    return norm.id if isinstance(norm, ast.Name) and norm.id != "_" else ""


def _name_of(target: ast.expr) -> str | None:
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        gradients, norm = target.elts
        return _name_of(gradients) if isinstance(norm, ast.Name) and norm.id == "_" else None
    return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None


def _unclipped(value: ast.expr, clip: str) -> str | None:
    """The text of what the statement clips, without its blanks."""
    same = ast.unparse(ast.parse(clip, mode="eval"))
    if isinstance(value, ast.Call) and ast.unparse(value) == same and value.args:
        return ast.unparse(value.args[0])
    if not isinstance(value, ast.ListComp) or len(value.generators) != 1:
        return None
    (generator,) = value.generators
    is_all = isinstance(generator.target, ast.Name) and not generator.ifs
    element = value.elt
    if is_all and isinstance(element, ast.Call) and ast.unparse(element) == same and element.args:
        return ast.unparse(generator.iter) if ast.unparse(element.args[0]) == ast.unparse(generator.target) else None
    return None
