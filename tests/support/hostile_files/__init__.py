"""Saved files that try what no saved file may: each row of the table is one attack on one form of file.

All are harmless in effect. The most that one does is to change the folder `outside` that a test gave it, to read the
canary that lies there, or to connect to a port of the test's own on this machine. `runs_in` names the Kerases whose
plain `load_model` and one step of training let it happen, so that a wall is tested with what works and not with duds; a
row without any is one that Keras itself was seen to hold, and that must stay so.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hostile_files.sites import Site

KERASES = ("3", "tf_keras", "2.15", "2.10", "2.4")
KERAS2 = KERASES[1:]
ZIP2 = ("tf_keras", "2.15")  # the Keras 2 that know .keras archives
FILES = ("hdf5", "keras")
SUFFIX = {"hdf5": ".h5", "keras": ".keras", "saved-model": ""}

Maker = Callable[[Site], None]


@dataclass(frozen=True)
class Attack:
    """`tries`: "change" the folder outside, "read" the canary, "connect", or "grow" past any bound."""

    name: str
    form: str
    tries: str
    kerases: tuple[str, ...]
    runs_in: tuple[str, ...]
    suffix: str
    make: Maker

    def __str__(self) -> str:
        return f"{self.name}-{self.form}"


_ATTACKS: dict[str, Attack] = {}


def attack(
    name: str,
    make: Maker,
    tries: str = "change",
    *,
    forms: tuple[str, ...] = FILES,
    kerases: tuple[str, ...] = KERASES,
    runs_in: str | Mapping[str, str] = "",
    suffix: str | None = None,
) -> None:
    """A row for each form. `runs_in` is a list of Kerases, separated by spaces, or one for each form."""
    for form in forms:
        live = runs_in if isinstance(runs_in, str) else runs_in.get(form, "")
        known = [keras for keras in kerases if form != "keras" or keras in ("3", *ZIP2)]
        attack_file = Attack(
            name,
            form,
            tries,
            tuple(known),
            tuple(keras for keras in live.split() if keras in known),
            SUFFIX[form] if suffix is None else suffix,
            make,
        )
        assert str(attack_file) not in _ATTACKS, f"{attack_file} is there twice"
        _ATTACKS[str(attack_file)] = attack_file


def attacks() -> list[Attack]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return list(_ATTACKS.values())
