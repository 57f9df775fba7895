"""Do the ratios of `mpdoctor compare` agree with those of plain scripts?

Each of the five scripts in benchmarks/compared is run alternately: by `mpdoctor compare --rounds 1`, and by itself,
with a line before it that sets the policy and a callback that takes the time of each batch. Run it on an idle machine;
it prints both ratios to float32, and how far they lie apart.

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
    print(f"{'':<28}{'float32 a step':>24}{'times as fast':>22}")
    print(f"{'script':<12}{'policy':<16}{'plain':>14}{'compare':>10}{'plain':>13}{'compare':>10}{'apart':>8}")
    for script in (script for script in SCRIPTS if script.stem in options.scripts):
        rounds = [({policy: plain(script, policy) for policy in policies}, compared(script, policies))
                  for _ in range(options.rounds)]  # fmt: skip
        for policy in policies[1:]:
            own, told = (
                statistics.median(both[number][policies[0]] / both[number][policy] for both in rounds)
                for number in (0, 1)
            )
            base, ours = (statistics.median(both[number][policies[0]] for both in rounds) * 1e3 for number in (0, 1))
            apart = told / own - 1
            verdict = "" if abs(apart) <= AGREES else "  beyond 10 %"
            print(f"{script.stem:<12}{policy:<16}{base:>11.2f} ms{ours:>7.2f} ms{own:>13.2f}{told:>10.2f}{apart:>8.0%}"
                  f"{verdict}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
