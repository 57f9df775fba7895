"""Hooks on load_model(): which models a program loads, on which line, under which policy, and errors while loading."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterator

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.facts.location import Location
from mpdoctor.facts.saved.file import LoadFacts, SavedFileFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel


# Where the Kerases keep what loads a whole model, behind the public functions, which a program has long bound by name:
# (possible modules below the package, function).
LOADERS = (
    (("src.saving.saving_lib", "saving.saving_lib"), "load_model"),
    (
        (
            "src.legacy.saving.legacy_h5_format",
            "src.saving.legacy.hdf5_format",
            "saving.legacy.hdf5_format",
            "saving.hdf5_format",
        ),
        "load_model_from_hdf5",
    ),
    (
        (
            "src.saving.legacy.saved_model.load",
            "saving.legacy.saved_model.load",
            "saving.saved_model.load",
        ),
        "load",
    ),
)


class LoadHooks:
    """The files loaded so far, by model."""

    def __init__(self) -> None:
        self._loads: weakref.WeakKeyDictionary[Any, LoadFacts] = weakref.WeakKeyDictionary()
        self._failed: list[tuple[BaseException, str]] = []
        self._failed_at: set[Location] = set()

    def install(self, keras: KerasAdapter) -> None:
        """`keras` is an adapter."""
        for module, name in _loaders(package_of(keras)):
            setattr(module, name, self._watched(keras, getattr(module, name)))

    def inside(self, keras: KerasAdapter, model: KerasModel) -> Iterator[LoadFacts]:
        """How this model and those in it were loaded; nothing for what the program built."""

        def below(outer: Any, path: str) -> Iterator[LoadFacts]:
            load = self._loads.get(outer)
            if load is not None:
                yield LoadFacts(path, load.file, load.policy, load.location)
                return
            for layer in keras.sublayers(outer):
                yield from below(layer, f"{path}/{layer.name}".lstrip("/"))

        if self._loads:
            yield from below(model, "")

    def left_behind(self, made_at: Location | None) -> bool:
        """Whether what was made on this line is a part of a model that could not be loaded there."""
        return made_at in self._failed_at

    def file_of_error(self, error: BaseException) -> SavedFileFacts | None:
        """What the file says of itself whose loading raised this error."""
        from mpdoctor.examiner.saved.archives import saved_file_from_path
        from mpdoctor.examiner.saved.directories import saved_directory_from_path

        chain = {id(error), id(error.__cause__), id(error.__context__)}
        path = next((path for left_with, path in self._failed if id(left_with) in chain), None)
        if path is None:
            return None
        try:
            if os.path.isdir(path):
                return saved_directory_from_path(path).facts()
            return saved_file_from_path(path).facts()
        except Unusable:  # it is no model at all, and the error says so
            return None

    def _watched(self, keras: KerasAdapter, original: Callable[..., object]) -> Any:
        @functools.wraps(original)
        def load(path: Any, *args: object, **kwargs: object) -> Any:
            policy, place = keras.global_policy(), own_location(sys._getframe(1))
            name = str(getattr(path, "name", path))
            try:
                model = original(path, *args, **kwargs)
            except Exception as error:
                self._failed.append((error, name))
                if place is not None:
                    self._failed_at.add(place)
                raise
            self._failed_at -= {place}
            if isinstance(model, keras.Model):
                self._loads[model] = LoadFacts("", os.path.basename(os.path.normpath(name)), policy, place)
            return model

        return load


def package_of(keras: KerasAdapter) -> str:
    """The package that holds a Keras: "keras", "tf_keras"; "tensorflow.python.keras" in TensorFlow 2.4 and 2.5."""
    return str(keras.Layer.__module__).partition(".src.")[0].partition(".engine.")[0]


def _loaders(package: str) -> Iterator[tuple[Any, str]]:
    for paths, name in LOADERS:
        for path in paths:
            try:
                module = importlib.import_module(f"{package}.{path}")
            except ImportError:
                continue
            if hasattr(module, name):
                yield module, name
                break
