"""A mended or converted saved model as JSON: mended-file-1.json beside the diagnosis' schema."""

from __future__ import annotations

from dataclasses import asdict

from mpdoctor.mended_file import MendedFile
from mpdoctor.reporters.json import json_text, object_from_diagnosis

SCHEMA_VERSION = 1


def render(mended: MendedFile) -> str:
    return json_text(
        {
            "schema_version": SCHEMA_VERSION,
            "mpdoctor": mended.last.version,
            "command": mended.last.command,
            "mended": mended.is_healthy,
            "policy": mended.policy or None,
            "output": mended.output if mended.after is not None else None,
            "examinations": mended.examinations,
            "changed": [
                {"layer": layer.path, "class": layer.class_name, "before": layer.before, "after": layer.after}
                for layer in mended.changed
            ],
            "healing": mended.healing,
            "kept": [{"layer": path, "reason": reason} for path, reason in mended.kept],
            "made_by_code": mended.made_by_code,
            "unwrapped": mended.unwrapped,
            "policy_to_set": mended.policy_to_set or None,
            "new_state": mended.new_state,
            "weights_in_half": mended.weights_in_half,
            "outputs": [asdict(output) for output in mended.moved],
            "not_compared": mended.not_compared or None,
            "before": object_from_diagnosis(mended.before),
            "after": object_from_diagnosis(mended.after) if mended.after is not None else None,
        }
    )
