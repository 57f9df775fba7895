"""A comparison as JSON: the contract that users script against, compared-1.json beside the diagnosis' schema."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.facts.examination import TimingFacts
from mpdoctor.reporters.compared.reasons import reasons_from_compared
from mpdoctor.reporters.json import json_text, object_from_diagnosis
from mpdoctor.reporters.text.style import Style

SCHEMA_VERSION = 1


def render(compared: Compared) -> str:
    reasons = reasons_from_compared(compared, Style())
    return json_text(
        {
            "schema_version": SCHEMA_VERSION,
            "mpdoctor": compared.base.diagnosis.version,
            "command": compared.base.diagnosis.command,
            "rounds": compared.rounds,
            "exit_code": compared.exit_code,
            "policies": [_run(compared, run) for run in compared.runs],
            "reasons": [{"policy": policy, "text": sentence} for policy, sentence in reasons],
        }
    )


def _run(compared: Compared, run: PolicyRun) -> dict[str, Any]:
    speed = compared.speed(run)
    return {
        "policy": run.policy,
        "seconds_per_step": run.seconds,
        "between_steps": run.between,
        "times_as_fast": None
        if speed is None
        else {"median": speed.middle, "lowest": speed.low, "highest": speed.high},
        "resident_peak_bytes": run.resident_peak,
        "resident_growth_bytes": run.resident_growth,
        "device_peak_bytes": run.device_peak,
        "casts": run.casts,
        "not_timed": run.not_timed or None,
        "rounds": [None if timing is None else _timing(timing) for timing in run.timings],
        "diagnosis": object_from_diagnosis(run.diagnosis),
    }


def _timing(timing: TimingFacts) -> dict[str, Any]:
    profile = timing.profile
    return {
        "of": timing.of,
        "device": timing.device,
        "steps_a_block": timing.steps_a_block,
        "warm_up_steps": timing.warm_up,
        "blocks": [{"seconds_per_step": took, "between_steps_seconds": between} for took, between in timing.blocks],
        "profile": None if profile is None else asdict(profile),
        "not_profiled": timing.not_profiled or None,
    }
