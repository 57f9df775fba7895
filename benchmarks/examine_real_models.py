"""What does mpdoctor say of models that many people train?

Examines each model of benchmarks/real_models (random weights, nothing is downloaded) and prints a row for it, as in the
tables of benchmarks/real_models.md: its layers, the probe's verdict, the findings. Whether a finding is right, a reader
has to judge.

    python benchmarks/examine_real_models.py applications --keras 3
    python benchmarks/examine_real_models.py keras_hub_backbones --python PATH-TO-A-PYTHON-WITH-KERAS-HUB
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SCRIPTS = Path(__file__).parent / "real_models"
# Of keras.applications: the one below a million parameters, and six others. The rest is walked, not trained.
TRAINED = ("MobileNetV3Small", "MobileNet", "MobileNetV2", "NASNetMobile", "EfficientNetB0", "DenseNet121", "ResNet50")
LIST_ARCHITECTURES = """
import inspect, sys
keras = __import__(sys.argv[1])
print(*[name for name, one in vars(keras.applications).items() if inspect.isfunction(one)])
"""


def architectures(python: str, keras: str) -> list[str]:
    module = {"3": "keras", "tf_keras": "tf_keras"}[keras]
    listed = subprocess.run([python, "-c", LIST_ARCHITECTURES, module], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def names_in_script(script: str) -> list[str]:
    """Of the models that the script itself makes: the keys of BACKBONES, or its functions."""
    text = (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")
    return re.findall(r'^    "(\w+)": \(', text, re.M) or re.findall(r"^def (\w+)\(\):", text, re.M)


def row(script: str, name: str, python: str, keras: str) -> str:
    options = ["--output-format=json", "--exit-zero", "--quiet", f"--python={python}"]
    if script == "applications" and name not in TRAINED:
        options.append("--no-probe")
    done = subprocess.run(
        [sys.executable, "-m", "mpdoctor", "check", *options, f"{script}.py", "--", name],
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"},
    )
    if done.returncode != 0:
        return f"| {name} | {keras} | – | exit {done.returncode} | {done.stderr[-300:]!r} |"
    report = json.loads(done.stdout)
    layers = sum(len(model["layers"]) for model in report["models"])
    verdict = ", ".join(probe["verdict"] for probe in report["probes"]) or "not trained"
    counted = Counter((finding["code"], finding["severity"]) for finding in report["findings"])
    findings = ", ".join(f"{code} {severity}{f' ×{n}' if n > 1 else ''}" for (code, severity), n in counted.items())
    for finding in report["findings"]:
        place = f"{finding['path']}:{finding['line']} {finding['layer']}"
        print(f"    {name}: {finding['code']} {place} {finding['message']}", file=sys.stderr)
    return f"| {name} | {keras} | {layers} | {verdict} | {findings or 'none'} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", choices=[path.stem for path in sorted(SCRIPTS.glob("*.py"))])
    parser.add_argument("names", nargs="*", help="of models; all")
    parser.add_argument("--keras", choices=("3", "tf_keras"), default="3")
    parser.add_argument("--python", default=sys.executable, help="the Python that has TensorFlow and the models")
    given = parser.parse_args()
    names = given.names
    if not names:
        is_applications = given.script == "applications"
        names = architectures(given.python, given.keras) if is_applications else names_in_script(given.script)
    print("| Model | Keras | Layers | Verdict | Findings |\n|---|---|---|---|---|")
    for name in names:
        print(row(given.script, name, given.python, given.keras), flush=True)


if __name__ == "__main__":
    main()
