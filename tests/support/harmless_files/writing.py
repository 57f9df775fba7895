"""Has one Keras write the models of the table, or those that are named: `python writing.py KERAS DIRECTORY [NAME...]`,
which prints what it could not write."""

import importlib
import json
import os
import sys

SUFFIXES = {"keras": ".keras", "hdf5": ".h5"}


def main(name, directory, *names):
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:1] = [os.path.dirname(here), here]
    models = importlib.import_module("harmless_files").models()
    registry = importlib.import_module("harmless_files.registry")
    k = registry.Keras(name)
    for model in models.values():
        if name not in model.kerases or (names and model.name not in names):
            continue
        for form in model.forms:
            if form == "keras" and name not in registry.NEWER:
                continue
            try:
                k.keras.backend.clear_session()
                made = model.make(k)
                more = {"save_format": "keras"} if name == "2.15" and form == "keras" else {}
                made.save(os.path.join(directory, model.name + SUFFIXES[form]), **more)
            except Exception as error:
                print(json.dumps([model.name, form, f"{type(error).__name__}: {str(error)[:300]}"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
