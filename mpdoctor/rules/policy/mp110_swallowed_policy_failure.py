"""The policy is set inside a `try` whose `except` lets the program carry on without it.

## Why it matters
If setting the policy fails, the program trains in float32 without an error, or with one line of output that
scrolls away. This happened to everybody who set the policy through `mixed_precision.experimental` when
TensorFlow 2.9 removed it: no error, half the speed, twice the memory. Setting a policy that exists never fails,
so the `try` protects against nothing else.

Where a device is configured first in the same `try`, its RuntimeError takes the policy with it: `set_memory_growth` and
its like raise once TensorFlow has used its devices (measured in TensorFlow 2.21: `Virtual devices cannot be modified
after being initialized`), and `except RuntimeError` goes on in float32. This is told only where the program has used
the devices before, by a tensor, a data set or a strategy: a program that configures them first is right.

## Flagged
```python
import tensorflow as tf

try:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
except Exception as error:
    print("Mixed precision not enabled:", error)
```

## Fixed
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
```

## Versions
All. An `except` that sets the policy in another way, raises again, or records the failure in a variable is not
reported, nor is one that returns an answer which the caller reads. A function of the program's own that the `except`
calls is followed: one that only logs hides the failure, one that exits does not.

## Where users met it
keras-team/autokeras#1675, tensorflow/docs-l10n#600, and the code around
`AttributeError: module 'tensorflow.keras.mixed_precision' has no attribute 'experimental'`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.policy_settings import SET_POLICY
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, options
from mpdoctor.semantics.source.layers.model_layers import half_policy_calls, layer_name, policies_set
from mpdoctor.semantics.source.programs.models import TRAINING
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.WARNING
SUPPRESS = "contextlib.suppress"
DEVICE_CALLS = (  # they raise RuntimeError once TensorFlow has used its devices
    "tensorflow.config.experimental.set_memory_growth",
    "tensorflow.config.experimental.set_virtual_device_configuration",
    "tensorflow.config.experimental.set_visible_devices",
    "tensorflow.config.set_logical_device_configuration",
    "tensorflow.config.set_visible_devices",
)
# They use the devices (measured in 2.10 and 2.21): tensors, data sets, strategies. Layers and policies do not.
USING_DEVICES = (
    *(
        f"tensorflow.{name}"
        for name in ("constant", "Variable", "ones", "zeros", "eye", "range", "fill", "cast", "stack")
    ),
    *(f"tensorflow.random.{name}" for name in ("normal", "uniform", "truncated_normal", "stateless_normal", "shuffle")),
    *(f"tensorflow.data.Dataset.{name}" for name in ("from_tensor_slices", "from_tensors", "range")),
    *(f"tensorflow.distribute.{name}" for name in ("MirroredStrategy", "OneDeviceStrategy")),
    *("tensorflow.config.list_logical_devices", "tensorflow.config.experimental.list_logical_devices"),
)
ABOUT_IMPORTS = ("builtins.ImportError", "builtins.ModuleNotFoundError")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    reported: set[Location] = set()
    for call in (*half_policy_calls(facts), *_calls_with_unknown_policies(facts)):
        device = _device_call_before(facts, call)
        use = None if device is None else _use_of_devices_before(facts, device)
        if device is not None and use is not None and not _is_whole_program(facts, call):
            yield _skipped_with(facts, call, device, use)
            continue
        hidden_by = "except" if call.context.swallowed is not None else _suppressing(call)
        if hidden_by and not _is_whole_program(facts, call):
            place = call.context.swallowed
            if place is not None and place in reported:
                continue  # another arm sets it, and the same change helps
            reported |= {place} if place is not None else set()
            where = f" ({place_of(facts, place, call.location)})" if place is not None else ""
            yield Finding(
                f"If setting the policy fails, `{hidden_by}`{where} hides it, and the whole training runs in float32.",
                "Set the policy outside the `try`, or raise again in the `except`."
                if hidden_by == "except"
                else f"Set the policy outside `{hidden_by}`.",
                call.location,
            )


def _device_call_before(facts: SourceFacts, policy: Call) -> Call | None:
    """What configures a device earlier in the same `try`, whose RuntimeError the `except` hides."""
    place = policy.context.runtime_swallowed
    if place is None or policy.context.swallowed is not None:
        return None
    earlier = (call for call in facts.calls_of(*DEVICE_CALLS) if call.order < policy.order)
    return next((call for call in earlier if call.context.runtime_swallowed == place), None)


def _use_of_devices_before(facts: SourceFacts, device: Call) -> Call | None:
    """What has certainly made TensorFlow use its devices when the program configures one."""
    uses = (call for call in facts.calls_of(*USING_DEVICES) if call.order < device.order)
    return next((use for use in uses if use.context.run == device.context.run and _is_certain(use, device)), None)


def _is_certain(use: Call, device: Call) -> bool:
    """Whether it happens wherever the device is configured."""
    arms = {(branch.statement, branch.taken) for branch in device.context.branches}
    is_in_its_arms = all((branch.statement, branch.taken) in arms for branch in use.context.branches)
    return is_in_its_arms and not use.context.guarded and not use.context.loops


def _skipped_with(facts: SourceFacts, policy: Call, device: Call, use: Call) -> Finding:
    hidden_at = policy.context.runtime_swallowed
    assert hidden_at is not None
    places = (hidden_at, device.location, use.location)
    where, device_at, use_at = (place_of(facts, place, policy.location) for place in places)
    return Finding(
        f"`{use.method}` ({use_at}) has used TensorFlow's devices before: on a machine with a GPU `{device.method}` "
        f"({device_at}) raises RuntimeError, `except` ({where}) hides it, this line is skipped, and the whole training "
        "runs in float32.",
        "Set the policy before the `try`.",
        policy.location,
    )


def _calls_with_unknown_policies(facts: SourceFacts) -> Iterator[Call]:
    """The calls that set a policy which the program is given from outside: a wrong name is hidden, too."""
    for call in facts.policy_calls:
        if not policies_set(call) and isinstance(call.callee, Api) and call.callee.is_(SET_POLICY):
            yield call


def _suppressing(call: Call) -> str:
    for manager in call.context.withs:
        for option in options(manager):
            if isinstance(option, Call) and is_call_of(option, SUPPRESS):
                names = [getattr(error, "name", "") for error in option.args]
                if not all(name in ABOUT_IMPORTS for name in names):
                    return "suppress(…)"
    return ""


def _is_whole_program(facts: SourceFacts, policy: Call) -> bool:
    """Whether the model is built or trained in the same `try`: then no training follows the failure."""
    place = policy.context.swallowed or policy.context.runtime_swallowed
    return place is not None and any(call is not policy for call in _trainings_in_tries(facts).get(place, ()))


@lru_cache(maxsize=1)
def _trainings_in_tries(facts: SourceFacts) -> dict[Location, list[Call]]:
    """The calls that make a layer or train, by the place of each `except` that swallows their errors."""
    calls: dict[Location, list[Call]] = {}
    for call in facts.calls:
        places = (call.context.swallowed, call.context.runtime_swallowed)
        if any(places) and (call.method in TRAINING or call.method.startswith("train") or layer_name(call) is not None):
            for place in places:
                if place is not None:
                    calls.setdefault(place, []).append(call)
    return calls
