"""Examines many files in one process: `python examining.py KERAS DOWN LIST.json`, DOWN a wall to take down, or none.

TensorFlow and Keras are imported once, and the process forks for each request: what `mpdoctor.examiner.main` does comes
after that, so that every wall is built as in a run of its own (a fork has one thread). Python 3.8, the standard library
and TensorFlow; `LIST.json` holds paths of requests, and what each came to is printed, one line of JSON.
"""

import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60


def prepare():
    """As mpdoctor/examiner/start.py does."""
    sys.path[0] = str(ROOT / "tests" / "support")
    spec = importlib.util.spec_from_file_location("start", str(ROOT / "mpdoctor" / "examiner" / "start.py"))
    start = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start)
    start._make_package_visible()


def keras_of(name):
    import tensorflow as tf

    if name == "3":
        return tf, importlib.import_module("keras")
    if name == "tf_keras":
        return tf, importlib.import_module("tf_keras")
    tf.keras.layers.Dense  # noqa: B018 - imports it
    return tf, importlib.import_module("keras") if "keras" in sys.modules else None


def examine(tf, keras, down, request, out):
    """Never returns."""
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.alarm(SECONDS)
    with open(request) as file:
        told = json.load(file)
    os.chdir(os.path.dirname(told["path"]))
    session = importlib.import_module("mpdoctor.examiner.session")
    install = session.Session.install

    def install_and_catch_up(this):
        install(this)
        this._tensorflow_imported(tf)
        if keras is not None:
            this._keras_imported(keras)

    session.Session.install = install_and_catch_up
    if down != "none":
        importlib.import_module("walls").take_down(down)
    imports = importlib.import_module("mpdoctor.examiner.own_imports").OwnImports(frozenset(sys.modules))
    imports.begin()
    importlib.import_module("mpdoctor.examiner.main").main(request, imports)


def main(name, down, list_path):
    prepare()
    tf, keras = keras_of(name)
    for module in ("main", "targets.saved_model", "probe.training"):
        importlib.import_module("mpdoctor.examiner." + module)
    with open(list_path) as file:
        requests = json.load(file)
    reading, _ = os.pipe()  # the keeper ends what it keeps where its standard input ends
    os.dup2(reading, 0)
    quiet = os.open(os.environ.get("PLAIN_OUTPUT", os.devnull), os.O_WRONLY | os.O_APPEND)
    for request in requests:
        started = time.monotonic()
        process = os.fork()
        if not process:
            try:
                examine(tf, keras, down, request, quiet)
            except BaseException:
                traceback.print_exc()
            os._exit(70)
        _, status, usage = os.wait4(process, 0)
        seconds = round(time.monotonic() - started, 2)
        print(json.dumps([request, status, seconds, usage.ru_maxrss * 1024]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
