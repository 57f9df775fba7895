"""Context managers entered by a call instead of a `with`: they surround all that follows, until a call leaves them."""

from __future__ import annotations

from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.values import Value, is_api, options
from mpdoctor.source.interpreter.state.interpreter_state import State

_STACKS = ("contextlib.ExitStack", "contextlib.AsyncExitStack")


def enter_by_hand(state: State, of: Value, name: str, call: Call) -> Value | None:
    """`tape.__enter__()` and `tape.__exit__(…)`; `stack.enter_context(tape)`, which gives the tape."""
    if name == "__enter__":
        state.context = _context_inside(state.context, of)
    elif name == "__exit__":
        state.context = _context_outside(state.context, of)
    elif name == "enter_context" and call.args and _is_stack(of):
        state.context = _context_inside(state.context, call.args[0])
        return call.args[0]
    return None


def _context_inside(context: Context, entered: Value) -> Context:
    return context.but(withs=(*context.withs, entered))


def _context_outside(context: Context, left: Value) -> Context:
    kept = tuple(entered for entered in context.withs if not _are_one(entered, left))
    return context if len(kept) == len(context.withs) else context.but(withs=kept)


def _are_one(entered: Value, left: Value) -> bool:
    return any(one is other for one in options(entered) for other in options(left))


def _is_stack(of: Value) -> bool:
    return any(isinstance(stack, Call) and is_api(stack.callee, *_STACKS) for stack in options(of))
