"""The policies of mixed precision that an option of the command line can be set to: its choices."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.program.values import Collection, Value, known


def policies_offered(choices: Value | None, default: Value | None) -> tuple[Value, ...]:
    """Those among the choices of an option; () where one of them is its default, which is what it then stands for. A
    program that offers one is meant to train under it."""
    held = choices.items if isinstance(choices, Collection) and choices.kind in ("list", "tuple") else ()
    return () if known(default) in MIXED else tuple(choice for choice in held if known(choice) in MIXED)
