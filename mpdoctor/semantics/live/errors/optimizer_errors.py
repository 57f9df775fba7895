"""What the errors say that are raised around a custom or wrong optimizer: which method it lacks, what was wrapped."""

from __future__ import annotations

import re

from mpdoctor.facts.failure import FailureFacts


def step_method_lacked(failure: FailureFacts) -> str:
    """The method or attribute that Keras did not find on a custom optimizer; "" where it raised for another reason."""
    if failure.inside != "optimizer" or failure.raised_by_program:
        return ""
    if re.search(r"'\w+' object has no attribute '_learning_rate'", failure.said_by_library):
        return "_learning_rate"
    return failure.frames[-1].function if failure.exception == "NotImplementedError" and failure.frames else ""


def refusal_of_constructor(failure: FailureFacts) -> str | None:
    """Why Keras' optimizer base class refused the arguments of its constructor."""
    said = failure.said_by_library
    missing = re.search(r"Optimizer\w*\.__init__\(\) missing \d+ required .*'(\w+)'", said)
    refused = re.search(r"(\w+) is not a valid argument, kwargs should be empty\s+for `optimizer_exp", said)
    if missing:
        return f"its base class needs the argument `{missing[1]}`"
    return f"its base class takes no `{refused[1]}`, so the class has to store it itself" if refused else None


def described_object(given: str) -> str:
    """A description of the object that Keras' message shows, without its address."""
    made_of = re.match(r"<(?:class ')?(?:\w+\.)*(\w+)(?:'| object)", given)
    if made_of is None:
        return f"`{given}`"
    return f"the class `{made_of[1]}` itself" if given.startswith("<class") else f"a `{made_of[1]}`"
