"""What the user pointed at, run: a script as `__main__`, a factory, a saved .keras file."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import types
import zipfile
import zlib
from typing import Any, Iterator

from mpdoctor.examiner.session import Session, Unusable
from mpdoctor.facts.model import CallFacts


def run_script(session: Session) -> None:
    """Run a file as `python FILE ARGUMENTS` would: `__main__`, its folder first on sys.path, its own arguments."""
    path = str(session.request.path)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__, __spec__=None)
    sys.modules["__main__"] = module
    sys.argv = [path, *session.request.arguments]
    sys.path.insert(0, os.path.dirname(path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def train_factory(session: Session) -> None:
    """Call the factory without arguments, make data for what it returns, and train that."""
    request = session.request
    sys.argv = [request.path or str(request.module), *request.arguments]
    module = _module(request.path, request.module)
    factory = getattr(module, str(request.factory), None)
    if factory is None:
        names = ", ".join(n for n, v in vars(module).items() if isinstance(v, types.FunctionType)) or "none"
        raise Unusable(f"{request.factory} is not in {request.path or request.module}; its functions: {names}")
    model = _as_model(session, factory() if callable(factory) else factory)
    train_on_made_up_data(session, model)


def _module(path: str | None, name: str | None) -> Any:
    if path is None:
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(str(name))
    sys.path.insert(0, os.path.dirname(path))
    stem = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def _as_model(session: Session, made: Any) -> Any:
    """A factory may return the model, or a tuple or dict with the model in it."""
    candidates = list(made.values()) if isinstance(made, dict) else made if isinstance(made, (list, tuple)) else [made]
    models = [c for c in candidates if session.keras is not None and isinstance(c, session.keras.Model)]
    if not models:
        raise Unusable(
            f"{session.request.factory}() returned {type(made).__name__}, not a Keras model. A factory takes no "
            "arguments and returns the model to examine."
        )
    return models[0]


def train_keras_file(session: Session) -> None:
    """Load a .keras file under the policy that its own configuration names, and train it on made-up data.

    Its configuration is read, and searched for code, before anything of it is loaded."""
    path, request = str(session.request.path), session.request
    configuration = configuration_from_file(path)
    code = list(code_in(configuration))
    if code and not request.allow_code_in_file:
        raise Unusable(
            f"{os.path.basename(path)} holds Python code ({', '.join(code)}) that would run while loading. "
            "If you trust the file, add --allow-code-in-file."
        )
    objects = _custom_objects(request.custom_objects)
    keras = _keras_for(session, path)
    if request.policy == "auto":
        policy = policy_in(configuration)
        if policy:
            keras.set_policy(policy)
    session.events.stage("loading " + os.path.basename(path))
    model = keras.load(path, objects, request.allow_code_in_file)
    train_on_made_up_data(session, model)


def configuration_from_file(path: str) -> dict[str, Any]:
    """The `config.json` of a .keras file.

    Raises Unusable for anything that is no whole .keras archive."""
    name = os.path.basename(path)
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
            if broken:
                raise Unusable(
                    f"{name} is damaged: {broken} inside it does not match its checksum. Save the model again."
                )
            configuration = json.loads(archive.read("config.json").decode("utf-8"))
    except zipfile.BadZipFile:
        raise Unusable(
            f"{name} is no .keras file, or only a part of one: it is not a whole zip archive. Save the model again "
            "with model.save()."
        ) from None
    except KeyError:
        raise Unusable(f"{name} is a zip archive without config.json, so it is no .keras file.") from None
    except (ValueError, RecursionError):
        raise Unusable(f"{name} holds a config.json that is no JSON. Save the model again with model.save().") from None
    except (EOFError, NotImplementedError, OSError, RuntimeError, zlib.error) as error:  # what zipfile lets through
        raise Unusable(f"{name} is damaged: {error}. Save the model again with model.save().") from None
    if not isinstance(configuration, dict):
        raise Unusable(f"{name} holds a config.json that describes no model.")
    return configuration


def code_in(configuration: Any) -> Iterator[str]:
    """Names of Lambda layers and marshalled functions anywhere in a configuration."""
    if isinstance(configuration, dict):
        if configuration.get("class_name") in ("Lambda", "__lambda__"):
            name = (
                (configuration.get("config") or {}).get("name") if isinstance(configuration.get("config"), dict) else ""
            )
            yield "{} {}".format("Lambda layer" if name else "a lambda function", name or "").strip()
            return
        for value in configuration.values():
            yield from code_in(value)
    elif isinstance(configuration, list):
        for value in configuration:
            yield from code_in(value)


def policy_in(configuration: Any) -> str | None:
    """The 16-bit policy that a saved model's configuration names: the model's own, else that of its layers."""
    names: list[str] = []

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            if part.get("class_name") in ("DTypePolicy", "Policy", "FloatDTypePolicy"):
                name = (part.get("config") or {}).get("name")
                if isinstance(name, str):
                    names.append(name)
            for value in part.values():
                collect(value)
        elif isinstance(part, list):
            for value in part:
                collect(value)

    collect(configuration)
    mixed = [name for name in names if name.startswith("mixed_")]
    return max(mixed, key=mixed.count) if mixed else None


def _keras_for(session: Session, path: str) -> Any:
    """The Keras that saved the file: a Keras 2 file needs tf_keras where TensorFlow itself brings Keras 3."""
    with zipfile.ZipFile(path) as archive:
        metadata = json.loads(archive.read("metadata.json")) if "metadata.json" in archive.namelist() else {}
    saved_by_keras2 = str(metadata.get("keras_version", "")).startswith("2")
    has_tf_keras = importlib.util.find_spec("tf_keras") is not None
    importlib.import_module("tf_keras" if saved_by_keras2 and has_tf_keras else "keras")
    return session.keras


def _custom_objects(module_name: str | None) -> dict[str, Any] | None:
    if module_name is None:
        return None
    sys.path.insert(0, os.getcwd())
    module = importlib.import_module(module_name)
    return {name: value for name, value in vars(module).items() if not name.startswith("_") and callable(value)}


def train_on_made_up_data(session: Session, model: Any) -> None:
    """A factory or a file brings no data: batches are made from the input specs, labels from the loss."""
    from mpdoctor.examiner.probe import Training
    from mpdoctor.examiner.synthetic import MADE_UP_LOSS, data_from_specs
    from mpdoctor.examiner.walk import model_from_live

    keras = session.keras
    compiled = keras.is_compiled(model)
    optimizer = model.optimizer if compiled else None
    session.events.facts("model", model_from_live(session, keras, model, optimizer, CallFacts("none")))
    if not session.request.probe:
        session.events.note(training_status=["skipped", "--no-probe"])
        return
    try:
        features, labels = data_from_specs(keras, model, keras.loss_text(model) if compiled else MADE_UP_LOSS)
    except Unusable as reason:
        session.events.note(training_status=["skipped", str(reason)])
        return
    if not compiled:
        keras.compile(model, MADE_UP_LOSS)
    made_up_loss = None if compiled else MADE_UP_LOSS
    training = Training(session, keras, CallFacts("none"), model, model.optimizer, "synthetic", made_up_loss)
    session.training = training
    training.run_fit(type(model).fit, (), {"x": features, "y": labels})
