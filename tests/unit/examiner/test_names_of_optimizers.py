"""What the trainings of several optimizers are called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tensorflow")


@pytest.mark.parametrize(
    ("models", "optimizers", "names"),
    [
        (["net"], ["adam"], [""]),
        (["one", "two"], ["adam", "adam"], ["one", "two"]),
        (["net", "net"], ["adam", "sgd"], ["net (adam)", "net (sgd)"]),
        (
            ["net", "net", "net"],
            ["adam", "sgd", "adam"],
            ["net (adam, 1 of 2)", "net (sgd)", "net (adam, 2 of 2)"],
        ),
    ],
)
def test_each_has_a_name_of_its_own(models: list[str], optimizers: list[str], names: list[str]) -> None:
    from mpdoctor.examiner.probe.training_facts import names_of_optimizers

    seen: list[Any] = [SimpleNamespace(id=model) for model in models]
    observed: list[Any] = [SimpleNamespace(innermost=SimpleNamespace(name=name)) for name in optimizers]
    assert names_of_optimizers(seen, observed) == names
