"""Does the upper end of the loss scales that `check --reference` recommends hold? Plain Keras trains 50 steps at it.

python -m benchmarks.room_ends [--legacy] [--seeds N]

The models are those that tests/support/lost_precision.py makes of seeds. Each is checked, and then trained without
mpdoctor, with the upper end as the loss scale: it grows after 2,000 steps, and a step that overflows would halve it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from lost_precision import healthy, script

FIT = r"model\.fit\((\w+, \w+), batch_size=(\d+), epochs=9, verbose=0\)"
COUNTED = """

wrapper = model.optimizer
inner = getattr(wrapper, "inner_optimizer", wrapper)
scale = wrapper.dynamic_scale if hasattr(wrapper, "dynamic_scale") else wrapper.loss_scale
print("applied", int(inner.iterations), "scale", float(scale))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--legacy", action="store_true", help="tf_keras in place of Keras 3")
    parser.add_argument("--seeds", type=int, default=20, help="how many models")
    given = parser.parse_args()
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if given.legacy else "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    skipping = 0
    print("| Seed | Room | Skipped at its upper end, of 50 |\n|---|---|---|")
    for seed in range(given.seeds):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.py"
            path.write_text(script(healthy(seed), seed=seed), encoding="utf-8")
            room = room_of(path, environment)
            if room is None or room["lowest"] is None or room["lowest"] > room["highest"]:
                print(f"| {seed} | none | |")
                continue
            skipped = skipped_at(seed, room["highest"], path, environment)
        skipping += skipped > 0
        print(f"| {seed} | {room['lowest']:g} to {room['highest']:g} | {skipped} |", flush=True)
    print(f"{skipping} of {given.seeds} skip steps at the upper end")
    return 1 if skipping else 0


def room_of(path: Path, environment: dict[str, str]) -> dict[str, float] | None:
    command = [sys.executable, "-m", "mpdoctor", "check", str(path), "--reference", "--no-second-training"]
    ran = subprocess.run([*command, "--output-format", "json"], env=environment, stdout=subprocess.PIPE, check=False)
    (probe,) = json.loads(ran.stdout)["probes"]
    room: dict[str, float] | None = probe["reference"]["room"]
    return room


def skipped_at(seed: int, scale: float, path: Path, environment: dict[str, str]) -> int:
    """Of 50 steps."""
    path.write_text(at_scale(seed, scale), encoding="utf-8")
    ran = subprocess.run([sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    words = ran.stdout.split()
    applied, ended = int(words[words.index("applied") + 1]), float(words[words.index("scale") + 1])
    assert (applied == 50) == (ended == scale), (seed, applied, ended)
    return 50 - applied


def at_scale(seed: int, scale: float) -> str:
    """The script of this seed with the loss scale given, 50 steps of it, and what came of them."""
    text = script(healthy(seed), seed=seed)
    before, _, rest = text.partition("model.compile(")
    optimizer, comma, after = _first_argument(rest)
    wrapped = f"K.mixed_precision.LossScaleOptimizer({optimizer}, initial_scale={scale!r})"
    fifty = re.sub(
        FIT, r"model.fit(tf.data.Dataset.from_tensor_slices((\1)).batch(\2).repeat().take(50), verbose=0)", after
    )
    return f"{before}model.compile({wrapped}{comma}{fifty}{COUNTED}"


def _first_argument(text: str) -> tuple[str, str, str]:
    """(it, the comma, what follows)"""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            return text[:place], ",", text[place + 1 :]
    raise ValueError(text)


if __name__ == "__main__":
    sys.exit(main())
