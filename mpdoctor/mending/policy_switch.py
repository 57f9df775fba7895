"""`mend --policy`: the edits that set another global policy, and whether that policy was then in force."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.finding import Diagnosis
from mpdoctor.mending.draft import CannotEdit, Proposal
from mpdoctor.mending.rounds import Seen
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import Target
from mpdoctor.semantics.source.edits.policies import switching_edits
from mpdoctor.source import facts_with_imports
from mpdoctor.source.modules import Files


def switch_to(policy: str, target: Target, unsaved: Mapping[Path, bytes]) -> Callable[[Seen], list[Proposal]]:
    """The edits that switch a program whose diagnosis does not show this policy in force."""

    def asked(seen: Seen) -> list[Proposal]:
        """The edits that set the policy; none where it is in force already. Raises CannotEdit."""
        diagnosis, _ = seen
        if is_in_force(policy, diagnosis):
            return []
        if target.path is None:
            raise CannotEdit(f"{target.id} names a module, and not the file to edit: name that")
        path = target.path.absolute()
        facts = facts_with_imports(path, shown_path(str(path)), Files(unsaved))
        keras = diagnosis.targets[0].keras
        by_path = {source.path: dataclasses.replace(source, keras=keras) for source in facts.values()}
        edits = switching_edits(by_path[shown_path(str(path))], policy, by_path.get)
        if edits is None:
            raise CannotEdit("where its policy is set cannot be edited; set it by hand, before the first layer")
        return [Proposal(f"Set the global policy to {policy}", safe=False, code="", edits=edits)]

    return asked


def is_in_force(policy: str, diagnosis: Diagnosis) -> bool:
    """Whether layers compute as this policy says: some in its 16 bits, or none in any."""
    dtypes = {layer.compute_dtype for _, model in diagnosis.models for layer in model.layers if layer.follows_policy}
    wanted = policy.removeprefix("mixed_")
    if not dtypes:
        return False
    return wanted in dtypes and not (dtypes & set(HALF)) - {wanted}
