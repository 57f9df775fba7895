"""Reads and sets a wrapped optimizer's attributes through its wrapper."""

from __future__ import annotations

from typing import Any, Iterable


class Delegated:
    """An attribute that Keras' base class would answer for: the inner optimizer answers instead."""

    def __init__(self, name: str, of_class: Any) -> None:
        self.name, self.of_class = name, of_class
        self.__doc__ = getattr(of_class, "__doc__", None)

    def __get__(self, optimizer: Any, owner: Any = None) -> Any:
        return self.of_class if optimizer is None else getattr(optimizer.inner_optimizer, self.name)

    def __set__(self, optimizer: Any, value: Any) -> None:
        if has_inner(optimizer):
            setattr(optimizer.inner_optimizer, self.name, value)


def has_inner(optimizer: Any) -> bool:
    return "inner_optimizer" in vars(optimizer) or "_optimizer" in vars(optimizer)


def delegations_of_base(wrapper: type, base: type, kept: Iterable[str]) -> dict[str, Delegated]:
    """Delegated methods and properties, by name: the public ones that Keras' own wrapper inherits from the base class
    of all optimizers, through which changes to the inner optimizer's variables are lost. Names in `kept` are left
    out."""
    own = {name for cls in wrapper.__mro__ if not issubclass(base, cls) for name in vars(cls)}
    names = {name for cls in base.__mro__ if _is_of_keras(cls) for name in vars(cls)}
    lost = sorted(name for name in names - own - set(kept) if not name.startswith("_"))
    return {name: Delegated(name, getattr(base, name)) for name in lost}


def _is_of_keras(cls: type) -> bool:
    """Whether it comes from Keras, and not from TensorFlow's own classes: tracking for checkpoints is each object's
    own."""
    return "keras" in cls.__module__ and "Saveable" not in cls.__name__ and "Trackable" not in cls.__name__


class Delegating:
    """Mixin: every public attribute that neither the class nor its constructor defines is the inner optimizer's."""

    inner_optimizer: Any
    own_attributes: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        """The inner optimizer's attribute; called where Python and Keras find none."""
        if name.startswith("_") or not has_inner(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        try:
            return getattr(self.inner_optimizer, name)
        except AttributeError as error:
            inside = type(self.inner_optimizer)
            if hasattr(inside, name):  # a property that raises: its own words say why
                raise
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}', nor has the {inside.__name__} inside it"
            ) from error

    def __dir__(self) -> list[str]:
        """Also lists the inner optimizer's attributes, unless Keras' own wrapper lists the hyperparameters itself."""
        listed = set(super().__dir__())
        lists_itself = any("__dir__" in vars(cls) for cls in type(self).__mro__ if cls not in (Delegating, object))
        if has_inner(self) and not lists_itself:
            listed.update(name for name in dir(self.inner_optimizer) if not name.startswith("_"))
        return sorted(listed)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_inner_attribute(name):
            setattr(self.inner_optimizer, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_inner_attribute(name):
            delattr(self.inner_optimizer, name)
        else:
            super().__delattr__(name)

    def _is_inner_attribute(self, name: str) -> bool:
        if name.startswith("_") or name in self.own_attributes or not has_inner(self):
            return False
        if name in vars(self) or hasattr(type(self), name):
            return False
        return hasattr(self.inner_optimizer, name)
