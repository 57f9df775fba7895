"""Without a network: stand-ins for the data sets that Keras and tensorflow_datasets download, random weights for
pretrained ones.

The real call comes first, so that what is on this machine is used. Only what cannot be downloaded is made up, and told.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import os
import re
import socket
import sys
import urllib.error
import urllib.request
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Iterator
from urllib.parse import urlsplit

from mpdoctor.examiner.exceptions import text_of_error
from mpdoctor.examiner.process.patching import replace_method

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel


PATIENCE, IMPATIENCE = 10.0, 1.0  # seconds for a server to answer; for one that has not answered before
DATA_SERVERS = ("https://storage.googleapis.com/", "https://www.cs.toronto.edu/", "https://s3.amazonaws.com/")
PRETRAINED = re.compile(r"/(?:tensorflow/)?keras-applications/|/deep-learning-models/releases/")
NO_DOWNLOAD = (urllib.error.URLError, ConnectionError, socket.timeout, socket.gaierror, http.client.HTTPException)
# As Keras words it, in an exception of no class of its own.
FETCH_FAILURE = "URL fetch failure"


class StandIns:
    """`tell` is called with the names of all that was made up so far. `data`: whether data was, not only weights."""

    def __init__(self, folder: str, tell: Callable[[list[str]], None]) -> None:
        self._folder = folder
        self._tell_all = tell
        self._reported: list[str] = []
        self._silent_servers: set[str] = set()
        self._random_weights: set[str] = set()
        self.data = False

    # --- Keras --------------------------------------------------------------------------------------------------
    def install(self, keras: KerasAdapter) -> None:
        original = keras.module.utils.get_file
        replacement = self._instead_of(original)
        for module in list(sys.modules.values()):
            if vars(module).get("get_file") is original:
                module.__dict__["get_file"] = replacement
        replace_method(keras.Model, "load_weights", self._load_weights)

    def _instead_of(self, get_file: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(get_file)
        def get_file_or_stand_in(*args: object, **kwargs: object) -> object:
            address = str(kwargs.get("origin", args[1] if len(args) > 1 else ""))
            server = urlsplit(address).netloc
            try:
                with _timeout(IMPATIENCE if server in self._silent_servers else PATIENCE):
                    return get_file(*args, **kwargs)
            except Exception as error:
                known = (*NO_DOWNLOAD, *_url_errors_of_program())
                if not isinstance(error, known) and not text_of_error(error).startswith(FETCH_FAILURE):
                    raise
                self._silent_servers.add(server)
                made = self._from_address(address)
                if made is None:
                    raise
                return made

        return get_file_or_stand_in

    def _from_address(self, address: str) -> str | None:
        name = address.rpartition("/")[2]
        if PRETRAINED.search(address) and name.endswith(".h5"):
            path = os.path.join(self._folder, name)
            self._random_weights.add(path)
            self._tell("pretrained weights of " + re.split(r"_weights|_notop|\.h5", name)[0])
            return path
        if not address.startswith(DATA_SERVERS):
            return None
        from mpdoctor.examiner.stand_ins.keras_datasets import file_from_address

        made = file_from_address(address, self._folder)
        if made is None:
            return None
        title, path = made
        self._tell(title)
        self.data = self.data or title.startswith("keras.datasets.")
        return path

    def _load_weights(
        self, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        path = str(args[0] if args else kwargs.get("filepath", ""))
        return None if path in self._random_weights else original(model, *args, **kwargs)

    # --- tensorflow_datasets --------------------------------------------------------------------------------------
    def install_tensorflow_datasets(self, module: ModuleType) -> None:
        original = module.load

        @functools.wraps(original)
        def load_or_stand_in(name: str, *args: object, **kwargs: object) -> object:
            if not _is_reachable("storage.googleapis.com"):
                kwargs = {**kwargs, "download": False, "try_gcs": False}  # what lies here is found all the same
            try:
                return original(name, *args, **kwargs)
            except Exception:
                from mpdoctor.examiner.stand_ins.tfds import dataset_from_call

                if kwargs.get("download", True):
                    raise
                given: dict[str, Any] = kwargs
                made = dataset_from_call(module, name, *args, **given)
                if made is None:
                    raise
            self._tell("tensorflow_datasets " + name)
            self.data = True
            return made

        module.__dict__["load"] = load_or_stand_in

    def _tell(self, title: str) -> None:
        if title not in self._reported:
            self._reported.append(title)
            self._tell_all(self._reported)


@contextlib.contextmanager
def _timeout(seconds: float) -> Iterator[None]:
    """A time limit while this context is active: without one urllib waits for ever, and Keras sets none."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds if before is None else min(before, seconds))
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _is_reachable(server: str) -> bool:
    """Whether the server can be reached. Behind a proxy only an attempt tells, so it counts as reachable."""
    if urllib.request.getproxies().get("https"):
        return True
    try:
        socket.create_connection((server, 443), PATIENCE).close()
    except OSError:
        return False
    return True


def _url_errors_of_program() -> tuple[type[BaseException], ...]:
    """The URLError of the program's urllib, which is another one than ours where the program shadows a part of it."""
    url_error = getattr(sys.modules.get("urllib.error"), "URLError", None)
    return () if url_error is None else (url_error,)
