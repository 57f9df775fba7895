"""The user's own classes and functions (--custom-objects) that a saved model may name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.keras.private_state import registered_object
from mpdoctor.examiner.saved.refused_contents import ForeignName
from mpdoctor.examiner.targets.script_or_factory import module_from_path

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


# Libraries of Keras' makers, whose registered layers a file may name without a word from the user.
KERAS_LIBRARIES = ("keras_hub", "keras_cv", "keras_nlp")
PLATFORM = ("builtins", "keras", "tf_keras", "tensorflow", "numpy", "h5py")
PARTS_OF_MODELS = ("Layer", "Model", "Optimizer", "Loss", "Metric", "Initializer", "Regularizer", "Constraint")


def custom_objects_from_module(name: str | None) -> dict[str, object]:
    """What a module, given by its dotted name or its file, defines, and what parts of models it takes from other
    modules of the user's. What it only imports from TensorFlow, Keras or the standard library (`load_model`, say) is
    none of its objects: a file could name it.

    Raises Unusable where there is no such module."""
    if name is None:
        return {}
    sys.path.insert(0, os.getcwd())
    try:
        module = module_from_path(name) if name.endswith(".py") else importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.split(".")[0] and error.name != name:
            raise
        raise Unusable(
            f"--custom-objects {name}: there is no module {error.name} here. Run the check from the folder that "
            "holds it, or give its file: --custom-objects layers.py"
        ) from None
    return {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_") and callable(value) and _is_the_users(module, value)
    }


def _is_the_users(module: ModuleType, value: object) -> bool:
    owner = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
    root = str(getattr(owner, "__module__", "") or "").partition(".")[0]
    if root == module.__name__.partition(".")[0]:
        return True
    if is_of_the_platform(root):
        return False
    return _is_part_of_model(owner) or _lies_beside(module, root)


def _is_part_of_model(owner: object) -> bool:
    return inspect.isclass(owner) and any(base.__name__ in PARTS_OF_MODELS for base in owner.__mro__[1:])


def _lies_beside(module: Any, root: str) -> bool:
    """Whether the module called `root` is in the same folder as the one that the user named."""
    place, named = getattr(sys.modules.get(root), "__file__", None), getattr(module, "__file__", None)
    folder = os.path.dirname(os.path.abspath(named)) if named else None
    return bool(place and folder) and os.path.abspath(str(place)).startswith(str(folder) + os.sep)


def is_of_the_platform(module: str) -> bool:
    """Whether a module belongs to Python, TensorFlow, Keras or NumPy, so that no user can have written it."""
    root = module.partition(".")[0]
    if root in PLATFORM or root in sys.builtin_module_names:
        return True
    if hasattr(sys, "stdlib_module_names"):  # Python 3.10
        return root in sys.stdlib_module_names
    library = sysconfig.get_path("stdlib")
    return bool(root) and any(os.path.exists(os.path.join(library, root + suffix)) for suffix in (".py", os.sep))


def is_given(keras: KerasAdapter, name: ForeignName, objects: dict[str, object]) -> bool:
    """Whether `objects`, or what these registered with Keras, hold a class or function by this name. If so, `objects`
    hold it afterwards under the name that Keras looks up first, so that Keras has no reason to import a module."""
    looked_up = name.registered or name.name
    for key in (looked_up, name.name, looked_up.rpartition(">")[2]):
        known = objects.get(key) or (registered_object(keras.module, key) if key else None)
        if known is not None:
            objects[looked_up] = objects[name.name] = known
            return True
    return _is_in_library_of_keras(keras, name)


def _is_in_library_of_keras(keras: KerasAdapter, name: ForeignName) -> bool:
    root = name.module.partition(".")[0]
    if root not in KERAS_LIBRARIES or importlib.util.find_spec(root) is None:
        return False
    importlib.import_module(root)
    registered = registered_object(keras.module, name.registered) if name.registered else None
    return (
        inspect.isclass(registered)
        and registered.__name__ == name.name
        and registered.__module__.partition(".")[0] == root
        and _is_part_of_model(registered)
    )
