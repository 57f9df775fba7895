"""How much of the operations' time layers take, by the dtype that they compute in, and which layers take most of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from mpdoctor.compared import Compared, PolicyRun
from mpdoctor.facts.examination import ProfileFacts
from mpdoctor.reporters.compared.rows import share_text, time_text
from mpdoctor.reporters.text.style import Style

MOST_NAMED = 3
MUCH = 0.05  # of the operations' time

Seconds = dict[str, float]  # a step


def layer_times(compared: Compared, run: PolicyRun, look: Style) -> Iterator[str]:
    """A sentence on the layers' times; none where the layers of the operations are not known."""
    profiles = _profiles(run)
    if not profiles:
        return
    whole = median(profile.in_operations / profile.steps for profile in profiles)
    (dtype, took), *others = _medians([_by_dtype(profile) for profile in profiles]).items()
    shares = [f"Layers that compute in {dtype} take {share_text(took / whole)} of the operations' time"]
    shares += [f"those in {dtype} {share_text(took / whole)}" for dtype, took in others]
    longest = {path: took for path, took in _seconds_of_layers(run).items() if took >= MUCH * whole}
    before = {} if run is compared.base else _seconds_of_layers(compared.base)
    named = [
        _time_beside_first(path, longest[path], before.get(path), compared, look) for path in list(longest)[:MOST_NAMED]
    ]
    yield f"{', '.join(shares)}{'; longest: ' if named else ''}{', '.join(named)}."


def _profiles(run: PolicyRun) -> list[ProfileFacts]:
    """The profiles of the rounds in which each operation's layer is known."""
    profiles = (timing.profile for timing in run.known)
    return [profile for profile in profiles if profile is not None and profile.layers]


def _seconds_of_layers(run: PolicyRun) -> Seconds:
    """Seconds per layer, the longest first."""
    return _medians([_by_path(profile) for profile in _profiles(run)])


def _by_path(profile: ProfileFacts) -> Seconds:
    return _sums((layer.path, layer.seconds / profile.steps) for layer in profile.layers)


def _by_dtype(profile: ProfileFacts) -> Seconds:
    return _sums((layer.dtype, layer.seconds / profile.steps) for layer in profile.layers)


def _sums(pairs: Iterable[tuple[str, float]]) -> Seconds:
    sums: Seconds = {}
    for key, seconds in pairs:
        sums[key] = sums.get(key, 0.0) + seconds
    return sums


def _medians(rounds: list[Seconds]) -> Seconds:
    keys = dict.fromkeys(key for seconds in rounds for key in seconds)
    medians = {key: median(seconds.get(key, 0.0) for seconds in rounds) for key in keys}
    return dict(sorted(medians.items(), key=lambda item: -item[1]))


def _time_beside_first(path: str, now: float, before: float | None, compared: Compared, look: Style) -> str:
    beside = "" if before is None else f" ({time_text(before)} under {compared.base.policy})"
    return f"{look.name(path, 60)} {time_text(now)} a step{beside}"
