"""Memoizing of functions that recurse through symbolic values. After forty lines of `x = x + x` a value holds the first
one 2^40 times over: each part is to be asked once."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, cast

Ask = TypeVar("Ask", bound=Callable[..., Any])


def asked_once(ask: Ask) -> Ask:
    """Remembers the answers to a function that asks itself about the parts of what it was given, for as long as the
    outermost question lasts. It tells arguments apart by identity."""
    answers: dict[tuple[int, ...], tuple[tuple[Any, ...], Any]] = {}
    waiting = [0]

    @functools.wraps(ask)
    def asked(*given: Any) -> Any:
        key = tuple(map(id, given))
        if key not in answers:
            waiting[0] += 1
            try:
                answer = ask(*given)
            finally:
                waiting[0] -= 1
                if not waiting[0]:
                    answers.clear()
            if not waiting[0]:
                return answer
            answers[key] = given, answer  # kept, so that nothing else gets its id
        return answers[key][1]

    return cast(Ask, asked)
