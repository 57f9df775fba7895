"""Remedies for a saved model that cannot be loaded, by the error of Keras or TensorFlow."""

from __future__ import annotations

import re

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.semantics.live.errors.error_texts import headline_from_failure

NAME = r"['\"`](?P<name>[\w>.]+)['\"`]"
UNKNOWN = (
    rf"Unknown [\w ]+: {NAME}",
    rf"Cannot deserialize object of type {NAME}",
    rf"Could not locate (?:class|function) {NAME}",
)
OTHERWISE = (
    "If it contains your own classes, name their module with --custom-objects. Otherwise save it again with this Keras."
)
CONFINED = (
    "While mpdoctor examines a saved file, no code may write outside of a temporary directory or open a connection, "
    "not even a module given with --custom-objects. Let it write below tempfile.gettempdir(), or examine a script of "
    "your own that loads the file."
)
DAMAGED = "A part of it is missing or damaged. Copy the whole file, or the directory with its variables/, again."
# What an error can mean alone.
CERTAIN: tuple[tuple[str, str], ...] = (
    (r"an sstable|[Cc]hecksum|Read less bytes than requested", DAMAGED),  # of variables.index and the data beside it
    (
        r"bad marshal data|code\(\) (argument|takes)|unknown opcode",
        "It contains a lambda that was compiled by another version of Python, and only that version can read it. "
        "Examine it with that Python (--python), or save the model with a named function instead of the lambda.",
    ),
    (
        r"'LossScaleOptimizer(V3)?' object has no attribute 'name'",
        "The model was compiled but never trained before saving, and Keras 2 cannot load such a file under "
        "mixed_float16. Train it for one step before saving, or save it uncompiled and compile after loading.",
    ),
)
# What it means where the file is not simply too new: an older Keras calls what it does not know missing or damaged.
LIKELY: tuple[tuple[str, str], ...] = (
    (
        r"no item named|truncated|signature not found|Unsuccessful TensorSliceReader|DataLoss|unable to open|corrupt",
        DAMAGED,
    ),
    (
        r"No module named",
        "Install it for the Python that loads the model here, or name another Python with --python.",
    ),
    (
        r"safe_mode=False|enable_unsafe_deserialization",
        "It contains code that would run while loading. If you trust the file, add --allow-code-in-file.",
    ),
    (
        r"No such file or directory|File not found|does not exist|NOT_FOUND",
        "A file that belongs to it is missing: a SavedModel needs its variables/ and assets/ beside saved_model.pb. A "
        "HDF5 file under the name of .keras, as TensorFlow before 2.12 wrote it, must be renamed to .h5 for Keras 3.",
    ),
)


def headline_from_loading_error(failure: FailureFacts) -> str:
    """The error in one line: without the configuration that Keras puts around it, and without its own advice, which is
    for who calls load_model()."""
    innermost = re.findall(r"Exception encountered: (.+)", failure.message)
    text = f"{failure.exception}: {innermost[-1].strip()}" if innermost else headline_from_failure(failure)
    return re.split(r"\. (?:Please ensure you are using|Make sure custom classes|If `[\w>.]+` is a custom)", text)[0]


def remedy_from_loading_error(failure: FailureFacts) -> str:
    for pattern in UNKNOWN:
        named = re.search(pattern, failure.message)
        if named and "LossScaleOptimizer" not in named["name"]:
            return f"`{named['name']}` is not part of Keras: {_bring(named['name'].rpartition('>')[2], failure)}"
    if failure.during == "loading" and re.search(r"Permission denied|Operation not permitted", failure.message):
        return CONFINED
    return _matching(CERTAIN, failure) or _other_version(failure) or _matching(LIKELY, failure) or OTHERWISE


def _bring(name: str, failure: FailureFacts) -> str:
    """How what a file names is made known: to mpdoctor, or by the program that loads it."""
    if failure.during == "loading":
        return "name the module that defines it with --custom-objects MODULE."
    return (
        f'pass it, `load_model(…, custom_objects={{"{name}": {name}}})`, or register it where it is defined with '
        "`@keras.saving.register_keras_serializable()` and import that before loading."
    )


def _matching(remedies: tuple[tuple[str, str], ...], failure: FailureFacts) -> str:
    return next((remedy for pattern, remedy in remedies if re.search(pattern, failure.message)), "")


def _other_version(failure: FailureFacts) -> str:
    saved, here = failure.saved_file, failure.keras
    if saved is None or here is None or not saved.keras_version or saved.keras_version == here.version:
        return ""
    written = Keras(here.package, saved.keras_version)
    if written.release[:2] <= here.release[:2]:  # a SavedModel says 2.15.1, the TensorFlow, where its Keras is 2.15.0
        return ""
    return (
        f"It was saved by Keras {saved.keras_version}, and this is {here}, which does not know everything that a newer "
        "Keras writes. Update Keras, or name a Python that has the newer one with --python."
    )
