"""Compiles and imports facts, knowledge, loss_scale and the examiner's rooms in the Python that runs this, and compiles
training, whose classes need a Keras to derive from.

They run in users' interpreters. TensorFlow and Keras are stood in for: what is tried here is the syntax and
the standard library of the oldest Python that a user may have, not TensorFlow.
"""

import importlib
import importlib.abc
import importlib.machinery
import pathlib
import sys
from unittest.mock import MagicMock

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mpdoctor"
STAND_INS = ("tensorflow", "keras", "tf_keras", "numpy")


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers every import from one of STAND_INS, submodules too, with something that has every attribute."""

    def find_spec(self, name, path=None, target=None):
        stood_in = name.split(".")[0] in STAND_INS
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if stood_in else None

    def create_module(self, spec):
        return MagicMock()

    def exec_module(self, module):
        pass


def modules():
    files = [PACKAGE / "loss_scale.py"]
    for room in ("facts", "knowledge", "examiner"):
        files += sorted((PACKAGE / room).rglob("*.py"))
    for file in files:
        parts = file.relative_to(ROOT).with_suffix("").parts
        yield file, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main():
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = True
    sys.meta_path.insert(0, StandIns())
    imported = 0
    for file, name in modules():
        compile(file.read_text(encoding="utf-8"), str(file), "exec")
        importlib.import_module(name)
        imported += 1
    for file in sorted((PACKAGE / "training").rglob("*.py")):
        compile(file.read_text(encoding="utf-8"), str(file), "exec")
    strangers = sorted({name.split(".")[0] for name in sys.modules} & {"cattrs", "rich", "typer"})
    if strangers:
        raise SystemExit("the examiner's rooms import " + ", ".join(strangers))
    print("Python {}.{}: {} modules compiled and imported".format(*sys.version_info[:2], imported))


if __name__ == "__main__":
    main()
