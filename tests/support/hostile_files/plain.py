"""Loads saved files as a careless user does, and trains them one step: `python plain.py KERAS LIST.json`.

Run by every interpreter that there is an environment of (Python 3.8, standard library and TensorFlow). One process
forks for each file after TensorFlow was imported; what each came to is printed, one line of JSON a file.
"""

import json
import os
import resource
import signal
import sys
import traceback

SECONDS = 25
MEMORY = 12 * 2**30


def keras_of(name):
    if name == "3":
        import keras
    elif name == "tf_keras":
        import tf_keras as keras
    else:
        from tensorflow import keras

        keras.layers.Dense  # noqa: B018 - imports it
    return keras


def text_of(dtype):
    return str(getattr(dtype, "name", dtype)).replace("string", "object")


def load_and_train(keras, path):
    import numpy as np

    model = keras.models.load_model(path)
    said = "loaded"
    inputs = getattr(model, "inputs", None)
    given = [
        np.zeros([1 if size is None else size for size in tensor.shape], text_of(tensor.dtype))
        for tensor in inputs or ()
    ]
    given = given or [np.zeros((1, 4), "float32")]
    made = model(given if len(given) > 1 else given[0])
    said += ", called"
    if getattr(model, "optimizer", None) is None:
        model.compile("sgd", "mse")
    model.fit(given if len(given) > 1 else given[0], np.zeros(made.shape), verbose=0)
    return said + ", trained"


def child(keras, path, out):
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY * 4, MEMORY * 4))
    os.chdir(os.path.dirname(path))
    try:
        told = load_and_train(keras, path)
    except BaseException as error:
        told = "raised {}: {}".format(type(error).__name__, str(error).replace("\n", " ")[:400])
        if os.environ.get("PLAIN_TRACEBACK"):
            traceback.print_exc()
    return told


def main(name, list_path):
    keras = keras_of(name)
    with open(list_path) as file:
        paths = json.load(file)
    quiet = os.open(os.environ.get("PLAIN_OUTPUT", os.devnull), os.O_WRONLY | os.O_APPEND)
    for path in paths:
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            told = child(keras, path, quiet)
            os.write(writing, told.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read().decode(errors="replace")
        _, status = os.waitpid(process, 0)
        print(json.dumps([path, told or f"ended with {status}"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
