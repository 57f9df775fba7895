"""Runs a script or a notebook as `__main__`, or calls a factory and trains its model on made-up data."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import io
import os
import sys
import types
from typing import TYPE_CHECKING, Iterable, Iterator

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.protocol.event_kinds import TrainingStatus
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.examiner.session import Session
from mpdoctor.examiner.targets import notebook
from mpdoctor.examiner.targets.caught_exceptions import compiled
from mpdoctor.examiner.targets.package_modules import import_package, package_module
from mpdoctor.facts.model import CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel


MOST_OFFERED = 12  # functions that are named where the one asked for is not there
# With one of these a module may hold names that its text does not.
BINDS_ANYTHING = {"*", "__getattr__", "eval", "exec", "globals", "locals", "setattr", "sys", "vars"}


def run_script(session: Session) -> None:
    """Run a file as `python FILE ARGUMENTS` would: `__main__`, its folder first on sys.path (unless the user has set
    PYTHONSAFEPATH), its own arguments. A file that can only run inside its package is run as by `python -m`, the cells
    of a notebook in its folder, as by Jupyter."""
    path = str(session.request.path)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins, __spec__=None)
    sys.modules["__main__"] = module
    sys.argv = [path, *session.request.arguments]
    tree = _tree_of_file(path)
    of_package = package_module(path, tree)
    if of_package is not None:
        session.environment.run_as = f"python -m {of_package.name.replace('.__main__', '')}"
        spec = importlib.util.spec_from_file_location(of_package.name, path)
        module.__dict__.update(__spec__=spec, __package__=of_package.package)
        import_package(of_package)
    elif not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(path))
    if session.request.kind == "notebook":
        module.__dict__.update(notebook.names_in_notebook())
        notebook.enter_folder(path)
    exec(compiled(tree, path), module.__dict__)


def _tree_of_file(path: str) -> ast.Module:
    with io.open_code(path) as file:
        return ast.parse(file.read(), path)


def train_factory(session: Session) -> None:
    """Call the factory without arguments, make data for what it returns, and train that."""
    request = session.request
    sys.argv = [request.path or str(request.module), *request.arguments]
    if request.path:
        _look_for_factory(request)  # the module itself may train as soon as it is imported
    module = _module(request.path, request.module)
    factory = getattr(module, str(request.factory), None)
    if factory is None:
        raise _no_factory(request, (n for n, v in vars(module).items() if isinstance(v, types.FunctionType)))
    model = _as_model(session, factory() if callable(factory) else factory)
    train_on_made_up_data(session, model)


def _look_for_factory(request: Request) -> None:
    """Check that the text of the module binds the factory's name in some way. Raises Unusable where it does not."""
    path, factory = str(request.path), str(request.factory)
    nodes = list(ast.walk(_tree_of_file(path)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name)}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    bound |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    if factory not in bound and not bound & BINDS_ANYTHING:
        raise _no_factory(request, _functions_of_module(_tree_of_file(path)))


def _functions_of_module(node: ast.AST) -> Iterator[str]:
    """The names of the functions that a module's own statements define, not those in its classes and functions."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef):
            yield inner.name
        elif not isinstance(inner, (ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _functions_of_module(inner)


def _no_factory(request: Request, functions: Iterable[str]) -> Unusable:
    offered = list(dict.fromkeys(functions))
    names = ", ".join(f"`{name}`" for name in offered[:MOST_OFFERED])
    if len(offered) > MOST_OFFERED:
        names += f" and {len(offered) - MOST_OFFERED} more"
    place = os.path.basename(request.path) if request.path else request.module
    remedy = "It defines none: name the file that defines the function which returns the model."
    if names:
        remedy = f"Name one of its functions that returns a model: {names}."
    return Unusable(f"{place} has no function `{request.factory}`. {remedy}")


def _module(path: str | None, name: str | None) -> types.ModuleType:
    if path is None:
        sys.path.insert(0, os.getcwd())
        first = str(name).partition(".")[0]
        if first not in sys.modules and importlib.util.find_spec(first) is None:
            raise Unusable(
                f"There is no module `{first}` in this directory, nor is one installed for the interpreter that "
                "examines. Name a module that is importable from here, or a file: model.py:build_model."
            )
        return importlib.import_module(str(name))
    return module_from_path(path)


def module_from_path(path: str) -> types.ModuleType:
    """The module that a file holds, imported under its own name, with its folder first on sys.path; under its full name
    where it can only be imported from its package."""
    path = os.path.abspath(path)
    of_package = package_module(path, _tree_of_file(path))
    if of_package is not None:
        import_package(of_package)
        return importlib.import_module(of_package.name)
    sys.path.insert(0, os.path.dirname(path))
    stem = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def _as_model(session: Session, made: object) -> KerasModel:
    """A factory may return the model, or a tuple or dict with the model in it."""
    candidates = list(made.values()) if isinstance(made, dict) else made if isinstance(made, (list, tuple)) else [made]
    models = [c for c in candidates if session.keras is not None and isinstance(c, session.keras.Model)]
    if not models:
        raise Unusable(
            f"{session.request.factory}() returned {type(made).__name__}, not a Keras model. A factory takes no "
            "arguments and returns the model to examine."
        )
    return models[0]


def train_on_made_up_data(session: Session, model: KerasModel, is_from_file: bool = False) -> None:
    """A factory or a file brings no data: batches are made from the input specs, labels from the loss. `is_from_file`:
    the model was loaded, so what it computes is counted before it is run."""
    from mpdoctor.examiner.capture.model_facts import model_from_live
    from mpdoctor.examiner.keras.compiled_losses import loss_names
    from mpdoctor.examiner.stand_ins.computed_sizes import most_samples
    from mpdoctor.examiner.stand_ins.synthetic_data import MADE_UP_LOSS, SAMPLES, data_from_specs

    keras = session.hooked_keras
    compiled = keras.is_compiled(model)
    optimizer = model.optimizer if compiled else None
    session.events.model_seen(model_from_live(session, keras, model, optimizer, CallFacts("none")))
    if not session.request.probe:
        session.events.send(TrainingStatus("skipped", "--no-probe"))
        return
    try:
        loss = loss_names(keras.given_loss(model)) if compiled else MADE_UP_LOSS
        samples = most_samples(session.layer_hooks, model) if is_from_file else SAMPLES
        features, labels = data_from_specs(keras, model, loss, samples)
    except Unusable as reason:
        session.events.send(TrainingStatus("skipped", str(reason)))
        return
    if not compiled:
        keras.compile(model, MADE_UP_LOSS)
    made_up_loss = None if compiled else MADE_UP_LOSS
    training = session.new_training(
        session, keras, CallFacts("none"), model, model.optimizer, "synthetic", made_up_loss
    )
    session.training = training
    training.run_fit(type(model).fit, (), {"x": features, "y": labels})
