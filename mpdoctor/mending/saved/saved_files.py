"""A saved model, mended or converted: a new file with other dtype policies and the same weights.

check       the file as it is, trained for a moment on made-up data
convert     with a policy that was asked for: the layers that carry the file's own one get it
heal        the layers that findings and tried remedies name get float32, until nothing is found or nothing helps
leave out   what the file is as well without
compare     what both files put out for the same inputs

Each is judged by examining a file that was really written. The file that was given is only read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mpdoctor.diagnosis import diagnose
from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import SavedFile, saved_file_from_path
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.saved.file import OutputFacts
from mpdoctor.finding import Diagnosis
from mpdoctor.mended_file import ChangedLayer, MendedFile, MovedOutput
from mpdoctor.mending.health import failing, health_of, is_healthy, is_no_worse
from mpdoctor.mending.saved.diagnosed_layers import layers_made_by_code, layers_named_by
from mpdoctor.mending.saved.moved_outputs import moved_outputs
from mpdoctor.mending.saved.refused_targets import Refused, path_to_read, refusal_to_overwrite
from mpdoctor.mending.saved.saved_copies import put_in_place, refuse_unreadable, write_copy
from mpdoctor.mending.saved.saved_optimizers import has_loss_scaling, is_compiled, without_loss_scaling
from mpdoctor.mending.saved.saved_policies import (
    FLOAT32,
    IN_HALF,
    SavedLayer,
    entry_of,
    layers_in,
    layers_to_convert,
    with_policies,
    with_their_parts,
)
from mpdoctor.progress import Progress
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings

MOST_ROUNDS = 8
MOST_CHECKS = 40
FLOAT16 = ("float16", "mixed_float16")


Outputs = tuple[tuple[OutputFacts, ...], str]


@dataclass(frozen=True)
class Examinations:
    """How a saved model is examined. `check` gives the diagnosis that the command `check` would give; `outputs` the
    model's outputs for made-up inputs, or why there are none."""

    check: Callable[[Target], Diagnosis]
    outputs: Callable[[Target], Outputs]


def mend_saved_model(settings: Settings, output: Path, policy: str, progress: Progress) -> MendedFile:
    """Write a new file to `output`, whose layers compute by `policy` unless that is "", and heal it.

    Raises Refused where no file can be written, OSError where writing fails."""
    # a saved model keeps the policies of its layers: none is forced
    own = replace(settings, policy="auto", what_if=False)
    examinations = Examinations(
        check=lambda target: diagnose(replace(own, targets=(target,)), progress),
        outputs=lambda target: _outputs(target, own, progress),
    )
    return new_file(settings.targets[0], output, policy, examinations)


def new_file(target: Target, output: Path, policy: str, examinations: Examinations) -> MendedFile:
    """Like `mended_file`, with the function that examines each file as a parameter."""
    path = path_to_read(target, output)
    identity = _identity(path.stat())
    try:
        refuse_unreadable(path)
        before = examinations.check(target)
        if not before.models:
            return MendedFile(before, is_healthy=False, output=str(output), policy=policy)
        with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder:
            saved = saved_file_from_path(str(path), folder)
            mender = _Mender(target, saved, output, Path(folder), examinations)
            mended = mender.mended(before, policy)
            if mender.written is not None:
                if _identity(path.stat()) != identity:
                    raise Refused(f"{path.name} was changed while it was examined: no new file was written.")
                put_in_place(mender.written, output)
    except Unusable as error:
        raise Refused(str(error)) from None
    except FileExistsError:
        raise Refused(refusal_to_overwrite(output)) from None
    return mended


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# --- the work ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Attempt:
    """A file and what its examination showed.

    path
        None for the file that was given.
    healing
        The layers that got float32.
    unwrapped
        Whether its optimizer lost a wrapper.
    """

    path: Path | None
    healing: frozenset[str]
    wanted: Mapping[str, str]
    unwrapped: bool
    diagnosis: Diagnosis


