"""Mended: the result of `mpdoctor mend`, its edits and the diagnoses before and after them."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.finding import Diagnosis, Edit, Finding


@dataclass(frozen=True)
class NeededEdit:
    """Edits that are made together because of one finding, in places of the files as they lie on the disk.

    code
        The rule's; "" for what the user asked for.
    safe
        Whether the program means the same afterwards, or raised before."""

    title: str
    safe: bool
    code: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Mended:
    """A program before and after mending, and the edits between them.

    before, after
        Of the program as it lies on the disk, and with the edits.
    is_healthy
        Whether nothing at warning or above remains in `after`, and its training looks sound.
    rounds, examinations
        How often edits were made and the program examined with them; how often it was examined in all.
    edits
        Those that are needed: without any one of them a finding comes back or the training looks worse.
    patch
        The same as a unified diff, which `git apply` takes; "" without edits.
    tried
        (the rule's code, what was done) of edits that brought nothing.
    stopped
        What ended the program, with some of those, where it had come to no such end before.
    hindered
        Why something could not be edited, in clauses.
    policy
        The global policy that the program was to be switched to, "" where it was to stay.
    policy_in_force
        Whether layers compute as that policy says in `after`.
    own_code_of
        The classes that were given float32 for their own code alone, and hold layers that follow the global policy.
    """

    before: Diagnosis
    after: Diagnosis
    is_healthy: bool
    rounds: int
    examinations: int
    edits: tuple[NeededEdit, ...] = ()
    patch: str = ""
    tried: tuple[tuple[str, str], ...] = ()
    hindered: tuple[str, ...] = ()
    policy: str = ""
    policy_in_force: bool = True
    stopped: tuple[Finding, ...] = ()
    own_code_of: tuple[str, ...] = ()
