"""A saved model as target, from top to bottom: read what it says of itself, refuse what does more than compute, load a
copy of it with the Keras that wrote it under the policy that it names, and train that on made-up data. A graph without
a Keras model is looked at, and not trained."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mpdoctor.examiner.capture.load_hooks import package_of
from mpdoctor.examiner.exceptions import Unusable, first_line
from mpdoctor.examiner.keras.private_state import names_looked_up
from mpdoctor.examiner.process.memory import left_on_machine, watch_memory
from mpdoctor.examiner.protocol.event_kinds import Graph, NotRestored, TrainingStatus
from mpdoctor.examiner.saved import refused_operations
from mpdoctor.examiner.saved.archives import SAVE_AGAIN, SavedFile, saved_file_from_path
from mpdoctor.examiner.saved.configuration import policy_of_model
from mpdoctor.examiner.saved.directories import SavedDirectory, saved_directory_from_path
from mpdoctor.examiner.saved.judged_copies import path_to_load
from mpdoctor.examiner.saved.judged_graph_copies import judged_copy
from mpdoctor.examiner.saved.loading_costs import MOST_PARTS
from mpdoctor.examiner.saved.refused_contents import Contents, ForeignName
from mpdoctor.examiner.saved.weight_growth import size_on_disk, weights_within_limit
from mpdoctor.examiner.session import Session
from mpdoctor.examiner.targets.custom_objects import custom_objects_from_module, is_given, is_of_the_platform
from mpdoctor.examiner.targets.outputs import tell_outputs
from mpdoctor.examiner.targets.script_or_factory import train_on_made_up_data
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.saved.file import SavedFileFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel


LARGEST_MEMORY = 24 * 2**30  # bytes; a batch of the largest models that are trained takes 12 GiB, and its gradients
MEMORY_BY_SIZE = 16  # times the file's size beside that: weights, gradients, an optimizer's, and copies of all
KEPT_FREE = 16  # one part in so many of the machine's memory: where none is left, the system ends what it likes
SHOWN = 4
LONGEST_NAME = 200  # characters: a file may name a class by ten million
TRUST = "If you trust the file, add --allow-code-in-file."


class WrongKeras(Unusable):
    """The file needs another Keras than the one at hand."""

    def __init__(self, saved_file: SavedFileFacts, message: str) -> None:
        super().__init__(message)
        self.saved_file = saved_file


def end_beyond_memory(session: Session) -> None:
    """From now on the examination ends with a message where it takes more memory than any file of this size needs."""
    path = str(session.request.path)
    size = size_on_disk(path) if os.path.exists(path) else 0
    allowed, left = LARGEST_MEMORY + MEMORY_BY_SIZE * size, left_on_machine()
    most = allowed if left is None else min(allowed, left - left // KEPT_FREE)
    limit = (
        f"which is the most that mpdoctor takes for a file of {size:,} bytes. Examine the script that trains the model."
        if most == allowed
        else "which is nearly all that this machine had left. Examine it on a larger one."
    )

    def end() -> None:
        name = os.path.basename(os.path.normpath(path))
        problem = f"{name} was given up: it took more than {most / 2**30:,.1f} GiB of memory, {limit}"
        session.fail(FailureFacts("unusable", "loading", message=problem))
        session.events.end()
        os._exit(0)

    watch_memory(most, end)


def train_saved_file(session: Session) -> None:
    """A .keras archive or an HDF5 file."""
    os.makedirs(session.request.judged, exist_ok=True)
    saved = saved_file_from_path(str(session.request.path), session.request.judged)
    _import_keras(session, saved)
    _train(session, saved)


def examine_saved_directory(session: Session) -> None:
    """Keras 2's `save` left a model that can be trained; anything else a graph."""
    session.events.stage("importing TensorFlow")
    directory = saved_directory_from_path(str(session.request.path))
    if not directory.has_keras_model:
        _inspect(session, directory, "it holds a graph and no Keras model")
        return
    _import_keras2()
    if session.keras is None or not session.keras.loads_directories:
        _inspect(session, directory, "the Keras 2 model in it needs tf_keras, which is not installed here")
        return
    saved = directory.keras_file(package_of(session.keras))
    if not session.request.allow_code_in_file:
        refused_operations.refuse_operations(directory)
    _train(session, replace(saved, path=judged_copy(directory, session.request.judged)))