class _Mender:
    """`written` is the file to keep, None where none is."""

    def __init__(
        self, target: Target, saved: SavedFile, output: Path, folder: Path, examinations: Examinations
    ) -> None:
        self._target, self._saved = target, saved
        self._output, self._folder, self._examinations = output, folder, examinations
        self._layers = layers_in(saved.configuration)
        self._by_path = {layer.path: layer for layer in self._layers}
        self._converted: dict[str, str] = {}
        self._known: dict[frozenset[str], _Attempt] = {}
        self._checks = 0
        self.written: Path | None = None

    def mended(self, before: Diagnosis, policy: str) -> MendedFile:
        kept: tuple[SavedLayer, ...] = ()
        if policy:
            self._converted, kept = layers_to_convert(self._saved, self._layers, policy)
        if not self._converted and not (self._drops_wrapper({}) and any(failing(before))):
            self._known[frozenset()] = _Attempt(None, frozenset(), {}, unwrapped=False, diagnosis=before)
        best = self._without_needless(self._best_attempt(self._attempt(frozenset())))
        result = MendedFile(
            before,
            is_healthy(best.diagnosis),
            str(self._output),
            policy,
            examinations=self._checks,
            kept=tuple((layer.path, layer.kept_because) for layer in kept),
        )
        if best.path is None:
            return result
        self.written = best.path
        after = _diagnosis_of_output(best.diagnosis, self._output)
        moved, not_compared = self._moved_outputs(best)
        return replace(
            result,
            after=after,
            changed=tuple(self._changes(best.wanted)),
            healing=tuple(layer.path for layer in self._layers if layer.path in best.healing),
            made_by_code=tuple(layers_made_by_code(after, self._by_path)),
            unwrapped=best.unwrapped,
            policy_to_set=policy if self._has_bare_optimizer(best) else "",
            new_state=self._loses_state(best.wanted),
            weights_in_half=any(self._by_path[path].policy in HALF for path in best.wanted),
            moved=moved,
            not_compared=not_compared,
        )

    # --- trying -------------------------------------------------------------------------------------------------------
    def _attempt(self, healing: frozenset[str]) -> _Attempt:
        """The file with these layers in float32, examined."""
        if healing not in self._known:
            wanted = self._wanted_policies(healing)
            path, diagnosis = self._write_and_examine(wanted)
            self._known[healing] = _Attempt(path, healing, wanted, self._drops_wrapper(wanted), diagnosis)
        return self._known[healing]

    def _wanted_policies(self, healing: frozenset[str]) -> dict[str, str]:
        """The policy that each layer gets in the end, for the layers that change."""
        parts = with_their_parts(self._layers, healing)
        in_float32 = {path: FLOAT32 for path in parts if path in self._by_path and not self._by_path[path].kept_because}
        wanted = {**self._converted, **in_float32}
        return {path: policy for path, policy in wanted.items() if self._by_path[path].policy != policy}

    def _write_and_examine(self, wanted: Mapping[str, str]) -> tuple[Path, Diagnosis]:
        path = self._folder / str(self._checks) / self._output.name
        path.parent.mkdir()
        self._checks += 1
        saved, training = self._saved, self._saved.training
        configuration = with_policies(saved.configuration, wanted, saved.keras_version, saved.form)
        if self._drops_wrapper(wanted):
            configuration, training = without_loss_scaling(configuration, training)
        write_copy(saved, configuration, training, path, drops_state=self._loses_state(wanted))
        return path, self._examinations.check(replace(self._target, id=str(self._output), path=path))

    def _drops_wrapper(self, wanted: Mapping[str, str]) -> bool:
        """Whether the optimizer has a wrapper that scales the loss, and no layer computes in float16."""
        return has_loss_scaling(self._saved.configuration, self._saved.training) and not self._has_float16(wanted)

    def _has_float16(self, wanted: Mapping[str, str]) -> bool:
        return any(wanted.get(layer.path, layer.policy) in FLOAT16 for layer in self._layers)

    def _loses_state(self, wanted: Mapping[str, str]) -> bool:
        """Whether the state of the optimizer is lost: Keras 3 keeps it in another order with a wrapper than without."""
        saved = self._saved
        if saved.keras_version.startswith("2") or not is_compiled(saved.configuration, saved.training):
            return False
        return self._drops_wrapper(wanted) or self._has_float16({}) != self._has_float16(wanted)

    def _has_bare_optimizer(self, attempt: _Attempt) -> bool:
        """Whether the model is compiled without loss scaling while layers of it compute in float16."""
        saved = self._saved
        compiled = is_compiled(saved.configuration, saved.training)
        wrapped = has_loss_scaling(saved.configuration, saved.training)
        return compiled and not wrapped and self._has_float16(attempt.wanted)

    # --- healing ------------------------------------------------------------------------------------------------------
    def _best_attempt(self, start: _Attempt) -> _Attempt:
        """The best of all that were tried; of equals the first, which changes the fewest layers."""
        tried = [start]
        for _ in range(MOST_ROUNDS):
            more = self._candidates(tried[-1])
            if not more:
                break
            tried.append(self._attempt(tried[-1].healing | more))
        return min(tried, key=lambda attempt: health_of(attempt.diagnosis))

    def _candidates(self, attempt: _Attempt) -> frozenset[str]:
        """Layers that compute in 16 bits and that findings, or remedies that healed, name."""
        named = {path for finding in failing(attempt.diagnosis) for path in layers_named_by(finding, attempt.diagnosis)}
        paths = (entry_of(self._layers, path) for path in named)
        return frozenset(path for path in paths if path is not None and self._can_be_float32(path, attempt))

    def _can_be_float32(self, path: str, attempt: _Attempt) -> bool:
        layer = self._by_path[path]
        return not layer.kept_because and attempt.wanted.get(path, layer.policy) in IN_HALF

    def _without_needless(self, attempt: _Attempt) -> _Attempt:
        """Halves of the healing layers are left out, then quarters, then each."""
        size = len(attempt.healing) // 2 or 1
        while attempt.healing and size:
            for group in list(_groups(sorted(attempt.healing), size)):
                fewer = attempt.healing - group
                if group <= attempt.healing and self._checks < MOST_CHECKS:
                    without = self._attempt(fewer)
                    attempt = without if is_no_worse(without.diagnosis, attempt.diagnosis) else attempt
            size //= 2
        return attempt

    # --- the changes, and how far the outputs moved -------------------------------------------------------------------
    def _changes(self, wanted: Mapping[str, str]) -> Iterator[ChangedLayer]:
        for layer in self._by_path.values():
            if layer.path in wanted:
                yield ChangedLayer(layer.path, layer.class_name, layer.policy, wanted[layer.path])

    def _moved_outputs(self, best: _Attempt) -> tuple[tuple[MovedOutput, ...], str]:
        """How far the outputs moved, or why that is not known."""
        both = []
        for target in (self._target, replace(self._target, path=best.path)):
            outputs, problem = self._examinations.outputs(target)
            if problem:
                return (), problem
            both.append(outputs)
        return moved_outputs(*both)


def _groups(paths: list[str], size: int) -> Iterator[frozenset[str]]:
    for first in range(0, len(paths), size):
        yield frozenset(paths[first : first + size])


def _diagnosis_of_output(diagnosis: Diagnosis, output: Path) -> Diagnosis:
    """The diagnosis under the name of the file that will be written."""
    return replace(diagnosis, targets=tuple(replace(target, path=str(output)) for target in diagnosis.targets))


def _outputs(target: Target, settings: Settings, progress: Progress) -> Outputs:
    """What a file puts out, or why it puts out nothing."""
    from mpdoctor.examination.examination_facts import ExaminerCrashed
    from mpdoctor.examination.run import examine

    try:
        run = examine(target, replace(settings, seed=settings.seed or 0), progress, "auto", outputs=True)
    except ExaminerCrashed as crash:
        return (), f"mpdoctor broke: {str(crash).strip().splitlines()[-1]}"
    if run.failure is not None:
        return (), run.failure.message.splitlines()[0] if run.failure.message else "computing them ended the process"
    return run.outputs, "" if run.outputs else run.training_status[1] or "it put out nothing"
