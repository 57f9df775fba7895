"""Finds the source line that constructs a live layer, and the edit that gives it a dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.mending.draft import Proposal
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.made.layers import (
    MadeLayer,
    NoPlace,
    given_dtype,
    line_of_class_around,
    makings_of_class_around,
)

SourceAt = Callable[[str], SourceFacts | None]
UNKNOWN = (0, 0)


@dataclass(frozen=True)
class LiveLayers:
    """The live layers, by path, and the sources in which they are made."""

    layers: dict[str, LayerFacts]
    source_at: SourceAt

    def proposals(self, code: str, remedy: RemedyFacts) -> Iterator[Proposal]:
        """The edits that make a remedy of the trials permanent. Raises NoPlace."""
        if remedy.kind == "float32-loss":
            yield from self.outputs_in_float32(code)
            return
        for path, place in zip(remedy.layers, remedy.locations, strict=True):
            proposal = self._in_float32(code, path, place, path in remedy.with_parts)
            alone = "" if path in remedy.with_parts else self._own_class_of(path)
            yield replace(proposal, needed=path in remedy.needed, own_code_of=alone)

    def _own_class_of(self, path: str) -> str:
        """The class of the program's own that a live layer is of; "" for Keras' own."""
        layer = self.layers.get(path)
        return layer.class_name if layer is not None and layer.own_class else ""

    def outputs_in_float32(self, code: str) -> Iterator[Proposal]:
        """float32 for each half-precision layer whose output the loss is computed of. Raises NoPlace."""
        outputs = [layer for layer in self.layers.values() if layer.is_output and layer.computes_in_half]
        if not outputs:
            raise NoPlace("which layers put out what the loss is given is not known")
        for layer in outputs:
            yield self._in_float32(code, layer.path, layer.made_at)

    def ways_to(self, path: str) -> Iterator[list[str]]:
        """Which layers to change: the live layer itself; then it and the layers (no models) that hold it, the outermost
        first."""
        parts = path.split("/")
        held = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        live = [outer for outer in held if outer in self.layers and self._takes_dtype(outer)]
        if path in live:
            yield [path]
            if len(live) > 1:
                yield live

    def _takes_dtype(self, path: str) -> bool:
        layer = self.layers[path]
        return layer.computes_in_half and layer.follows_policy and not layer.is_model

    def _below(self, path: str, place: Location | None) -> LayerFacts | None:
        """The only layer of this path inside a model that the trained model holds: a `train_step` that calls an inner
        model itself shows the layers of that one by their paths in it."""
        of_path = [layer for layer_path, layer in self.layers.items() if layer_path.endswith(f"/{path}")]
        made_there = [layer for layer in of_path if place is not None and self._is_same(layer.made_at, place)]
        return made_there[0] if len(made_there) == 1 else None

    def made_of_class(self, inside: Location) -> Iterator[str]:
        """The paths of the layers whose own class holds this line, and that compute in 16 bits."""
        facts = self.source_at(inside.path)
        around = line_of_class_around(facts, inside.line) if facts is not None else None
        of_class = Location(inside.path, around or 0)
        for path, layer in self.layers.items():
            if around is not None and self._is_same(layer.class_location, of_class) and self._takes_dtype(path):
                yield path

    def class_around(self, inside: Location) -> str:
        """The name of the innermost class whose body holds this line; "" outside of classes."""
        facts = self.source_at(inside.path)
        return makings_of_class_around(facts, inside.line)[0] if facts is not None else ""

    def made_by_call(self, call: Location) -> Iterator[str]:
        """The paths of the layers of its line and class that compute in 16 bits."""
        facts = self.source_at(call.path)
        written = facts.lines[call.line - 1][call.column - 1 :] if facts is not None else ""
        for path, layer in self.layers.items():
            is_of_class = written.partition("(")[0].rpartition(".")[2] == layer.class_name
            if is_of_class and self._is_same(layer.made_at, call) and self._takes_dtype(path):
                yield path

    def _is_same(self, one: Location | None, other: Location) -> bool:
        """Whether both are this line, by whichever path."""
        return one is not None and one.line == other.line and self.source_at(one.path) is self.source_at(other.path)

    def in_float32(self, code: str, path: str) -> Proposal:
        """float32 for the live layer at this path. Raises NoPlace."""
        return self._in_float32(code, path, self.layers[path].made_at)

    def class_in_float32(self, code: str, inside: Location) -> Iterator[Proposal]:
        """float32 for every layer of the class whose code stands at `inside`. Raises NoPlace."""
        facts = self.source_at(inside.path)
        name, places = makings_of_class_around(facts, inside.line) if facts is not None else ("", [])
        for place in places:
            layer = MadeLayer(name, name, place)
            yield Proposal(
                f"`{name}` computes in float32", safe=False, code=code, edits=given_dtype(layer, self.source_at)
            )

    def _in_float32(self, code: str, path: str, place: Location | None, with_parts: bool = False) -> Proposal:
        facts = self.layers.get(path) or self._below(path, place)
        class_name, class_at = (facts.class_name, facts.class_location) if facts is not None else ("", None)
        turn = turn_of_layer(facts, self.layers.values()) if facts is not None else (0, 0)
        beside_others = facts is not None and _is_made_beside_others(facts, self.layers.values())
        return self.made_in_float32(code, MadeLayer(path, class_name, place, class_at, with_parts, turn, beside_others))

    def made_in_float32(self, code: str, layer: MadeLayer) -> Proposal:
        """float32 for the layer where it is made. Raises NoPlace."""
        title = f"`{layer.path}` computes in float32"
        return Proposal(title, safe=False, code=code, edits=given_dtype(layer, self.source_at))


def turn_of_layer(layer: LayerFacts, layers: Iterable[LayerFacts]) -> tuple[int, int]:
    """(place, number) of a layer among the layers that one line makes, its place counted from 0; (0, 0) where their
    names do not say. Keras numbers layers that nobody gave a name, in the order in which they are made."""
    names = {_name(other) for other in layers if _are_made_together(other, layer)}
    numbered = [_numbered(name) for name in names]
    if len({stem for stem, _ in numbered}) != 1:
        return UNKNOWN
    return sorted(numbered).index(_numbered(_name(layer))), len(numbered)


def _are_made_together(layer: LayerFacts, other: LayerFacts) -> bool:
    return layer.made_at is not None and (layer.made_at, layer.class_name) == (other.made_at, other.class_name)


def _is_made_beside_others(layer: LayerFacts, layers: Iterable[LayerFacts]) -> bool:
    """Whether its line makes layers of other classes, too, as `KINDS[kind](…)` does: not those that it holds."""
    there = [other for other in layers if other.made_at == layer.made_at and layer.made_at is not None]
    return any(
        other.class_name != layer.class_name
        and not other.path.startswith(f"{layer.path}/")
        and not layer.path.startswith(f"{other.path}/")
        for other in there
    )


def _name(layer: LayerFacts) -> str:
    return layer.path.rsplit("/", 1)[-1]


def _numbered(name: str) -> tuple[str, int]:
    """`dense_3` is ("dense", 3), and `dense`, the first one, ("dense", 0)."""
    stem, _, number = name.rpartition("_")
    return (stem, int(number)) if stem and number.isdecimal() else (name, 0)
