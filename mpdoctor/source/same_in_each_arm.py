"""What a program does whatever the answer to a question is: both arms hand on the same function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import chain, islice

Arm = Sequence[ast.stmt]
MOST_NODES = 300  # of an arm: in a chain of `elif` each one holds all that follow it


def handed_in_each_arm(node: ast.stmt, arms: Sequence[Arm]) -> frozenset[str]:
    """The names of the functions that each arm hands on, or calls, with the same other arguments: `step` of
    `strategy.run(self.step, args=(x,))` and `strategy.experimental_run_v2(self.step, args=(x,))`. Kept on the
    statement."""
    names: frozenset[str] | None = getattr(node, "handed_in_each_arm", None)
    if names is None:
        handed = [_handed_on(arm) for arm in arms]
        in_each = set.intersection(*handed) if len(handed) > 1 else set()
        names = frozenset(name for name, _ in in_each)
        node.handed_in_each_arm = names  # type: ignore[attr-defined]
    return names


def _handed_on(arm: Arm) -> set[tuple[str, frozenset[str]]]:
    """The name of each function that is an argument in this arm, or is called, with all that is given beside it; none
    of a long arm."""
    handed: set[tuple[str, frozenset[str]]] = set()
    nodes = list(islice(chain.from_iterable(map(ast.walk, arm)), MOST_NODES + 1))
    for call in nodes if len(nodes) <= MOST_NODES else ():
        if isinstance(call, ast.Call):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            beside = frozenset(map(ast.dump, given))
            handed.update((name, beside) for name in map(_name_of, given) if name)
            handed.add((_name_of(call.func), frozenset((*beside, "called"))))
    return handed


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
