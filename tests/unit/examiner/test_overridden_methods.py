"""Which of an optimizer's methods a class overrides: one that only calls what it overrides is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mpdoctor.examiner.capture.optimizers.overridden_methods import overridden


class Base:
    def apply(self, grads: Any, variables: Any = None) -> Any:
        return grads

    def apply_gradients(self, pairs: Any, **options: Any) -> Any:
        return pairs

    def get_config(self) -> dict[str, Any]:
        return {}


class HandsOn(Base):
    def apply(self, grads: Any, variables: Any = None) -> Any:
        """As the base class does it."""
        return super().apply(grads, variables=variables)

    def apply_gradients(self, pairs: Any, **options: Any) -> Any:
        return super().apply_gradients(pairs, **options)


class Doubles(Base):
    def apply(self, grads: Any, variables: Any = None) -> Any:
        return super().apply([2 * grad for grad in grads], variables)

    def apply_gradients(self, pairs: Any, **options: Any) -> Any:
        self.pairs = list(pairs)
        return super().apply_gradients(self.pairs, **options)


class Anew(Base):
    def apply(self, grads: Any, variables: Any = None) -> Any:
        return None

    def scale_loss(self, loss: Any) -> Any:
        return self.apply(loss)


class HandsOnToDoubles(Doubles):
    def apply(self, grads: Any, variables: Any = None) -> Any:
        return super().apply(grads, variables)


class Unwritten(Base):
    exec("def apply(self, grads, variables=None):\n    return super(Unwritten, self).apply(grads, variables)")


@pytest.mark.parametrize(
    ("cls", "methods"),
    [
        (Base, ()),
        (HandsOn, ()),
        (Doubles, ("apply", "apply_gradients")),
        (Anew, ("apply", "scale_loss")),
        (HandsOnToDoubles, ("apply", "apply_gradients")),
        (Unwritten, ("apply",)),
        (SimpleNamespace, ()),
    ],
)
def test_a_method_that_only_hands_on_overrides_nothing(cls: type, methods: tuple[str, ...]) -> None:
    keras: Any = SimpleNamespace(optimizer_bases=(Base,))
    assert overridden(keras, cls) == methods
