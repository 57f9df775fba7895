"""What compile() was given as loss: its name, and what is known of Keras' own losses."""

from __future__ import annotations

from typing import Any, Iterator

_CROSS_ENTROPIES = (
    "binary_crossentropy",
    "categorical_crossentropy",
    "sparse_categorical_crossentropy",
    "binary_focal_crossentropy",
    "categorical_focal_crossentropy",
)
_PACKAGES = ("keras", "tf_keras", "tensorflow")


def loss_name(loss: Any) -> str:
    if loss is None or isinstance(loss, str):
        return loss or ""
    return getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__


def are_of_keras(losses: Any) -> bool:
    """False where there is none."""
    each = list(_leaves(losses))
    return bool(each) and all(isinstance(one, str) or _package(one) in _PACKAGES for one in each)


def take_probabilities(losses: Any) -> bool:
    """Whether one of them is a cross-entropy of Keras' without `from_logits=True`."""
    return any(_takes_probabilities(one) for one in _leaves(losses))


def _takes_probabilities(loss: Any) -> bool:
    if isinstance(loss, str):
        return _plain(loss) in map(_plain, _CROSS_ENTROPIES)
    if _package(loss) not in _PACKAGES:
        return False
    if isinstance(loss, type) or callable(getattr(loss, "__code__", None)) or hasattr(loss, "__name__"):
        return _plain(loss.__name__) in map(_plain, _CROSS_ENTROPIES)
    is_one = _plain(type(loss).__name__) in map(_plain, _CROSS_ENTROPIES)
    return is_one and not (getattr(loss, "_fn_kwargs", None) or {}).get(
        "from_logits", getattr(loss, "from_logits", False)
    )


def _plain(name: str) -> str:
    """BinaryCrossentropy is binary_crossentropy."""
    return name.replace("_", "").lower()


def _package(loss: Any) -> str:
    cls = loss if hasattr(loss, "__name__") else type(loss)
    return str(getattr(cls, "__module__", "")).partition(".")[0]


def _leaves(losses: Any) -> Iterator[Any]:
    if isinstance(losses, dict):
        losses = list(losses.values())
    if isinstance(losses, (list, tuple)):
        for one in losses:
            yield from _leaves(one)
    elif losses is not None:
        yield losses
