"""The Keras that a project's pins of TensorFlow and Keras allow. A range that allows both Keras 2 and Keras 3 says
nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.facts.versions import Keras
from mpdoctor.project.declared_versions.pins import ADDONS, KERAS, PROBABILITY, TENSORFLOW, Pin
from mpdoctor.project.declared_versions.version_ranges import PlainRange
from mpdoctor.project.python_environments import release_beside

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_LAST_KERAS_2 = 15  # TensorFlow 2.15: from 2.16 on tf.keras is Keras 3
_NEWEST = {"tensorflow": 30, "keras": 30}  # minor releases that are tried, those to come included
_WITH_TF_KERAS = tuple(f"0.{minor}" for minor in range(24, 60))  # releases of TensorFlow Probability, some to come
_PATCHES = range(9, -1, -1)


def keras_from_pins(pins: list[Pin]) -> Keras | None:
    """The Keras that pins allow: by those of Keras itself, else by those of TensorFlow. A package without a release
    says nothing. The release of `tf.keras` is TensorFlow's, whichever Keras 2 is installed beside it."""
    companions = [pin for pin in pins if is_companion(pin)]
    pins = [pin for pin in pins if len(pin.allowed)]
    of_tensorflow = [pin for pin in pins if pin.name in TENSORFLOW]
    of_keras = [pin for pin in pins if pin.name in KERAS]
    if bool(_releases(of_keras, "2")) is not bool(_releases(of_keras, "3")):
        return _from_pins_of_keras(of_keras, of_tensorflow)
    return _from_pins_of_tensorflow(of_tensorflow, companions)


def _from_pins_of_keras(of_keras: list[Pin], of_tensorflow: list[Pin]) -> Keras:
    """The Keras by its own pins, which allow releases of one generation only."""
    if _releases(of_keras, "3"):
        version = _version(of_keras, "keras", "3")
        return Keras("keras", version, _version(of_tensorflow, "tensorflow", "2"), _reason_from_pins(of_keras))
    tensorflow = _releases(of_tensorflow, "2")
    if tensorflow and max(tensorflow) <= _LAST_KERAS_2:
        return _keras_of_tensorflow(of_tensorflow)
    version = _version(of_keras, "keras", "2")
    return Keras("tf.keras", version, version, _reason_from_pins(of_keras))


def _from_pins_of_tensorflow(of_tensorflow: list[Pin], companions: list[Pin]) -> Keras | None:
    """The Keras by the pins of TensorFlow; by its companions where these say nothing, or allow both generations."""
    tensorflow = _releases(of_tensorflow, "2")
    if not tensorflow:
        return _tensorflow1(of_tensorflow) or (None if of_tensorflow else _keras_of_companions(companions))
    if max(tensorflow) <= _LAST_KERAS_2:
        return _keras_of_tensorflow(of_tensorflow)
    if min(tensorflow) > _LAST_KERAS_2:
        version = installed_release("keras", "3")
        return Keras("keras", version, _version(of_tensorflow, "tensorflow", "2"), _reason_from_pins(of_tensorflow))
    return _keras_of_companions(companions)


def _keras_of_tensorflow(pins: list[Pin]) -> Keras:
    version = _version(pins, "tensorflow", "2")
    return Keras("tf.keras", version, version, _reason_from_pins(pins))


def _reason_from_pins(pins: list[Pin]) -> str:
    return " and ".join(dict.fromkeys(pin.told for pin in pins))


def keras_from_commands(pins: list[Pin]) -> Keras | None:
    """What commands come to that are written down and not run: None where one of them installs just any release."""
    pinned = [pin for pin in pins if len(pin.allowed)]
    names = TENSORFLOW if any(pin.name in TENSORFLOW for pin in pinned) else KERAS
    return None if any(pin.name in names and pin not in pinned for pin in pins) else keras_from_pins(pinned)


def is_companion(pin: Pin) -> bool:
    """Whether its import fails beside Keras 3: TensorFlow Addons ended with 0.23, of TensorFlow 2.15 (no
    keras.src.engine there), and TensorFlow Probability asks for tf_keras from 0.24 on (0.22 and 0.23: no
    keras.__internal__)."""
    if pin.name == ADDONS:
        return True
    return (
        pin.name == PROBABILITY
        and len(pin.allowed) > 0
        and not any(_allows(pin.allowed, version) for version in _WITH_TF_KERAS)
    )


def _keras_of_companions(companions: list[Pin]) -> Keras | None:
    if not companions:
        return None
    return Keras("tf.keras", f"2.{_LAST_KERAS_2}", f"2.{_LAST_KERAS_2}", _reason_from_pins(companions))


def _tensorflow1(pins: list[Pin]) -> Keras | None:
    if not _releases(pins, "1"):
        return None
    version = _version(pins, "tensorflow", "1")
    return Keras("tf.keras", version, version, _reason_from_pins(pins))


def _releases(pins: Iterable[Pin], major: str) -> set[int]:
    """The minor releases that these files allow: of one file those of any sentence, since requirements differ by
    platform and by extra; of several those of each (setup.py asks for what the package can do with, environment.yml for
    what is run), unless they are of different programs and have none in common."""
    of_files: dict[Path, set[int]] = {}
    for pin in pins:
        minors = {minor for minor in range(_NEWEST["tensorflow"]) if _allows(pin.allowed, f"{major}.{minor}")}
        of_files.setdefault(pin.path, set()).update(minors)
    return set.intersection(*of_files.values()) or set.union(*of_files.values()) if of_files else set()


def _allows(allowed: SpecifierSet | PlainRange, release: str) -> bool:
    return any(allowed.contains(f"{release}.{patch}", prereleases=True) for patch in _PATCHES)


def _version(pins: list[Pin], package: str, major: str) -> str:
    """The installed release where it is allowed, else the newest that is; "" where there is no upper bound."""
    releases, installed = _releases(pins, major), installed_release(package, major)
    is_allowed = installed and any(pin.allowed.contains(installed, prereleases=True) for pin in pins)
    if is_allowed and int(installed.split(".")[1]) in releases:
        return installed
    clauses = [clause for pin in pins for clause in pin.allowed]
    exact = [clause.version for clause in clauses if clause.operator == "==" and "*" not in clause.version]
    if exact:
        from packaging.version import Version

        return str(max(map(Version, exact)))
    newest = max(releases, default=_NEWEST[package])
    return "" if newest >= _NEWEST[package] - 1 else f"{major}.{newest}"


def installed_release(package: str, major: str) -> str:
    """The version of a package beside mpdoctor, "" without it or with another major one. Nothing of it is imported."""
    version = release_beside(package)
    return version if version.startswith(f"{major}.") else ""
