"""Which of several layers that one line makes a live layer is. Keras numbers those that nobody gave a name, in the
order in which they are made."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.facts.model import LayerFacts

UNKNOWN = (0, 0)


def turn_of_layer(one: LayerFacts, layers: Iterable[LayerFacts]) -> tuple[int, int]:
    """(its place among them, from 0, how many they are); (0, 0) where their names do not say."""
    names = {_name(layer) for layer in layers if _are_made_together(layer, one)}
    numbered = [_numbered(name) for name in names]
    if len({stem for stem, _ in numbered}) != 1:
        return UNKNOWN
    return sorted(numbered).index(_numbered(_name(one))), len(numbered)


def _are_made_together(layer: LayerFacts, other: LayerFacts) -> bool:
    return layer.made_at is not None and (layer.made_at, layer.class_name) == (other.made_at, other.class_name)


def _name(layer: LayerFacts) -> str:
    return layer.path.rsplit("/", 1)[-1]


def _numbered(name: str) -> tuple[str, int]:
    """`dense_3` is ("dense", 3), and `dense`, the first one, ("dense", 0)."""
    stem, _, number = name.rpartition("_")
    return (stem, int(number)) if stem and number.isdecimal() else (name, 0)
