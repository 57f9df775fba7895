"""What a short training could not measure, and which rule could not run because of that."""

from __future__ import annotations

from mpdoctor.facts.fit_ending import NotMeasured

_RULES: dict[NotMeasured, str] = {
    "first number not finite": "MP904",
    "what holds the weights": "MP909",
    "two loss scales": "MP912",
}


def not_looked_from_measurement(measurement: NotMeasured) -> str:
    """The rule's code; "fit" for the end of fit(), which no rule looks at alone."""
    return _RULES.get(measurement, measurement)
