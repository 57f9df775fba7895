"""The examiner from top to bottom: read the request, install hooks, run the target, report how it ended."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

from mpdoctor.examiner.endings import look_at_untrained_models, tell_how_it_ended
from mpdoctor.examiner.own_imports import OwnImports
from mpdoctor.examiner.process import confinement, edited_source, environment, supervisor
from mpdoctor.examiner.protocol.event_kinds import Started
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.examiner.session import Session
from mpdoctor.examiner.targets import saved_model, script_or_factory
from mpdoctor.facts.saved.file import SAVED


def main(request_path: str, imports: OwnImports, foreground: bool = False) -> None:
    """Never returns: the process ends in `Session.finish`, whatever the script has left running. `foreground`: started
    by hand, without a supervisor; events and tracebacks are printed."""
    request, events = _asked(request_path, foreground)
    events.send(Started("{}.{}.{}".format(*sys.version_info[:3])))
    if request.edited is not None:
        edited_source.install(request.edited)
    imports.hand_over(_folder_of_program(request))
    if request.kind == "environment":
        environment.tell_environment(events)
        events.end()
        os._exit(0)
    confined = request.kind in SAVED and _confine(request)
    session = Session(request, events)
    if not confined:
        _watch_written_files(session)
        session.processes.install()
    session.install()
    sys.dont_write_bytecode = True  # no __pycache__ beside the user's modules
    started = time.monotonic()
    try:
        run(session)
    except BaseException as error:
        with imports.in_place():
            try:
                tell_how_it_ended(session, error, time.monotonic() - started)
            except Exception as defect:
                session.broke(defect)
    with imports.in_place():
        session.finish()


def _asked(request_path: str, foreground: bool) -> tuple[Request, Events]:
    """The request, and where to tell what is seen. By hand it is printed; else a child of this process goes on from
    here, and the process itself supervises it and never returns."""
    with open(request_path, encoding="utf-8") as file:
        request = Request.from_json(file.read())
    if foreground:
        from mpdoctor.examiner.protocol.printed_events import PrintedEvents, request_in_foreground

        request = request_in_foreground(request, request_path)
        return request, PrintedEvents(request.events)
    events = Events(request.events)
    if supervisor.is_supervised():
        supervisor.supervise_examiner(events)
        events = Events(request.events)
    return request, events


def _folder_of_program(request: Request) -> str | None:
    """The one that `run` will put first on sys.path; None for a saved file, beside which nothing is imported."""
    if request.kind in SAVED or request.kind == "environment":
        return os.getcwd() if request.custom_objects else None
    return os.path.dirname(request.path) if request.path else os.getcwd()


def _confine(request: Request) -> bool:
    """Confine this process to its scratch directory and event file. Whether that succeeded."""
    os.makedirs(request.scratch, mode=0o700, exist_ok=True)
    return not confinement.confine(request.scratch, request.events)


def run(session: Session) -> None:
    """Run the target until its training call, which never returns; else look at the models that it left."""
    kind = session.request.kind
    session.events.stage("importing TensorFlow" if kind in SAVED else "running the script")
    if kind in SAVED:
        saved_model.end_beyond_memory(session)
    if kind in ("script", "notebook"):
        script_or_factory.run_script(session)
        _wait_for_threads(session)
        look_at_untrained_models(session)
    elif kind == "factory":
        script_or_factory.train_factory(session)
    elif kind == "saved-model":
        saved_model.examine_saved_directory(session)
    else:
        saved_model.train_saved_file(session)


def _wait_for_threads(session: Session) -> None:
    """Wait for the program's threads, as Python does at the end of a program: one of them may be about to train."""
    threading = sys.modules.get("threading")  # the program's, which may be another one than ours
    if threading is None or not hasattr(threading, "_shutdown"):
        return
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        session.tell_built()
        session.events.stage("waiting for the script's threads")
        threading._shutdown()  # knows how to end those of executors


def _watch_written_files(session: Session) -> None:
    """List what the script opens for writing, so that the report can say so."""
    ignored = re.compile(re.escape(os.path.dirname(session.request.events) + os.sep) + r"|/proc/|/dev/(?!shm/)").match
    writing = set("wax+")

    def audit(event: str, args: Any) -> None:
        if event != "open" or not isinstance(args[0], str) or not isinstance(args[1], str):
            return
        if writing & set(args[1]):
            path = os.path.abspath(args[0])
            if not ignored(path) and "__pycache__" not in path:
                session.files_written.append(path)

    sys.addaudithook(audit)
