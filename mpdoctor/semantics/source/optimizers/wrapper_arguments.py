"""Which arguments of a LossScaleOptimizer's constructor cannot work, as measured in Keras 3.15 and tf_keras
2.21."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from mpdoctor.program.events import Call
from mpdoctor.program.values import MISSING, known
from mpdoctor.semantics.source.optimizers.wrappers import inner_argument
from mpdoctor.semantics.wording import name_of_optimizer

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
HOW_TO_GROW = "Leave it out (the default is 2000), or give a whole number of 1 or more."
HOW_TO_START = "Leave it out (the default is 2**15), or give a positive number."
# measured at 0, 0.5 and -1 in Keras 3.15 and tf_keras 2.21
GROWS_WRONGLY = "in Keras 3 the loss scale then never grows, in Keras 2 it doubles after every finite step"
FIXED_IN_KERAS3: Problem = (
    "Keras 3 has no fixed loss scale in its wrapper: `dynamic=False` raises ValueError.",
    "Drop `dynamic=False` for a dynamic scale. For a fixed one leave the wrapper out, give the optimizer itself "
    "`loss_scale_factor=…`, and compile with `auto_scale_loss=False`; otherwise compile() wraps it and erases that "
    "factor.",
)
FIXED_WITHOUT_SCALE: Problem = (
    "`dynamic=False` needs an `initial_scale`: this line raises ValueError.",
    "Give the fixed scale, `LossScaleOptimizer(optimizer, dynamic=False, initial_scale=1024)`, or drop "
    "`dynamic=False`.",
)
WITHOUT_SCALE: Problem = (
    "The experimental LossScaleOptimizer needs a `loss_scale`: this line raises TypeError.",
    'Give it one, `LossScaleOptimizer(optimizer, "dynamic")`.',
)
FIXED_THAT_GROWS: Problem = (
    "`dynamic_growth_steps` belongs to a dynamic scale, and this one is fixed (`dynamic=False`): this line raises "
    "ValueError.",
    "Drop `dynamic_growth_steps`, or drop `dynamic=False`.",
)


def problem_in_keras3(call: Call) -> Problem | None:
    """The argument that Keras 3 refuses or breaks on, and the change to make; None where nothing is certain."""
    if known(call.keyword("dynamic")) is False:
        return FIXED_IN_KERAS3
    second = known(call.argument(1))
    if isinstance(second, (bool, str)):
        return (
            f"{second!r} is the second argument of LossScaleOptimizer, which in Keras 3 is "
            "`initial_scale`, not `dynamic`: "
            + ("the first step raises." if isinstance(second, str) else f"the loss scale starts at {float(second):g}."),
            "Drop it: in Keras 3 the scale is always dynamic. To set its first value write `initial_scale=2.0**15`.",
        )
    for name, value in call.keywords:
        if name in INNER_ONLY and known(value) not in (MISSING, INNER_ONLY[name]):
            return _belongs_to_inner(name, _class_of_inner(call))
        if name not in KERAS3_ARGUMENTS and name not in INNER_ONLY:
            return _unknown_argument(name)
    return problem_with_numbers(
        known(call.argument(1, "initial_scale")),
        known(call.argument(2, "dynamic_growth_steps")),
        dynamic=True,
        none_raises=True,
    )


def problem_in_keras2(call: Call) -> Problem | None:
    """The argument that Keras 2 refuses or breaks on, and the change to make; None where nothing is certain."""
    for name, _ in call.keywords:
        if name not in KERAS2_ARGUMENTS:
            inner = _class_of_inner(call)
            return _belongs_to_inner(name, inner) if name in INNER_ONLY else _unknown_argument(name)
    given = call.argument(1, "dynamic")
    dynamic = True if given is None and not call.open else known(given)
    if dynamic is not MISSING and not isinstance(dynamic, bool):
        return _not_a_bool(repr(dynamic))
    scale, growth = call.argument(2, "initial_scale"), call.argument(3, "dynamic_growth_steps")
    if dynamic is False and not call.open:
        if scale is None or known(scale) is None:
            return FIXED_WITHOUT_SCALE
        if growth is not None and known(growth) not in (MISSING, None):
            return FIXED_THAT_GROWS
    # Keras 2 reads texts as numbers (TensorFlow 2.4, 2.10 and 2.15)
    start, steps = _as_number(known(scale), float), _as_number(known(growth), int)
    if isinstance(start, str):
        return f"`initial_scale` is the string {start!r}, which is no number: this call raises.", HOW_TO_START
    if isinstance(steps, str):
        return f"`dynamic_growth_steps` is the string {steps!r}, which is no number: this call raises.", HOW_TO_GROW
    return problem_with_numbers(start, steps, dynamic is not False)


def _as_number(value: object, kind: Callable[[str], float]) -> object:
    """The number that a text is read as; the value itself where it is no text, or no such number."""
    if not isinstance(value, str):
        return value
    try:
        return kind(value)
    except ValueError:
        return value


def problem_in_experimental(call: Call) -> Problem | None:
    """What the experimental class of TensorFlow 2.1 to 2.8 refuses (measured in 2.4): to be made without a scale."""
    return None if call.open or call.argument(1, "loss_scale") is not None else WITHOUT_SCALE


def problem_with_numbers(
    scale: object, growth: object, dynamic: bool | None, none_raises: bool = False
) -> Problem | None:
    """What is wrong with numbers that break training, and the change to make; None where nothing is. MISSING, and None
    where it means "the default", are not judged."""
    if isinstance(scale, str):
        return f"`initial_scale` is the string {scale!r}: the first step raises.", HOW_TO_START
    if scale is None and none_raises:
        return "`initial_scale=None` raises at the first step in Keras 3.", HOW_TO_START
    if isinstance(scale, (int, float)) and not (scale > 0 and math.isfinite(scale)):
        return f"`initial_scale` is {scale:g}: {_effect(float(scale))}.", HOW_TO_START
    if isinstance(growth, str):
        return f"`dynamic_growth_steps` is the string {growth!r}: the first step raises.", HOW_TO_GROW
    if growth is None and none_raises:
        return "`dynamic_growth_steps=None` raises at the first step in Keras 3.", HOW_TO_GROW
    if isinstance(growth, (int, float)) and growth < 1 and dynamic is not False:
        return f"`dynamic_growth_steps` is {growth:g}: {GROWS_WRONGLY}.", HOW_TO_GROW
    return None


def _effect(scale: float) -> str:
    if scale == 0:
        return "the unscaled gradients are inf or NaN"
    if scale < 0 and math.isfinite(scale):
        return f"it changes the sign of the loss and then of the gradients, so it does what {-scale:g} does"
    return "every gradient becomes inf or NaN"


def problem_in_message(said: str, by_wrapper: bool) -> Problem | None:
    """What a constructor of Keras 2 or 3 refused, in its words; or, `by_wrapper`, what its first step broke on."""
    if re.search("LossScaleOptimizer no longer supp?orts `dynamic=False`", said):  # so spelled until Keras 3.3
        return FIXED_IN_KERAS3
    refused = re.search(r"LossScaleOptimizer does not support `(\w+)`\. Instead, set", said)
    if refused is not None:
        return _belongs_to_inner(refused[1])
    unknown = re.search(r"LossScaleOptimizer does not support arguments: `(\w+)`", said) or re.search(
        r"LossScaleOptimizer(?:V3)?\.__init__\(\) got an unexpected keyword argument '(\w+)'"
        r"|Argument\(s\) not recognized: \{'(loss_scale)':",
        said,
    )
    if unknown is not None:
        name = next(filter(None, unknown.groups()))
        return _belongs_to_inner(name) if name in INNER_ONLY else _unknown_argument(name)
    given = re.search(r'"dynamic" argument to LossScaleOptimizer\.__init__ must be a bool, but got: (.+)', said)
    if given is not None:
        return _not_a_bool(given[1])
    if '"initial_scale" must be specified if "dynamic" is False' in said:
        return FIXED_WITHOUT_SCALE
    if '"dynamic_growth_steps" must be None if "dynamic" is False' in said:
        return FIXED_THAT_GROWS
    text = re.search(
        r"could not convert string to float: ('.+')|dtype='string' is not a valid dtype|got ('.+?') of type 'str'", said
    )
    if by_wrapper and text is not None:
        shown = text[1] or text[2]
        return f"`initial_scale` is {f'the string {shown}' if shown else 'a string'}.", HOW_TO_START
    return None


def _not_a_bool(given: str) -> Problem:
    return (
        f"`dynamic` is {given}, but must be True or False; this line raises TypeError.",
        "Drop it for a dynamic scale. To set the scale's first value write `initial_scale=…`, by name.",
    )


def _belongs_to_inner(name: str, inner: str = "Adam") -> Problem:
    """The problem with an argument of the optimizer inside that the wrapper is given. `inner`: the class of that
    optimizer."""
    return (
        f"LossScaleOptimizer does not take `{name}`; this line raises.",
        f"Give it to the optimizer inside: `LossScaleOptimizer({inner}({name}=…))`.",
    )


def _class_of_inner(call: Call) -> str:
    name = name_of_optimizer(inner_argument(call))
    return name if name.isidentifier() else "Adam"


def _unknown_argument(name: str) -> Problem:
    if name == "loss_scale":
        return (
            "`loss_scale` was an argument of the experimental class, which was removed; this line raises.",
            "Drop it: the scale is dynamic by default. To set its first value write `initial_scale=…`.",
        )
    return (
        f"LossScaleOptimizer has no argument `{name}`; this line raises.",
        f"Drop `{name}`, or give it to the optimizer.",
    )
