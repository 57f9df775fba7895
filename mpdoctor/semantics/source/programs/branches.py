"""Which events of a program happen on the same path through its `if`s."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.layer_kinds import BASES
from mpdoctor.program.context import Branch, Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import (
    MISSING,
    Api,
    Attribute,
    Collection,
    Item,
    Unknown,
    Value,
    certainly_known,
    is_api,
    known,
    options,
)
from mpdoctor.semantics.source.programs.attribute_access import same_object

FLOAT32 = ("float32", "fp32", "32")
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
GIVEN_BY_KERAS = ("training", "mask")  # to a model's `call()`, beside its inputs


def exclude_each_other(one: Context, other: Context) -> bool:
    """Whether two events stand in different arms of one `if`, or of two that ask the same question, perhaps among
    others."""
    return any(
        (branch.statement == other_branch.statement and branch.taken is not other_branch.taken)
        or _answer(branch, other_branch) is False
        for branch in one.branches
        for other_branch in other.branches
    )


def _answer(branch: Branch, other: Branch) -> bool | None:
    """Whether two ifs that ask the same got the same answer, None where they ask for different things: `if not mixed:`
    is the other arm of `if mixed:`, and so is `if debug and not mixed:`."""
    answers: set[bool] = set()
    for test, taken in _answered(branch):
        for other_test, other_taken in _answered(other):
            says_none, other_says_none = _says_none(test, taken), _says_none(other_test, other_taken)
            if _asks_the_same(test, other_test):
                answers.add(taken is other_taken)
            elif None not in (says_none, other_says_none) and _ask_for_one_none(test, other_test):
                answers.add(says_none is other_says_none)
    if branch.question is not None and other.question is not None and branch.question[0] == other.question[0]:
        answers.add(branch.question == other.question)
    return None if not answers else answers == {True}


def have_the_same_answer(branch: Branch, other: Branch) -> bool:
    """Whether two ifs certainly ask the same and get the same answer."""
    return _answer(branch, other) is True


def _answered(branch: Branch) -> list[tuple[Value, bool]]:
    """What is certainly true, or certainly not, in this arm."""
    return [_without_not(test, branch.taken) for test in branch.parts or (branch.test,)]


def is_ruled_out(context: Context) -> bool:
    """Whether a test around an event comes out the other way for the values that the event has: `if policy != "none":`
    around what is given the policy "none"."""
    answers = ((certainly_known(branch.test), branch.taken) for branch in context.branches)
    return any(answer is not MISSING and bool(answer) is not taken for answer, taken in answers)


def may_be_reached_by(context: Context, calls: Iterable[Call]) -> bool:
    """Whether one of these calls of the method that an event stands in may come to it: an arm may ask for a parameter
    that the call gives, or leaves at its default. Without any the call is Keras' own of a model's `call()`."""
    given = list(calls)
    return any(_may_be_reached(context, call) for call in given) if given else _may_be_reached(context, None)


def _may_be_reached(context: Context, call: Call | None) -> bool:
    for branch in context.branches:
        for test, taken in _answered(branch):
            if isinstance(test, Parameter) and test.function is context.function:
                given = certainly_known(_given_for(test, call))
                if given is not MISSING and bool(given) is not taken:
                    return False
    return True


def _given_for(parameter: Parameter, call: Call | None) -> Value | None:
    if call is not None:
        return call.argument(parameter.index - 1, parameter.name) or parameter.default
    by_keras = parameter.index <= 1 or parameter.name in GIVEN_BY_KERAS
    return None if by_keras else parameter.default


def is_for_float32(context: Context) -> bool:
    """Whether an event stands where the program has found that something is no 16-bit policy: in `if precision ==
    "float32":`, in `if debug and not policy.name.startswith("mixed"):`."""
    answers = (answer for branch in context.branches for answer in _answered(branch))
    return any(_says_float32(option, taken) for test, taken in answers for option in options(test))


def is_absent(value: Value, context: Context) -> bool:
    """Whether an event stands where the program has found that this value is not there: in the `else` of
    `if wrapper is not None:`, in `if not wrapper:`."""
    answers = (answer for branch in context.branches for answer in _answered(branch))
    return any(option is value for test, taken in answers for option in options(_absent_by(test, taken)))


def _absent_by(test: Value, taken: bool) -> Value | None:
    """What is None, or false, where a test has this answer. None where it says nothing of that."""
    if isinstance(test, Operation) and test.operator in ("is", "is not") and len(test.operands) == 2:
        is_none = known(test.operands[1]) is None and taken is (test.operator == "is")
        return test.operands[0] if is_none else None
    return None if taken else test


def _says_float32(test: Value, taken: bool) -> bool:
    if isinstance(test, Call) and test.method in ("startswith", "endswith") and isinstance(test.callee, Attribute):
        return not taken and _is_half(known(test.argument(0)))
    if not isinstance(test, Operation) or len(test.operands) != 2:
        return False
    (left, right), operator = test.operands, test.operator
    if operator in ("in", "not in"):
        return taken is (operator == "not in") and _is_half(known(left))
    if operator not in ("==", "!="):
        return False
    texts = [text for text in (known(left), known(right)) if isinstance(text, str)]
    if taken is (operator == "=="):
        return any(text in FLOAT32 for text in texts)
    return any(_is_half(text) for text in texts)


def _is_half(text: object) -> bool:
    return isinstance(text, str) and ("16" in text or text.startswith(("mixed", "half")))


def _without_not(test: Value, taken: bool) -> tuple[Value, bool]:
    while isinstance(test, Operation) and test.operator == "not":
        test, taken = test.operands[0], not taken
    return test, taken


def _asks_the_same(one: Value, other: Value) -> bool:
    return not isinstance(one, Unknown) and same_object(one, other)


def _ask_for_one_none(one: Value, other: Value) -> bool:
    """Whether it is `x is None` and `x is not None`, of one `x` that nothing between the two changes."""
    asked = [test.operands[0] for test in (one, other) if isinstance(test, Operation)]
    return len(asked) == 2 and _is_same_place(*asked)


def _says_none(test: Value, taken: bool) -> bool | None:
    """Whether what an `if` asks for is None, by this answer; None where it asks for something else."""
    if not isinstance(test, Operation) or test.operator not in ("is", "is not") or len(test.operands) != 2:
        return None
    return taken is (test.operator == "is") if known(test.operands[1]) is None else None


def contradicts_itself(context: Context) -> bool:
    """Whether the tests around an event cannot all be true: in a function that is called in `if steps == 1:`, what
    stands in `if steps > 1:`."""
    said = [bound for branch in context.branches for test, taken in _answered(branch) for bound in _bounds(test, taken)]
    return any(
        _is_same_place(one, other) and not _leaves_room(how, than, other_how, other_than)
        for number, (one, how, than) in enumerate(said)
        for other, other_how, other_than in said[:number]
    )


def _bounds(test: Value, taken: bool) -> Iterator[tuple[Value, str, float]]:
    """(value, operator, number) of a comparison as it holds in this arm: `steps`, ">" and 1."""
    if not isinstance(test, Operation) or test.operator not in _OPPOSITE or len(test.operands) != 2:
        return
    left, right = test.operands
    operator = test.operator if taken else _OPPOSITE[test.operator]
    for value, number, how in ((left, right, operator), (right, left, _TURNED.get(operator, operator))):
        than = certainly_known(number)
        if isinstance(than, int | float) and certainly_known(value) is MISSING:
            yield value, how, than


def _leaves_room(how: str, than: float, other_how: str, other_than: float) -> bool:
    """Whether some number meets both bounds."""
    tried = (than, other_than, (than + other_than) / 2, min(than, other_than) - 1, max(than, other_than) + 1)
    return any(_stands(number, how, than) and _stands(number, other_how, other_than) for number in tried)


def _stands(number: float, how: str, than: float) -> bool:
    if how in ("==", "!="):
        return (number == than) is (how == "==")
    is_beyond = number > than if how in (">", ">=") else number < than
    return is_beyond or (number == than and how in (">=", "<="))


def _is_same_place(one: Value, other: Value) -> bool:
    """Whether two values are certainly read from one place, which nothing of the two changes: `config["steps"]`."""
    while isinstance(one, Item) and isinstance(other, Item) and one is not other:
        key = known(one.index)
        if key is MISSING or key != known(other.index):
            return False
        one, other = one.of, other.of
    choices, others = options(one), options(other)
    return len(choices) == len(others) == 1 and _asks_the_same(one, other)


def happen_together(one: Context, other: Context) -> bool:
    """Whether there is a path for certain on which both happen: neither, or only one of them, depends on a condition
    that the other does not depend on."""
    if (one.run != other.run and 0 not in (one.run, other.run)) or exclude_each_other(one, other):
        return False
    return depends_on_no_more(one, other) or depends_on_no_more(other, one)


def depends_on_no_more(one: Context, other: Context) -> bool:
    """Whether an event depends on no condition that the other does not depend on."""
    return all(
        any(
            branch.statement == other_branch.statement or _answer(branch, other_branch)
            for other_branch in other.branches
        )
        for branch in one.branches
    )


def may_not_run(facts: SourceFacts, context: Context) -> bool:
    """Whether a line is guarded by any question but `hasattr(optimizer, "get_scaled_loss")`. A program of Keras 2 runs
    what that question guards wherever it scales; Keras 3 never has that method."""
    return context.guarded and (facts.keras.is_keras3 or not context.only_wrapped)


def is_asked_for_others(call: Call, layer: Call) -> bool:
    """Whether a layer, one of Keras', is called only where the program asks for layers of other classes: `step(h, h) if
    isinstance(step, MultiHeadAttention) else step(h)`, where this one is among the steps."""
    answered = (each for branch in call.context.branches for each in _answered(branch))
    kinds = [asked.argument(1) for asked, is_so in answered if is_so and _asks_for_class_of(asked, layer)]
    return any(_is_none_of(layer, kind) for kind in kinds)


def _asks_for_class_of(asked: Value, layer: Call) -> TypeGuard[Call]:
    if not isinstance(asked, Call) or not is_api(asked.callee, "builtins.isinstance"):
        return False
    return any(option is layer for option in options(asked.argument(0)))


def _is_none_of(layer: Call, kind: Value | None) -> bool:
    kinds = kind.items if isinstance(kind, Collection) else (kind,)
    names = {public_name(each.name) if isinstance(each, Api) else "" for each in kinds}
    last = {name.rpartition(".")[2] for name in names if name.startswith("keras.layers.")}
    return 0 < len(last) == len(names) and last.isdisjoint({layer.method, *BASES})
