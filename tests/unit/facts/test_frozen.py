"""Classes of facts behave as the standard library's dataclasses do, though their methods are made otherwise."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from dataclasses import asdict, field, replace
from typing import Any

import pytest

from mpdoctor.facts.frozen import dataclass

pytestmark = pytest.mark.fast


@dataclass(frozen=True)
class Ours:
    name: str
    count: int = 2
    parts: tuple[str, ...] = ()
    held: list[int] = field(default_factory=list, compare=False)
    hidden: str = field(default="", repr=False)


@dataclass(frozen=True, slots=False)
class Below(Ours):
    more: float = field(default=0.5, kw_only=True)

    def __repr__(self) -> str:
        return "below"


@dataclass(frozen=True, eq=False)
class Same:
    name: str = ""


@dataclass(frozen=True)
class Nothing:
    pass


@dataclasses.dataclass(frozen=True)
class Theirs:
    name: str
    count: int = 2
    parts: tuple[str, ...] = ()
    held: list[int] = field(default_factory=list, compare=False)
    hidden: str = field(default="", repr=False)


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 3, ("b",), [1], "x"), {}),
    ((), {"name": "a", "held": [1, 2]}),
    (("a",), {"hidden": "y", "count": 3}),
]


@pytest.mark.parametrize(("args", "keywords"), GIVEN)
def test_instances_are_made_shown_copied_and_pickled_like_the_standard_librarys(
    args: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    ours, theirs = Ours(*args, **keywords), Theirs(*args, **keywords)
    assert asdict(ours) == asdict(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert hash(ours) == hash(theirs)
    assert replace(ours, count=9) == Ours(**{**asdict(ours), "count": 9}) != ours
    assert pickle.loads(pickle.dumps(ours)) == ours


@pytest.mark.parametrize("one", GIVEN)
@pytest.mark.parametrize("other", GIVEN)
def test_they_are_equal_where_theirs_are(one: Any, other: Any) -> None:
    ours = Ours(*one[0], **one[1]) == Ours(*other[0], **other[1])
    assert ours is (Theirs(*one[0], **one[1]) == Theirs(*other[0], **other[1]))


@pytest.mark.parametrize("given", [{}, {"name": "a", "nmae": "b"}])
def test_what_is_missing_or_unknown_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(TypeError):
        Ours(**given)  # type: ignore[arg-type]


def test_what_is_too_much_is_refused() -> None:
    with pytest.raises(TypeError):
        Ours("a", 1, (), [], "", "b")  # type: ignore[call-arg]


@pytest.mark.parametrize("cls", [Ours, Below, Nothing, Theirs])
def test_a_class_tells_what_it_is_made_of_before_and_after_it_was_made(cls: Any) -> None:
    fields = {field.name: (field.type, not _has_default(field)) for field in dataclasses.fields(cls)}
    for _ in range(2):
        told = inspect.signature(cls).parameters
        assert {
            name: (parameter.annotation, parameter.default is parameter.empty) for name, parameter in told.items()
        } == fields
        cls(*(["a"] if fields else []))


def _has_default(field: Any) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def test_each_has_its_own_default() -> None:
    assert Ours("a").held is not Ours("a").held


def test_a_class_below_has_its_own_methods() -> None:
    assert Below("a", more=2).more == 2 and Below("a").count == 2
    assert repr(Below("a")) == "below" and Below("a") != Ours("a") and Below("a") == Below("a")
    assert Below("a", more=2) != Below("a")
    with pytest.raises(TypeError):
        Below("a", 2, (), [], "", 0.7)  # type: ignore[misc]


def test_without_equality_each_is_itself_alone() -> None:
    same = Same("a")
    assert same == same and same != Same("a") and len({same, Same("a")}) == 2
    assert Nothing() == Nothing() and repr(Nothing()) == "Nothing()" and hash(Nothing()) == hash(Nothing())
