"""Simple statements: the names they bind, the events they record, and whether execution continues after them."""

from __future__ import annotations

import ast

from mpdoctor.program.events import Call
from mpdoctor.program.values import Known, Unknown, is_api, options
from mpdoctor.source.constant_folding import OPERATORS
from mpdoctor.source.interpreter.assignments import assign
from mpdoctor.source.interpreter.attributes import attribute_of
from mpdoctor.source.interpreter.calls.calls import evaluate_call
from mpdoctor.source.interpreter.containers.methods import extend_list
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.expressions import evaluate_conditional, operation_on
from mpdoctor.source.interpreter.name_lookup import find
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_return
from mpdoctor.source.joining import joined

_SKIPS = ("skipTest",)  # methods of a test case that end it
_ENDS = ("sys.exit", "os._exit", "builtins.exit", "builtins.quit", "absl.logging.fatal")
_ENDS_OF_PARSERS = ("error", "exit")  # methods of an ArgumentParser


def execute_expression(state: State, node: ast.Expr) -> bool:
    """Evaluate an expression whose value is dropped: a call made for its effect, a `yield`, a docstring."""
    if isinstance(node.value, ast.Call):
        state.depth += 1
        state.walk.dropped.add(state.place(node.value))
        value = evaluate_call(state, node.value, dropped=True)
        state.depth -= 1
        if state.frame.left_at is not None and state.frame.left_at == state.place(node.value):
            state.frame.ends_program = True
            return False
        if isinstance(value, Call) and (is_api(value.callee, *_ENDS) or _is_end_of_parser(value)):
            state.frame.ends_program = True
            return False
        if isinstance(value, Call) and value.method in _SKIPS:
            state.frame.ends_program = False
            return False
    elif not isinstance(node.value, ast.Constant):
        evaluate(state, node.value)
    return True


def _is_end_of_parser(call: Call) -> bool:
    parser = call.receiver if call.method in _ENDS_OF_PARSERS else None
    return isinstance(parser, Call) and is_api(parser.callee, "argparse.ArgumentParser")


def execute_assignment(state: State, node: ast.Assign) -> bool:
    value = evaluate(state, node.value)
    for target in node.targets:
        assign(state, target, value)
    return True


def execute_annotated_assignment(state: State, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        assign(state, node.target, evaluate(state, node.value))
    elif state.scope.is_class and isinstance(node.target, ast.Name):
        state.bind(node.target.id, Unknown(state.place(node.target)))
    return True


def execute_augmented_assignment(state: State, node: ast.AugAssign) -> bool:
    target = node.target
    if isinstance(target, ast.Name):
        old = find(state, target.id, target)
    elif isinstance(target, ast.Attribute):
        of = evaluate(state, target.value)
        old = joined(attribute_of(state, choice, target.attr, state.place(target)) for choice in options(of))
    else:
        old = evaluate(state, target)
    new = evaluate(state, node.value)
    if isinstance(node.op, ast.Add) and extend_list(state, target, old, new):
        return True
    assign(state, target, operation_on(state, node, OPERATORS[type(node.op)], old, new, augmented=True), augmented=True)
    return True


def execute_return(state: State, node: ast.Return) -> bool:
    """Record the returned value for the callers; of `return a if asked else b` each arm, as an `if` would return it.
    Always False."""
    state.frame.ends_program = False
    if node.value is None:
        state.frame.returns.append(Known(state.place(node), None))
    elif isinstance(node.value, ast.IfExp):
        arms = evaluate_conditional(state, node.value, lambda arm, value: record_return(state, value, state.place(arm)))
        state.frame.returns.append(arms)
    else:
        value = evaluate(state, node.value)
        state.frame.returns.append(value)
        record_return(state, value, state.place(node.value))
    return False


def execute_raise(state: State, node: ast.Raise) -> bool:
    for expression in (node.exc, node.cause):
        if expression is not None:
            evaluate(state, expression)
    state.frame.ends_program = True
    return False


def execute_delete(state: State, node: ast.Delete) -> bool:
    """Delete a name, or make a deleted item unknown. Always True: the execution goes on."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            state.scope.forget(target.id)
        elif isinstance(target, ast.Subscript):
            assign(state, target, Unknown(state.place(target)))
    return True


def execute_global(state: State, node: ast.Global) -> bool:
    state.scope.redirected.update(dict.fromkeys(node.names, state.scope.module))
    return True


def execute_nonlocal(state: State, node: ast.Nonlocal) -> bool:
    for name in node.names:
        scope = state.scope.parent
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is not None:
            state.scope.redirected[name] = scope
    return True