def _train(session: Session, saved: SavedFile) -> None:
    request = session.request
    objects = custom_objects_from_module(request.custom_objects)
    saved = judge(session, saved, objects)
    policy = policy_of_model(saved.configuration)
    if policy and request.policy == "auto":
        session.hooked_keras.set_policy(policy)
    session.events.stage(f"loading {saved.name}")
    model = _load(session, saved, objects)
    if request.outputs:
        tell_outputs(session, model)
    else:
        train_on_made_up_data(session, model, is_from_file=True)


# --- what is refused ------------------------------------------------------------------------------------------------
def judge(session: Session, saved: SavedFile, objects: dict[str, object]) -> SavedFile:
    """The file as Keras may load it: what the configuration names is on the lists or comes from the user, and what is
    loaded is what was read. `objects` gains the names by which Keras will look up what the user gave.

    Raises Unusable for anything else."""
    if not session.request.allow_code_in_file:
        contents = saved.contents
        _refuse_what_runs(saved, contents)
        _refuse_foreign_names(session, saved, contents.foreign, objects)
    if saved.file is None:
        return saved
    os.makedirs(session.request.judged, exist_ok=True)
    return replace(saved, path=path_to_load(saved, session.request.judged))


def _refuse_what_runs(saved: SavedFile, contents: Contents) -> None:
    for held, problem in (
        (contents.code, "holds Python code ({}) that would run while loading"),
        (contents.calls, "calls {}, which is not on the list of functions that compute and do nothing else"),
        (contents.files, "names a file of this machine that would be read while loading: {}"),
    ):
        if held:
            raise Unusable(f"{saved.name} {problem.format(_shortened_list(held))}. {TRUST}")
    for held, problem in (
        (contents.nameless, "names no class where it ought to: it has {}"),
        (contents.eager, "holds layers that are given no tensor of the model and would compute while loading: {}"),
        (contents.large, f"was not loaded: it asks for {{}}, and mpdoctor makes at most {MOST_PARTS:,}"),
        (contents.dtypes, "was not loaded: it holds arrays of {}, and Keras writes arrays of numbers"),
        (contents.patterns, "was not loaded: it looks for layers by a pattern that may take for ever to match: {}"),
    ):
        if held:
            raise Unusable(f"{saved.name} {problem.format(_shortened_list(held))}. {SAVE_AGAIN}")


def _refuse_foreign_names(
    session: Session, saved: SavedFile, foreign: list[ForeignName], objects: dict[str, object]
) -> None:
    """Loading would end in a riddle, or import whatever module the file names. A SavedModel brings the graphs of its
    classes along and needs only those whose module it names; by a bare name Keras finds what it has itself, though."""
    of_keras: frozenset[str] = frozenset()
    if saved.form == "saved-model":
        of_keras = names_looked_up(session.hooked_keras.module) if foreign else of_keras
        foreign = [name for name in foreign if name.module or name.name in of_keras]
    unknown = [name for name in foreign if not is_given(session.hooked_keras, name, objects)]
    if any(is_of_the_platform(name.module) or name.name in of_keras for name in unknown):
        raise Unusable(
            f"{saved.name} names {_shortened_list([f'`{name}`' for name in unknown])}, which "
            f"{'is' if len(unknown) == 1 else 'are'} not on the list of Keras' layers, losses, optimizers and other "
            f"parts of a model. {TRUST}"
        )
    if unknown:
        raise Unusable(_how_to_give(unknown, saved, session.request.custom_objects))


def _how_to_give(unknown: list[ForeignName], saved: SavedFile, given: str | None) -> str:
    """What a saved file needs that Keras has not, and the option that names where it is defined. `given`: the
    `--custom-objects` of this check."""
    few = len(unknown) == 1
    module = unknown[0].module if unknown[0].module not in ("", "__main__") else "MODULE"
    return (
        f"{saved.name} needs {_shortened_list([f'`{name}`' for name in unknown])}, which {'is' if few else 'are'} none "
        f"of Keras' own{f' and not in {given}' if given else ''}. Name the module that defines "
        f"{'it' if few else 'them'}: --custom-objects {module}"
    )


