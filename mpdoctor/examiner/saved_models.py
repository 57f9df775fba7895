"""A saved model as target, from top to bottom: read what it says of itself, refuse what it must not do, load it with
the Keras that wrote it under the policy that it names, and train it on made-up data. A graph without a Keras model is
looked at, and not trained."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from typing import Any

from mpdoctor.examiner.failures import first_line
from mpdoctor.examiner.loads import package_of
from mpdoctor.examiner.saved_configuration import OwnName, code_in, own_names_in, policy_of_model
from mpdoctor.examiner.saved_directories import SavedDirectory, saved_directory_from_path
from mpdoctor.examiner.saved_reading import SavedFile, saved_file_from_path
from mpdoctor.examiner.session import Session, Unusable
from mpdoctor.examiner.targets import module_from_path, train_on_made_up_data
from mpdoctor.facts.saved_file import SavedFileFacts

SHOWN = 4
# Where Keras looks for its own functions that a file names by their name alone.
OWN_FUNCTIONS = ("activations", "losses", "metrics", "initializers", "regularizers", "constraints")


class WrongKeras(Unusable):
    """This file is for another Keras than the one at hand."""

    def __init__(self, saved_file: SavedFileFacts, message: str) -> None:
        super().__init__(message)
        self.saved_file = saved_file


def train_saved_file(session: Session) -> None:
    """A .keras archive or an HDF5 file."""
    saved = saved_file_from_path(str(session.request.path))
    _refuse_code(session, saved)
    _import_keras(session, saved)
    _train(session, saved)


def examine_saved_directory(session: Session) -> None:
    """Keras 2's `save` left a model that can be trained; anything else a graph."""
    session.events.stage("importing TensorFlow")
    directory = saved_directory_from_path(str(session.request.path))
    if not directory.has_keras_model:
        _inspect(session, directory, "it was exported for inference, without loss and optimizer")
        return
    _import_keras2(session)
    if session.keras is None or session.keras.is_keras3:
        _inspect(session, directory, "the Keras 2 model in it needs tf_keras, which is not installed here")
        return
    saved = directory.keras_file(package_of(session.keras))
    _refuse_code(session, saved)
    _train(session, saved)


def _train(session: Session, saved: SavedFile) -> None:
    objects = _custom_objects(session.request.custom_objects)
    _refuse_own_names(session, saved, objects)
    keras, request = session.keras, session.request
    policy = policy_of_model(saved.configuration)
    if policy and request.policy == "auto":
        keras.set_policy(policy)
    session.events.stage(f"loading {saved.name}")
    train_on_made_up_data(session, _load(session, saved, objects))


# --- what is refused ------------------------------------------------------------------------------------------------
def _refuse_code(session: Session, saved: SavedFile) -> None:
    code = code_in([saved.configuration, saved.training])
    if code and not session.request.allow_code_in_file:
        raise Unusable(
            f"{saved.name} holds Python code ({_listed(code)}) that would run while loading. "
            "If you trust the file, add --allow-code-in-file."
        )


def _refuse_own_names(session: Session, saved: SavedFile, objects: dict[str, Any]) -> None:
    """Loading would end in a riddle, or import whatever module the file names. A SavedModel brings the graphs of its
    classes along and needs none of them."""
    imported_only = saved.form == "saved-model"
    names = own_names_in([saved.configuration, saved.training], imported_only=imported_only)
    unknown = [one for one in names if not _is_known(session.keras, one, objects)]
    if unknown and not (session.request.allow_code_in_file and all(one.module for one in unknown)):
        few = len(unknown) == 1
        raise Unusable(
            f"{saved.name} needs {_listed([f'`{one}`' for one in unknown])}, which {'is' if few else 'are'} none of "
            f"Keras' own{_were_given(session)}. Name the module that defines {'it' if few else 'them'}: "
            f"--custom-objects {unknown[0].module or 'MODULE'}"
        )


def _were_given(session: Session) -> str:
    given = session.request.custom_objects
    return f" and not in {given}" if given else ""


def _is_known(keras: Any, one: OwnName, objects: dict[str, Any]) -> bool:
    if one.name in objects or one.registered in objects or one.registered.rpartition(">")[2] in objects:
        return True
    find = keras.module.utils.get_registered_object
    if any(find(name, custom_objects=objects) is not None for name in (one.registered, one.name) if name):
        return True
    is_function = not one.module
    return is_function and any(hasattr(getattr(keras.module, place, None), one.name) for place in OWN_FUNCTIONS)


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join(names[:SHOWN] + more)


