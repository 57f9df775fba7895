"""Compiles and imports facts, loss_scale and the examiner's rooms in the Python that runs this.

They run in users' interpreters. TensorFlow and Keras are stood in for: what is tried here is the syntax and
the standard library of the oldest Python that a user may have, not TensorFlow.
"""

import importlib
import pathlib
import sys
from unittest.mock import MagicMock

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mpdoctor"
STAND_INS = ("tensorflow", "keras", "tf_keras", "numpy")


def modules():
    files = [PACKAGE / "loss_scale.py"]
    for room in ("facts", "examiner"):
        files += sorted((PACKAGE / room).rglob("*.py"))
    for file in files:
        parts = file.relative_to(ROOT).with_suffix("").parts
        yield file, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main():
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = True
    for name in STAND_INS:
        sys.modules[name] = MagicMock()
    imported = 0
    for file, name in modules():
        compile(file.read_text(encoding="utf-8"), str(file), "exec")
        importlib.import_module(name)
        imported += 1
    strangers = sorted({name.split(".")[0] for name in sys.modules} & {"cattrs", "rich", "typer"})
    if strangers:
        raise SystemExit("the examiner's rooms import " + ", ".join(strangers))
    print("Python {}.{}: {} modules compiled and imported".format(*sys.version_info[:2], imported))


if __name__ == "__main__":
    main()
