"""Which global policy is in force at which point, by the program's calls that set it."""

from __future__ import annotations

from functools import cached_property

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.call_index import CallIndex
from mpdoctor.program.events import Call, Event
from mpdoctor.program.policy_settings import (
    CLEARING,
    SET_FLOATX,
    SET_POLICY,
    SETTING,
    UNSURE,
    PolicyName,
    are_of_two_kerases,
    has_happened,
    is_no_policy_by_default,
    makes_policy,
    policies_read_for,
    policies_set_by,
    sets_policy,
)
from mpdoctor.program.values import Api, is_api


class PoliciesInForce:
    """The global policies of one program. `callers_decide`: whether other files run it, which may have set a policy
    before."""

    def __init__(self, calls: CallIndex, keras: Keras, is_notebook: bool, callers_decide: bool) -> None:
        self._calls, self._keras = calls, keras
        self._is_notebook, self._callers_decide = is_notebook, callers_decide

    @cached_property
    def calls_that_set(self) -> tuple[Call, ...]:
        """The calls that set the global policy (or floatx), in order."""
        return tuple(call for call in self._calls.by_names(SETTING) if not self._sets_nothing(call))

    @cached_property
    def calls_that_clear(self) -> tuple[Call, ...]:
        """The calls after which the global policy is that of floatx again, in order. Keras 2 has none."""
        return tuple(self._calls.by_names(CLEARING)) if self._keras.is_keras3 else ()

    @cached_property
    def _calls_that_change_it(self) -> list[Call]:
        return sorted((*self.calls_that_set, *self.calls_that_clear), key=lambda call: call.order)

    def _of_floatx(self, clearing: Call) -> tuple[PolicyName, ...]:
        """The policies after a call that makes Keras forget the global one: those of floatx."""
        floatx = [call for call in self._calls.by_names((SET_FLOATX,)) if call.order < clearing.order]
        return (policies_set_by(floatx[-1]) or (UNSURE,)) if floatx else ("float32",)

    def _sets_nothing(self, setting: Call) -> bool:
        return self._is_too_late(setting) or self._is_last(setting)

    def _is_last(self, setting: Call) -> bool:
        """Whether the code is the end of a notebook: nothing imports it, so functions that were not called never
        are."""
        return self._is_notebook and setting.context.reached and setting.order > self._last_doing

    @cached_property
    def _last_doing(self) -> int:
        """The order of the last call that running the file gets to, policies and Python's own functions left out."""
        doing = (
            call.order
            for call in self._calls.all
            if call.context.reached and not sets_policy(call) and not makes_policy(call)
            if not (isinstance(call.callee, Api) and call.callee.root == "builtins")
        )
        return max(doing, default=0)

    def _is_too_late(self, setting: Call) -> bool:
        """Whether floatx is set where it changes no policy any more: in Keras 3 the first layer makes the policy of
        it, and a policy that was set is not touched (3.15)."""
        if not self._keras.is_keras3 or not isinstance(setting.callee, Api) or not setting.callee.is_(SET_FLOATX):
            return False
        return any(
            has_happened(call.context.branches, setting.context.branches)
            for call in self._calls_that_make_it
            if call.order < setting.order and call.context.run in (0, setting.context.run)
        )

    @cached_property
    def _calls_that_make_it(self) -> list[Call]:
        """What makes or sets the global policy of Keras 3: layers with none of their own, and calls for it."""
        return [
            call
            for call in self._calls.of_libraries
            if isinstance(call.callee, Api)
            and (call.callee.is_(SET_POLICY) or kind_of_class(call.callee.name) == "layer")
            and call.keyword("dtype") is None
        ]

    def at(self, event: Event) -> tuple[PolicyName, ...]:
        """Every global policy that may be in force at this event: names such as "mixed_float16", None for
        "never set", and UNSURE where it is set to something unknown or was for the callers to set."""
        policies: list[PolicyName] = []
        for call in reversed(self._calls_that_change_it):
            if call.order >= event.order or call.context.run not in (0, event.context.run):
                continue
            if are_of_two_kerases(call, event, self._keras):
                continue
            certain = has_happened(call.context.branches, event.context.branches)
            if certain is None:
                continue
            if call in self.calls_that_clear:
                policies.extend(self._of_floatx(call))
            else:
                policies.extend(self.set_by(call) or self._put_back(call) or (UNSURE,))
            if certain:
                break
        else:
            callers_decide = self._callers_decide or not event.context.reached
            policies.append(UNSURE if callers_decide else None)
        return tuple(dict.fromkeys(policies))

    def set_by(self, call: Call) -> tuple[str, ...]:
        """Every global policy that a call may set, as far as the program shows; () if that is not known."""
        return policies_set_by(call) or self._meant.get(call, ())

    @cached_property
    def _meant(self) -> dict[Call, tuple[str, ...]]:
        """What the calls are meant to set whose policies come from outside of the source."""
        unnamed = (call for call in self.calls_that_set if not policies_set_by(call) and not policies_read_for(call))
        asked = [call for call in unnamed if is_api(call.callee, SET_POLICY)]
        if not asked:
            return {}
        from mpdoctor.program.meant_policies import policies_meant  # few programs have any

        return {call: policies_meant(call, self._calls) for call in asked}

    def _put_back(self, call: Call) -> tuple[PolicyName, ...]:
        """The policies that a call restores, as `set_global_policy(before)` does; () for other calls."""
        read = policies_read_for(call)
        return tuple(dict.fromkeys(name for reading in read for name in self.at(reading)))

    def policies_set(self) -> tuple[str | None, ...]:
        """The value of `SourceFacts.policies_set`, from the events."""
        policies: list[str | None] = []
        for call in self.calls_that_set:
            named = policies_set_by(call)
            is_certain = len(named) == 1 and all(branch.only for branch in call.context.branches)
            policies.append(named[0] if is_certain else None)
        return tuple(dict.fromkeys(policies))

    def unknown(self) -> tuple[Location, ...]:
        """What the events say for `policies_unknown`. A function that nobody calls gets its policy from callers that
        are not seen; a line that is given a known one by another call is about that one, and a command line's default
        that is no policy raises (MP104)."""
        named = {
            call.location
            for call in self.calls_that_set
            if self.set_by(call) or policies_read_for(call) or is_no_policy_by_default(call, self._keras)
        }
        return tuple(
            dict.fromkeys(
                call.location
                for call in self.calls_that_set
                if is_api(call.callee, SET_POLICY) and call.context.reached and call.location not in named
            )
        )
