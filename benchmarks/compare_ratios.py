"""Do the ratios of `mpdoctor compare` agree with those of plain scripts?

Each of the five scripts in benchmarks/compared is run alternately: by itself, with a line before it that sets the
policy and a callback that takes the time of each batch; by `mpdoctor compare --rounds 1`; and by itself once more. Run
it on an idle machine. It prints the ratios to float32 of all three, medians with the lowest and the highest of the
rounds, and how far compare's lies from the plain script's; then how far the plain script's two lie apart, which is what
the machine alone does: less than that cannot be told from it.

    python benchmarks/compare_ratios.py --rounds 3 --policies float32,mixed_bfloat16
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SCRIPTS = sorted((Path(__file__).parent / "compared").glob("*.py"))
STEPS, WARM_UP = 50, 5
AGREES = 0.10
PLAIN = """
import os, runpy, statistics, sys, time
import tensorflow as tf

script, policy, warm_up, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tf.keras.utils.set_random_seed(0)
tf.keras.mixed_precision.set_global_policy(policy)


class Times(tf.keras.callbacks.Callback):
    ends = []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())
        if len(self.ends) > warm_up + steps:
            took = [end - begin for begin, end in zip(self.ends[warm_up:], self.ends[warm_up + 1 :])]
            print(statistics.median(took), flush=True)
            os._exit(0)


fit = tf.keras.Model.fit
tf.keras.Model.fit = lambda self, *args, **kwargs: fit(self, *args, callbacks=[Times()], **kwargs)
runpy.run_path(script, run_name="__main__")
"""


def plain(script: Path, policy: str) -> float:
    command = [sys.executable, "-c", PLAIN, str(script), policy, str(WARM_UP), str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet())
    return float(done.stdout.split()[-1])


def plain_of_all(script: Path, policies: list[str]) -> dict[str, float]:
    return {policy: plain(script, policy) for policy in policies}


def compared(script: Path, policies: list[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "mpdoctor", "compare", "--quiet", "--rounds", "1", "--steps", str(STEPS)]
    command += ["--policies", ",".join(policies), "--output-format", "json", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet())
    return {told["policy"]: told["seconds_per_step"] for told in json.loads(done.stdout)["policies"]}


def quiet() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policies", default="float32,mixed_bfloat16")
    parser.add_argument("--scripts", nargs="*", default=[script.stem for script in SCRIPTS])
    options = parser.parse_args()
    policies = options.policies.split(",")
    print(f"{'':<28}{'times as fast as ' + policies[0]:^60}{'apart':>15}")
    heads = "".join(f"{head:^20}" for head in ("plain", "compare", "plain again"))
    print(f"{'script':<12}{'policy':<16}{heads}{'compare':>8}{'plain':>7}")
    for script in (script for script in SCRIPTS if script.stem in options.scripts):
        rounds = [[measure(script, policies) for measure in (plain_of_all, compared, plain_of_all)]
                  for _ in range(options.rounds)]  # fmt: skip
        for policy in policies[1:]:
            ratios = [[taken[policies[0]] / taken[policy] for taken in column] for column in zip(*rounds, strict=True)]
            own, told, again = map(statistics.median, ratios)
            apart, noise = told / statistics.median([*ratios[0], *ratios[2]]) - 1, again / own - 1
            cells = "".join(f"{statistics.median(found):8.2f} ({min(found):.2f}-{max(found):.2f})" for found in ratios)
            verdict = "" if abs(apart) <= AGREES else "  beyond 10 %"
            print(f"{script.stem:<12}{policy:<16}{cells}{apart:>8.0%}{noise:>7.0%}{verdict}", flush=True)


if __name__ == "__main__":
    main()
