"""Functions that both arms of a question hand on, and what looking for them costs."""

from __future__ import annotations

import ast

import pytest
from judging import facts_of

from mpdoctor.source.same_in_each_arm import handed_in_each_arm

pytestmark = pytest.mark.fast

GUARD = "if new:\n    strategy.run(step, args=(batch,))\nelse:\n    strategy.experimental_run_v2(step, args={})\n"


@pytest.mark.parametrize(("given", "names"), [("(batch,)", {"step"}), ("(other,)", set())])
def test_what_both_arms_hand_on(given: str, names: set[str]) -> None:
    guard = ast.parse(GUARD.replace("{}", given)).body[0]
    assert isinstance(guard, ast.If)
    assert handed_in_each_arm(guard, (guard.body, guard.orelse)) == names


def test_a_long_chain_of_guards_costs_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    dumped = []
    dump = ast.dump
    monkeypatch.setattr(ast, "dump", lambda node: (dumped.append(1), dump(node))[1])

    def dumps(arms: int) -> int:
        dumped.clear()
        chain = "".join(
            f"elif hasattr(tf, 'a{number}'):\n    y = g({number}, [x, x], h(x))\n" for number in range(arms)
        )
        facts_of(f"import tensorflow as tf\nif hasattr(tf, 'a'):\n    y = g(x)\n{chain}", "3")
        return len(dumped)

    assert 0 < dumps(200) < 2.5 * dumps(100)