def _shortened_list(names: list[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join(
        [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…" for name in names[:SHOWN]] + more
    )


# --- which Keras ----------------------------------------------------------------------------------------------------
def _import_keras(session: Session, saved: SavedFile) -> None:
    """Import the Keras that wrote the file; where that is missing, the installed one: Keras 3 reads some files of Keras
    2."""
    if saved.keras_version.startswith("2"):
        _import_keras2()
    elif saved.keras_version.startswith("3"):
        _import_own_keras()
        if session.keras is not None and not _has_keras3(session) and importlib.util.find_spec("keras") is not None:
            importlib.import_module("keras")
        if not _has_keras3(session):
            here = "no Keras" if session.keras is None else str(session.keras.facts.version)
            raise WrongKeras(
                saved.facts(),
                f"{saved.name} was saved by Keras {saved.keras_version}, and Keras {here} cannot read it. Name an "
                "interpreter that has Keras 3 with --python.",
            )
    else:
        _import_own_keras()


def _has_keras3(session: Session) -> bool:
    return session.keras is not None and session.keras.facts.release[:1] == (3,)


def _import_keras2() -> None:
    if importlib.util.find_spec("tf_keras") is not None:
        importlib.import_module("tf_keras")
    else:
        _import_own_keras()


def _import_own_keras() -> None:
    """What `tf.keras` is here; TensorFlow imports it when it is first asked for something of it."""
    import tensorflow as tf

    tf.keras.layers.Layer  # noqa: B018 - imports it


# --- loading --------------------------------------------------------------------------------------------------------
def _load(session: Session, saved: SavedFile, objects: dict[str, object]) -> KerasModel:
    """The model. A loss or an optimizer that this Keras cannot restore is left out: Keras 3.15 reads no "mse" from the
    HDF5 files that it writes itself, and older ones know no optimizer of newer ones."""
    load = session.hooked_keras.module.models.load_model
    options: dict[str, object] = {"custom_objects": objects}
    if "safe_mode" in inspect.signature(load).parameters:  # older ones know no safe mode
        options["safe_mode"] = not session.request.allow_code_in_file
    try:
        with weights_within_limit(session.hooked_keras, saved):
            model = load(saved.path, **options)
    except Exception as error:
        if saved.form == "keras" or isinstance(error, Unusable) or _names_unknown(error):
            raise
        try:
            with weights_within_limit(session.hooked_keras, saved):
                model = load(saved.path, **options, compile=False)
        except Unusable:
            raise
        except Exception:
            raise error from None
        left_out = f"the optimizer and the loss of {saved.name}, on which Keras raises {first_line(error)}"
        session.events.send(NotRestored(left_out))
        return model
    _replace_empty_optimizer(session, saved, model)
    return model


def _replace_empty_optimizer(session: Session, saved: SavedFile, model: KerasModel) -> None:
    """Keras 3 restores the optimizer of a trained HDF5 file for no variables (3.15), so that nobody can train on with
    it: a fresh one of the same configuration takes its place."""
    keras = session.hooked_keras
    if not keras.replace_empty_optimizer(model):
        return
    session.events.send(
        NotRestored(
            f"the state of the optimizer of {saved.name}. Keras {keras.facts.version} restores it for no variables, so "
            'that fit() after load_model() stops with "Unknown variable"; compile the model again there'
        )
    )


def _names_unknown(error: Exception) -> bool:
    """Whether a class or function of the user's is missing, which --custom-objects would bring."""
    return str(error).startswith("Unknown ") and "LossScaleOptimizer" not in str(error)


def _inspect(session: Session, directory: SavedDirectory, because: str) -> None:
    from mpdoctor.examiner.saved.graphs import graph_facts_from_proto

    session.events.stage("reading the graph")
    session.events.send(Graph(graph_facts_from_proto(directory.meta_graph, directory.path, because)))
    session.events.send(TrainingStatus("skipped", f"inspected, not run: {because}"))
