"""Calls that set the global policy: which they are, for which Keras, and whether they have happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from mpdoctor.facts.half_dtypes import HALF_POLICIES, MIXED
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.knowledge.policy_names import is_policy_name
from mpdoctor.program.command_line import is_from_command_line, without_command_line
from mpdoctor.program.context import Branch
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Event
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, agreed, is_api, known, options

SET_POLICY = "keras.mixed_precision.set_global_policy"
READ_POLICY = "keras.mixed_precision.global_policy"
SET_FLOATX = "keras.backend.set_floatx"
PRIVATE_KERAS = "tensorflow.python.keras"
FIRST_WITH_PRIVATE_KERAS = (
    2,
    6,
)  # the TensorFlow whose `tf.keras` is another package; measured in 2.4 and 2.10 to 2.21
SETTING = (SET_POLICY, SET_FLOATX)
# Keras 3 forgets the global policy there (3.0, 3.15), and makes another of floatx; Keras 2 keeps it (2.4 to 2.15).
CLEARING = ("keras.backend.clear_session", "keras.utils.clear_session")


class Unsure:
    """The policy may be any: it is set from something that is not known, or by callers that are not seen."""

    def __repr__(self) -> str:
        return "UNSURE"


UNSURE = Unsure()
PolicyName = Union[str, None, Unsure]


def sets_policy(call: Call) -> bool:
    """Whether a call sets the global policy, or floatx."""
    return isinstance(call.callee, Api) and call.callee.is_(*SETTING)


def makes_policy(call: Call) -> bool:
    return isinstance(call.callee, Api) and call.callee.is_(POLICY, "keras.DTypePolicy")


def policies_set_by(call: Call) -> tuple[str, ...]:
    """Every global policy that a call may set; () if that is not known. A 16-bit policy that is the default on the
    command line counts as set; a default of another kind does not, since the code may be meant for other arguments."""
    given = policy_given(call)
    named = () if is_policy_of_command_line(call) else policies_named(given)
    return named or _half_by_default(given)


def policies_read_for(call: Call) -> tuple[Call, ...]:
    """The `global_policy()` calls whose result a call sets, or the name of it; () where it may set anything else."""
    given = policy_given(call)
    read = [
        choice
        for option in options(given)
        for choice in options(option.of if isinstance(option, Attribute) and option.name == "name" else option)
    ]
    calls = tuple(choice for choice in read if isinstance(choice, Call) and is_api(choice.callee, READ_POLICY))
    return calls if len(calls) == len(read) else ()


def policy_given(call: Call) -> Value | None:
    """What a call sets as the global policy."""
    return call.argument(0, "policy") or call.keyword("dtype_policy")


def is_policy_of_command_line(call: Call) -> bool:
    """Whether what a call sets is what the command line says, or a policy by that name."""
    given = policy_given(call)
    name = given.argument(0, "name") if isinstance(given, Call) and makes_policy(given) else given
    return any(is_from_command_line(option) for option in options(name))


def _half_by_default(given: Value | None) -> tuple[str, ...]:
    made = given if isinstance(given, Call) and makes_policy(given) else None
    name = given if made is None else made.argument(0, "name")
    defaults = without_command_line(name)
    are_known = all(isinstance(default, Known) for default in defaults)
    half = tuple(name for name in map(known, defaults) if are_known and name in HALF_POLICIES)
    return half or tuple(_mixed_in_tables(name))


def _mixed_in_tables(name: Value | None) -> Iterator[str]:
    """The policies of mixed precision in a table of the program from which the command line chooses."""
    for option in options(name):
        if isinstance(option, Item) and isinstance(option.of, Collection) and is_from_command_line(option):
            yield from (policy for policy in MIXED for item in option.of.items if known(item) == policy)


def is_no_policy_by_default(call: Call, keras: Keras) -> bool:
    """Whether what it sets with no more than the command line's defaults is the name of no policy."""
    defaults = without_command_line(call.argument(0, "policy"))
    names = [known(default) for default in defaults]
    return bool(names) and all(isinstance(name, str) and not is_policy_name(name, keras) for name in names)


def library_of(value: Value, keras: Keras) -> str | None:
    """Which of the libraries that have a global policy of their own a name, or what a class of the user's derives
    from, belongs to: "keras", "tf_keras" or "tensorflow.python.keras"; None where that is not certain. `tf.keras` is
    one of the first two."""
    if isinstance(value, Defined) and isinstance(value.of, ClassFacts):
        libraries = {library_of(base, keras) for base in value.of.library_bases()} - {None}
        return agreed(libraries)
    if not isinstance(value, Api) or not value.name.startswith("keras."):
        return None
    if value.root == "tensorflow":
        if value.spelled.startswith("tensorflow.python"):
            return PRIVATE_KERAS if _is_of_private_keras(value.spelled, keras) else None
        return "tf_keras" if keras.package == "tf_keras" else "keras"
    return value.root if value.root in ("keras", "tf_keras") else None


def _is_of_private_keras(spelled: str, keras: Keras) -> bool:
    """Whether a private name of TensorFlow's is of the Keras that it still holds, and which is no longer `tf.keras`."""
    is_older = bool(keras.tensorflow_release) and keras.tensorflow_release < FIRST_WITH_PRIVATE_KERAS
    return spelled.startswith(f"{PRIVATE_KERAS}.") and not is_older


def are_of_two_kerases(call: Call, event: Event, keras: Keras) -> bool:
    if not isinstance(event, Call):
        return False
    one, other = library_of(call.callee, keras), library_of(event.callee, keras)
    return one is not None and other is not None and one != other


def has_happened(setting: tuple[Branch, ...], asking: tuple[Branch, ...]) -> bool | None:
    """Whether the setting has happened for certain (True), perhaps (False), or not on this path (None)."""
    arms = {branch.statement: branch.taken for branch in asking}
    certain = True
    for branch in setting:
        if branch.statement not in arms:
            certain = certain and branch.only
        elif arms[branch.statement] is not branch.taken:
            return None
    return certain
