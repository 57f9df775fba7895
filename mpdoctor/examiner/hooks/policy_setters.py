"""Hooks on the functions that set Keras' global dtype policy: which line sets it, and --policy's in its place."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


# Where the Kerases keep their global policy: 3, tf_keras and 2.13 to 2.15, 2.6 to 2.12, TensorFlow 2.4 and 2.5.
POLICY_MODULES = (
    "keras.src.dtype_policies.dtype_policy",
    "tf_keras.src.mixed_precision.policy",
    "keras.src.mixed_precision.policy",
    "keras.mixed_precision.policy",
    "tensorflow.python.keras.mixed_precision.policy",
)
POLICY_SETTERS = ("set_dtype_policy", "set_global_policy", "set_policy")


class PolicySetters:
    """The hooks on the policy setters of every Keras that the program imports.

    policy_set
        Whether a global policy was set, by the program or by a forced one.
    overrules_policy
        Whether the program itself sets one where another was forced.
    """

    def __init__(self, request: Request, layer_hooks: LayerHooks) -> None:
        self._request, self._layer_hooks = request, layer_hooks
        self.policy_set = False
        self.overrules_policy = False
        self._forces = False
        self._sets_half = False  # whether the program itself has set a global policy of 16 bits
        self._lines: dict[str, Location] = {}  # by package: the user's line that set its policy last

    def force(self, keras: KerasAdapter) -> None:
        self._forces = True
        keras.set_policy(self._request.policy)
        self._forces = False

    def watch(self, module: ModuleType) -> None:
        """A policy that the program sets itself, whatever its name, is never overruled by `--policy auto`."""
        setter = next(name for name in POLICY_SETTERS if hasattr(module, name))
        original = getattr(module, setter)

        @functools.wraps(original)
        def set_policy(policy: Any) -> object:
            # Keras 3 calls its own setter with the default when the policy is first asked for
            is_asked_for = sys._getframe(1).f_globals.get("__name__") != module.__name__
            self.policy_set = self._layer_hooks.origins.policy_set = self.policy_set or is_asked_for
            self.overrules_policy = self.overrules_policy or (is_asked_for and not self._forces)
            place = own_location(sys._getframe(1))
            if place is not None:
                self._lines[module.__name__.partition(".")[0]] = place
            if self._request.holds_policy and is_asked_for:
                return original(self._held_policy(policy))
            return original(policy)

        setattr(module, setter, set_policy)

    def _held_policy(self, asked: Any) -> object:
        """The forced policy in place of the program's own; a program in 16 bits that goes back to float32 for some of
        its layers does so under each policy."""
        in_half = "16" in str(getattr(asked, "name", asked))
        goes_back = self._sets_half and not in_half
        self._sets_half = self._sets_half or (in_half and not self._forces)
        return asked if goes_back else self._request.policy

    def set_at(self, keras: KerasAdapter) -> Location | None:
        """The user's line that set this Keras' global policy last."""
        return self._lines.get(keras.module.__name__.partition(".")[0])
