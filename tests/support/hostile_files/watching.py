"""Sees what hostile files come to: what changed outside, whether the canary was opened, whether somebody connected."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from environments import ENVIRONMENTS

from hostile_files import Attack
from hostile_files.sites import Site

PYTHONS = {environment.keras: environment.python for environment in ENVIRONMENTS}
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
EVENT = struct.Struct("iIII")


class Range:
    """Where hostile files are tried: `with Range(directory) as range`. One site for each attack and Keras."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.bases: dict[str, Path] = {}
        self.sites: dict[Site, Attack] = {}
        self.selector = selectors.DefaultSelector()
        self.connected: set[int] = set()
        self.opened: set[int] = set()
        self.watches: dict[int, int] = {}

    def __enter__(self) -> Range:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.inotify = self.libc.inotify_init1(IN_NONBLOCK)
        assert self.inotify >= 0, os.strerror(ctypes.get_errno())
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.ended.set()
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        os.close(self.inotify)

    def _listen(self) -> None:
        """Accepts and hangs up, which ends a download at once."""
        while not self.ended.is_set():
            if not self.selector.get_map():
                self.ended.wait(0.05)
                continue
            for key, _ in self.selector.select(0.2):
                connection, _ = key.fileobj.accept()  # type: ignore[union-attr]
                connection.close()
                self.connected.add(key.data)

    def make(self, attack: Attack, keras: str) -> Site:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        self.selector.register(listener, selectors.EVENT_READ, port)
        site = Site.in_directory(
            self.directory / f"{attack}-{keras}", keras, attack.form, attack.suffix, port=port, python=PYTHONS[keras],
            bases=self.bases_of(keras) if attack.form == "saved-model" and keras != "3" else Path(),
        )  # fmt: skip
        attack.make(site)
        self.sites[site] = attack
        watch = self.libc.inotify_add_watch(self.inotify, os.fsencode(site.canary), IN_OPEN)
        assert watch >= 0, os.strerror(ctypes.get_errno())
        self.watches[port] = watch
        return site

    def bases_of(self, keras: str) -> Path:
        """SavedModels as this Keras writes them, made when they are first asked for."""
        if keras not in self.bases:
            made = self.directory / f"bases-{keras}" / "made"
            made.mkdir(parents=True)
            _run("bases.py", keras, str(made))
            self.bases[keras] = made
        return self.bases[keras]

    def came_to(self, site: Site) -> list[str]:
        """Everything that must not have happened, in words."""
        try:
            events = os.read(self.inotify, 2**20)
        except BlockingIOError:
            events = b""
        while events:
            watch, mask, _, length = EVENT.unpack_from(events)
            if mask & IN_OPEN:
                self.opened.add(watch)
            events = events[EVENT.size + length :]
        happened = ["the canary was opened"] if self.watches[site.port] in self.opened else []
        happened += ["somebody connected"] if site.port in self.connected else []
        self.opened.discard(self.watches[site.port])
        return happened + site.changed()


def load_plainly(keras: str, sites: Iterable[Site], output: Path | None = None) -> Mapping[Site, str]:
    """What Keras alone made of the files, in words."""
    sites = list(sites)
    told = dict(_run_at_once("plain.py", keras, [str(site.path) for site in sites], output=output))
    return {site: told[str(site.path)] for site in sites}


@dataclass(frozen=True)
class Examination:
    """What an examiner alone made of a file. `said` is how it failed, "" where it trained; `skipped` why it did not
    train what it loaded; `broken` what broke."""

    said: str
    skipped: str
    kind: str
    broken: str
    ended: bool
    seconds: float
    memory: int  # bytes, with what TensorFlow takes


def examine(
    keras: str,
    sites: Iterable[Site],
    down: str = "none",
    *,
    trusting: bool = False,
    more: Callable[[Site], dict[str, Any]] = lambda site: {},
    output: Path | None = None,
) -> Mapping[Site, Examination]:
    """Examines files as `mpdoctor check` does, with one wall down; `trusting` is --allow-code-in-file, `more` what else
    is asked for each."""
    requests = {}
    for site in sites:
        own = site.scratch / f"{down}-{trusting}"
        own.mkdir(parents=True)
        kind = {"keras": "keras-file", "hdf5": "hdf5-file", "saved-model": "saved-model"}[site.form]
        told = {
            "kind": kind,
            "path": str(site.path),
            "module": None,
            "factory": None,
            "arguments": [],
            "steps": 2,
            "events": str(own / "events"),
            "budget": 10.0,
            "allow_code_in_file": trusting,
            **more(site),
        }
        (own / "request.json").write_text(json.dumps(told))
        requests[str(own / "request.json")] = site
    lines = _run_at_once("examining.py", keras, list(requests), down, output=output)
    return {
        requests[path]: _examination(Path(path).with_name("events"), seconds, memory)
        for path, _, seconds, memory in lines
    }


def _examination(path: Path, seconds: float, memory: int) -> Examination:
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    failures = [event["facts"] for event in events if event["event"] == "Failure"]
    failure = failures[-1] if failures else {"message": "", "kind": ""}
    skipped = [event["reason"] for event in events if event["event"] == "TrainingStatus"]
    broken = [event["traceback"] for event in events if event["event"] == "Crashed"]
    ended = any(event["event"] == "Ended" for event in events)
    why = skipped[-1] if skipped else ""
    return Examination(failure["message"], why, failure["kind"], " ".join(broken), ended, seconds, memory)


def _run_at_once(script: str, keras: str, listed: list[str], *arguments: str, output: Path | None = None) -> list[Any]:
    """The lines of JSON that a script printed for a list, of which two processes do a half each."""

    def run(names: list[str]) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(names, file)
            file.flush()
            return _run(script, keras, *arguments, file.name, output=output)

    parts = [half for half in (listed[::2], listed[1::2]) if half]
    with ThreadPoolExecutor(2) as pool:
        return [json.loads(line) for said in pool.map(run, parts) for line in said.splitlines()]


def _run(script: str, keras: str, *arguments: str, output: Path | None = None) -> str:
    """What a script beside this one printed, in the interpreter that this Keras lies in."""
    done = subprocess.run(
        [PYTHONS[keras] or sys.executable, Path(__file__).with_name(script), keras, *arguments],
        env=surroundings(keras, output),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert not done.returncode, done.stderr.decode()[-3000:]
    return done.stdout.decode()


def surroundings(keras: str, output: Path | None = None) -> dict[str, str]:
    """Nothing of a test may reach beyond this machine: what asks for a proxy finds none that answers."""
    chosen = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
    chosen.update(
        HARMLESS_KERAS=keras, http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9", no_proxy="127.0.0.1"
    )
    chosen.pop("TF_USE_LEGACY_KERAS", None)
    if keras == "tf_keras":
        chosen["TF_USE_LEGACY_KERAS"] = "1"
    if output is not None:
        output.touch()
        chosen.update(PLAIN_OUTPUT=str(output), PLAIN_TRACEBACK="1")
    return chosen
