"""What optimizers of the user's own have that no LossScaleOptimizer passes on: their methods and attributes."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.knowledge.wrapper_names import ON_WRAPPERS
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Value, known


@lru_cache(maxsize=1)
def names_of_own_optimizers(facts: SourceFacts) -> frozenset[str]:
    """The names that the program's own optimizers have besides those of Keras'. Hyper-parameters of classic optimizers
    are none: their wrapper passes them on (TensorFlow 2.4 to 2.15)."""
    own = (owner for owner in facts.classes if any(".optimizers." in base.name for base in owner.library_bases()))
    hyper = {known(call.argument(0, "name")) for call in facts.method_calls("_set_hyper")}
    return frozenset(name for owner in own for name in _names_of(owner) if name not in hyper)


def is_of_own_optimizers(facts: SourceFacts, name: str, inside: tuple[Value, ...]) -> bool:
    """Whether each of the optimizers inside a wrapper is of a class of the user's that has this name."""
    classes = [class_of(optimizer) for optimizer in inside]
    return bool(classes) and all(
        owner is not None and name in _names_of(owner) and name in names_of_own_optimizers(facts) for owner in classes
    )


def _names_of(owner: ClassFacts) -> frozenset[str]:
    names = {name for base in owner.lineage() for name in (*base.methods, *base.attributes)}
    return frozenset(name for name in names - ON_WRAPPERS if not name.startswith("__"))
