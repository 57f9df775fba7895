"""Which arguments of a LossScaleOptimizer's constructor cannot work, as measured in Keras 3.15 and tf_keras
2.21."""

from __future__ import annotations

import math

from mpdoctor.facts.values import MISSING, Call, known

Problem = tuple[str, str]

# Accepted by Keras 3 at these values only, from old saved configurations; a setting of the inner optimizer otherwise.
INNER_ONLY: dict[str, object] = {
    "weight_decay": None,
    "clipnorm": None,
    "global_clipnorm": None,
    "clipvalue": None,
    "use_ema": False,
    "ema_momentum": 0.99,
    "ema_overwrite_frequency": None,
    "loss_scale_factor": None,
    "gradient_accumulation_steps": None,
}
KERAS3_ARGUMENTS = ("inner_optimizer", "initial_scale", "dynamic_growth_steps", "name", "dynamic")
KERAS2_ARGUMENTS = ("inner_optimizer", "dynamic", "initial_scale", "dynamic_growth_steps")


def problem_in_keras3(call: Call) -> Problem | None:
    """What Keras 3 refuses or breaks on, and the change to make; None where nothing is certain."""
    if known(call.keyword("dynamic")) is False:
        return (
            "Keras 3 has no fixed loss scale in its wrapper: `dynamic=False` raises ValueError.",
            "Drop `dynamic=False` for a dynamic scale; for a fixed one give the inner optimizer "
            "`loss_scale_factor=…` and "
            "leave the wrapper out.",
        )
    second = known(call.argument(1))
    if isinstance(second, (bool, str)):
        return (
            f"{second!r} is the second argument of LossScaleOptimizer, which in Keras 3 is "
            "`initial_scale`, not `dynamic`: "
            + ("the first step raises." if isinstance(second, str) else f"the loss scale starts at {float(second):g}."),
            "Drop it: in Keras 3 the scale is always dynamic. A starting value is `initial_scale=2.0**15`.",
        )
    for name, value in call.keywords:
        if name in INNER_ONLY and known(value) not in (MISSING, INNER_ONLY[name]):
            return _belongs_to_inner(name)
        if name not in KERAS3_ARGUMENTS and name not in INNER_ONLY:
            return _unknown_argument(name)
    return problem_with_numbers(
        known(call.argument(1, "initial_scale")),
        known(call.argument(2, "dynamic_growth_steps")),
        True,
        none_raises=True,
    )


def problem_in_keras2(call: Call) -> Problem | None:
    """What Keras 2 refuses or breaks on, and the change to make; None where nothing is certain."""
    for name, _ in call.keywords:
        if name not in KERAS2_ARGUMENTS:
            return _belongs_to_inner(name) if name in INNER_ONLY else _unknown_argument(name)
    given = call.argument(1, "dynamic")
    dynamic = True if given is None and not call.open else known(given)
    if dynamic is not MISSING and not isinstance(dynamic, bool):
        return (
            f"`dynamic` is {dynamic!r}, and must be True or False; this line raises TypeError.",
            "Drop it for a dynamic scale. A starting value is `initial_scale=…`, by name.",
        )
    scale, growth = call.argument(2, "initial_scale"), call.argument(3, "dynamic_growth_steps")
    if dynamic is False and not call.open:
        if scale is None or known(scale) is None:
            return (
                "`dynamic=False` needs an `initial_scale`: this line raises ValueError.",
                "Say which fixed scale it is: `LossScaleOptimizer(optimizer, dynamic=False, "
                "initial_scale=1024)`; or drop "
                "`dynamic=False`.",
            )
        if growth is not None and known(growth) not in (MISSING, None):
            return (
                "`dynamic_growth_steps` belongs to a dynamic scale, and this one is fixed (`dynamic=False`): this line "
                "raises ValueError.",
                "Drop `dynamic_growth_steps`, or drop `dynamic=False`.",
            )
    return problem_with_numbers(known(scale), known(growth), dynamic is not False)


def problem_with_numbers(
    scale: object, growth: object, dynamic: bool | None, none_raises: bool = False
) -> Problem | None:
    """Numbers that no step survives. MISSING, and None where it means "the default", are not judged."""
    how = "Leave it out (2**15), or give a positive number."
    if isinstance(scale, str):
        return f"`initial_scale` is the string {scale!r}: the first step raises.", how
    if scale is None and none_raises:
        return "`initial_scale=None` raises at the first step in Keras 3.", how
    if isinstance(scale, (int, float)) and not (scale > 0 and math.isfinite(scale)):
        return f"`initial_scale` is {scale:g}: {_effect(float(scale))}.", how
    wanted = "Leave it out (2000), or give a whole number from 1 on."
    if isinstance(growth, str):
        return f"`dynamic_growth_steps` is the string {growth!r}: the first step raises.", wanted
    if growth is None and none_raises:
        return "`dynamic_growth_steps=None` raises at the first step in Keras 3.", wanted
    if isinstance(growth, (int, float)) and growth < 1 and dynamic is not False:
        return f"`dynamic_growth_steps` is {growth:g}: the loss scale would never behave as meant.", wanted
    return None


def _effect(scale: float) -> str:
    if scale == 0:
        return "the unscaled gradients are inf or NaN"
    return (
        "every update goes the wrong way" if scale < 0 and math.isfinite(scale) else "every gradient becomes inf or NaN"
    )


def _belongs_to_inner(name: str) -> Problem:
    return (
        f"LossScaleOptimizer does not take `{name}`; this line raises.",
        f"Give it to the optimizer inside: `LossScaleOptimizer(Adam({name}=…))`.",
    )


def _unknown_argument(name: str) -> Problem:
    if name == "loss_scale":
        return (
            "`loss_scale` is the argument of the experimental class that is gone; this line raises.",
            "Drop it: the scale is dynamic by itself. A starting value is `initial_scale=…`.",
        )
    return (
        f"LossScaleOptimizer has no argument `{name}`; this line raises.",
        f"Drop `{name}`, or give it to the optimizer.",
    )