def _custom_objects(name: str | None) -> dict[str, Any]:
    """What a module, given by its dotted name or its file, defines."""
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
    return {key: value for key, value in vars(module).items() if not key.startswith("_") and callable(value)}


# --- which Keras ----------------------------------------------------------------------------------------------------
def _import_keras(session: Session, saved: SavedFile) -> None:
    """The Keras that wrote the file; where it is not here, the one that is: Keras 3 reads some files of Keras 2."""
    if saved.keras_version.startswith("2"):
        _import_keras2(session)
    elif saved.keras_version.startswith("3"):
        _import_own_keras()
        if importlib.util.find_spec("keras") is not None and session.keras is not None and not session.keras.is_keras3:
            importlib.import_module("keras")
        if session.keras is None or not session.keras.is_keras3:
            here = "no Keras" if session.keras is None else str(session.keras.facts.version)
            raise WrongKeras(
                saved.facts(),
                f"{saved.name} was saved by Keras {saved.keras_version}, and Keras {here} cannot read it. Name an "
                "interpreter that has Keras 3 with --python.",
            )
    else:
        _import_own_keras()


def _import_keras2(session: Session) -> None:
    if importlib.util.find_spec("tf_keras") is not None:
        importlib.import_module("tf_keras")
    else:
        _import_own_keras()


def _import_own_keras() -> None:
    """What `tf.keras` is here; TensorFlow imports it when it is first asked for something of it."""
    import tensorflow as tf

    tf.keras.layers.Layer  # noqa: B018 - imports it


# --- loading --------------------------------------------------------------------------------------------------------
def _load(session: Session, saved: SavedFile, objects: dict[str, Any]) -> Any:
    """The model. A loss or an optimizer that this Keras cannot restore is left out: Keras 3.15 reads no "mse" from the
    HDF5 files that it writes itself, and older ones know no optimizer of newer ones."""
    load = session.keras.module.models.load_model
    options: dict[str, Any] = {"custom_objects": objects}
    if "safe_mode" in inspect.signature(load).parameters:  # older ones know no safe mode
        options["safe_mode"] = not session.request.allow_code_in_file
    try:
        model = load(saved.path, **options)
    except Exception as error:
        if saved.form == "keras" or _names_unknown(error):
            raise
        try:
            model = load(saved.path, **options, compile=False)
        except Exception:
            raise error from None
        session.events.note(
            not_restored=f"the optimizer and the loss of {saved.name}, on which Keras raises {first_line(error)}"
        )
        return model
    _replace_empty_optimizer(session, saved, model)
    return model


def _replace_empty_optimizer(session: Session, saved: SavedFile, model: Any) -> None:
    """Keras 3 restores the optimizer of a trained HDF5 file for no variables (3.15), so that nobody can train on with
    it: a fresh one of the same configuration takes its place."""
    keras, optimizer = session.keras, getattr(model, "optimizer", None)
    if not keras.is_keras3 or optimizer is None or not optimizer.built:
        return
    innermost = optimizer
    while keras.inner(innermost) is not None:
        innermost = keras.inner(innermost)
    if innermost._trainable_variables or not model.trainable_variables:
        return
    optimizers = keras.module.optimizers
    model.optimizer = optimizers.deserialize(optimizers.serialize(optimizer))
    session.events.note(
        not_restored=f"the state of the optimizer of {saved.name}. Keras {keras.facts.version} restores it for no "
        'variables, so that fit() after load_model() stops with "Unknown variable"; compile the model again there'
    )


def _names_unknown(error: Exception) -> bool:
    """Whether a class or function of the user's is missing, which --custom-objects would bring."""
    return str(error).startswith("Unknown ") and "LossScaleOptimizer" not in str(error)


def _inspect(session: Session, directory: SavedDirectory, because: str) -> None:
    from mpdoctor.examiner.saved_graphs import graph_facts_from_proto

    session.events.stage("reading the graph")
    session.events.facts("graph", graph_facts_from_proto(directory.meta_graph, directory.path, because))
    session.events.note(training_status=["skipped", f"inspected, not trained: {because}"])
