"""Runs the programs that fail, in the TensorFlow at hand, and writes what the examiner makes of each: one JSON file.

python tests/support/failing/record.py tests/support/failing/seen
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

from programs import PROGRAMS, kit  # noqa: E402

from mpdoctor.examiner.failures.failure import failure_under_watch  # noqa: E402
from mpdoctor.examiner.keras.adapter_choice import adapter_for  # noqa: E402
from mpdoctor.examiner.process.patching import replace_method  # noqa: E402
from mpdoctor.examiner.protocol.events import Events  # noqa: E402
from mpdoctor.examiner.protocol.request import Request  # noqa: E402
from mpdoctor.examiner.session import Session  # noqa: E402


def watching(tf: Any, keras: Any) -> Session:
    """As much of an examiner's session as an error needs: training calls go their usual way."""
    session = Session(Request("script", None, None, None, (), os.devnull), Events(os.devnull))
    session.keras = adapter_for(keras)
    session.layer_hooks.install(session.keras.Layer, session.keras.global_policy)
    replace_method(tf.GradientTape, "__exit__", session.tapes.leave)
    return session


def main(folder: Path) -> None:
    import numpy as np
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    keras = tf.keras
    module = tf if tf.__version__.startswith(("2.4", "2.5")) else sys.modules[keras.Model.__module__.split(".")[0]]
    session = watching(tf, module)
    os.chdir(tempfile.mkdtemp())
    seen = {}
    for name, (program, policy) in PROGRAMS.items():
        session.keras.set_policy(policy)
        session.layer_hooks.__init__()  # every program is the first one
        try:
            program(kit(np, tf, keras))
        except Exception as error:
            seen[name] = told(failure_under_watch(session, error, "script"))
    facts = session.keras.facts
    file = folder / f"{facts.package}-{facts.version}.json"
    file.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(file, len(seen))


def told(failure: Any) -> dict[str, Any]:
    """Without what depends on this machine, is as it is by default, or is a library's line of a traceback."""
    shown = dataclasses.asdict(failure)
    shown["message"] = re.sub(r'^ *File "[^"]*-packages/.*\n(?: {4,}.*\n)?', "", shown["message"], flags=re.MULTILINE)
    shown["frames"] = [{**frame, "path": shortened(frame["path"])} for frame in shown["frames"]]
    default = type(failure)(failure.kind, failure.during)
    shown = {key: value for key, value in shown.items() if value != getattr(default, key) or key in ("kind", "during")}
    return json.loads(json.dumps(shown), object_hook=functools.partial(map_texts))


def map_texts(pairs: dict[str, Any]) -> dict[str, Any]:
    return {key: shortened(value) if isinstance(value, str) else value for key, value in pairs.items()}


def shortened(text: str) -> str:
    for root in (str(Path.cwd()), str(HERE), str(HERE.parents[2]), tempfile.gettempdir(), sys.prefix, sys.base_prefix):
        text = text.replace(root + os.sep, "")
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
