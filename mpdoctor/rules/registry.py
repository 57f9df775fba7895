"""Finds the rules by walking this package, and runs them over facts.

A rule is a module `<family>/mp201_half_precision_output.py` with a docstring, a `SEVERITY`, the Keras it speaks
about (`KERAS`), and up to six functions, one for each kind of facts: `in_source`, `in_model`, `in_saved_graph`,
`in_training`, `in_failure`, and `in_suppression` for ignore comments once all others have spoken. Each takes facts and
yields findings; none of them looks at anything else.

What a rule has to do with other rules it declares itself, in constants of its module; `Rule` says what each means.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from types import ModuleType
from typing import Any, Literal

from mpdoctor import rules
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Crashed, Finding, Severity
from mpdoctor.program.breakdown import breakdown_from_error, room_for_frames

_FRAMES = 6000  # Python frames of a rule that goes back through a thousand operations, some 5 for each
STAGES = {
    "in_source": "source",
    "in_suppression": "source",
    "in_model": "model",
    "in_saved_graph": "model",
    "in_training": "training",
    "in_failure": "model",
}
LOOKING_AT_RUNS = ("devices", "training")  # families of rules none of which looks at source

# Of other families the rules that do not look at source either.
OF_RUNS_ALONE = (
    *("mp002", "mp003", "mp004", "mp209", "mp218", "mp313", "mp511", "mp601", "mp605"),
    *("mp703", "mp705", "mp706", "mp707"),
)
Nearness = Literal["line", "model", "training", "zero"]
"""How near two findings must be for one to explain the other: on one source line; about one model of one target; about
one model, where the second was seen in the training alone; or on one source line, where the second saw that a 0 broke
the line's operation."""

# Where the documentation is published, "https://…/", once it is: a link that leads nowhere is worse than none.
PUBLISHED_AT = ""
_FILE = re.compile(r"(.+)\.(?P<family>\w+)\.(?P<code>mp\d{3})_(?P<name>\w+)")


@dataclass(frozen=True)
class Rule:
    """One rule. `keras` holds "2" and "3": the Keras generations in which the defect exists; `stages` says where it is
    seen: "source", "model", "training".

    `explains` (EXPLAINS in the rule's file): the codes of findings that are consequences of this rule's, and how near
    they must be. `is_confirmed_live` (CONFIRMED_LIVE): a live finding without a line, or on another one, confirms the
    one in the source. `never_raises` (NEVER_RAISES): it costs digits, time or what is learned, and explains no error on
    its line. `causes_error` (CAUSES_ERROR): words of the error that its defect ends in, on another line.
    `says_that_it_raised`, `says_that_no_model_came`: it tells how the program ended, and not why.
    `causes_divergence` (CAUSES_DIVERGENCE): it is why weights ran away, unless the finding's own evidence says False
    under this name. `tells_of_divergence` (TELLS_OF_DIVERGENCE): it tells that they did; of several that do the one
    with the smallest number is the primary, 0 of none that does.
    `is_never_what_if`: a float32 program has the defect as well, whatever policy it is forced to.
    `only_in_half` (ONLY_IN_HALF): what it finds in a source is no defect on a path that computes in float32. A weight
    or a cast that names a 16-bit dtype is one anyway.
    `shows_in_forced_loops` (SHOWS_IN_FORCED_LOOPS): the source of a custom loop in float32 shows that it would have the
    defect under mixed_float16, and its run under that policy does not.
    `in_light_of` (a function of this name): what is left of a finding in the source once a training has been measured,
    `in_light_of(finding, training)`; the finding itself where the training says nothing about it.
    `fixes` (FIXES): whether its findings in the source may carry edits that are "safe" (the program means the same, or
    raised before), or "unsafe"."""

    code: str
    name: str
    family: str
    severity: Severity
    keras: tuple[str, ...]
    docs: str
    looks: dict[str, Callable[[Any], Iterable[Finding]]]
    stages: tuple[str, ...] = ()
    explains: Mapping[str, Nearness] = field(default_factory=dict)
    is_confirmed_live: bool = False
    never_raises: bool = False
    causes_error: str = ""
    says_that_it_raised: bool = False
    says_that_no_model_came: bool = False
    causes_divergence: bool = False
    tells_of_divergence: int = 0
    is_never_what_if: bool = False
    only_in_half: bool = False
    shows_in_forced_loops: bool = False
    fixes: tuple[str, ...] = ()
    in_light_of: Callable[[Finding, TrainingFacts], Finding] | None = None

    @property
    def speaks_of_the_error(self) -> bool:
        """Whether it reads an error that was raised, and says why."""
        return "in_failure" in self.looks and not self.says_that_it_raised and not self.says_that_no_model_came

    @property
    def summary(self) -> str:
        """The first paragraph of the documentation, on one line."""
        return " ".join(self.docs.split("\n\n", 1)[0].split())

    @property
    def url(self) -> str:
        """The rule's page in the published documentation, "" while there is none."""
        return self.page_at(PUBLISHED_AT)

    def page_at(self, site: str) -> str:
        """The rule's page in the documentation that is published at this address, "" for none."""
        return f"{site.rstrip('/')}/rules/{self.name}/" if site else ""

    def speaks_about(self, keras: Keras | None) -> bool:
        return keras is None or ("3" if keras.is_keras3 else "2") in self.keras


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of its code.

    Raises ImportError if two files claim one code and AttributeError if a rule file registers nothing."""
    return tuple(_rule(file.string) for file in _files())


@cache
def codes_and_names() -> tuple[tuple[str, str], ...]:
    """The (code, name) of every rule, sorted by code. No rule is imported for them.

    Raises ImportError if two files claim one code."""
    return tuple((file["code"].upper(), _name(file)) for file in _files())


def rules_with_codes(codes: Collection[str]) -> tuple[Rule, ...]:
    """The rules with these codes, sorted by code. No other rule is imported."""
    return tuple(_rule(module) for code, module in _modules().items() if code in codes)


def rule_with_code(code: str) -> Rule:
    """The rule with this code. Raises KeyError where there is none. No other rule is imported."""
    return _rule(_modules()[code])


def rule_by_code_or_name(text: str) -> Rule | None:
    """The rule with this code or name, None if there is none. No other rule is imported."""
    wanted = text.strip().lower()
    return next((_rule(file.string) for file in _files() if wanted in (file["code"], _name(file))), None)


@cache
def _modules() -> Mapping[str, str]:
    """The modules of all rules by code, in the order of these."""
    return {file["code"].upper(): file.string for file in _files()}


@cache
def _files() -> tuple[re.Match[str], ...]:
    """The modules of rules, by their names, in the order of their codes."""
    by_code: dict[str, re.Match[str]] = {}
    for module in pkgutil.walk_packages(rules.__path__, rules.__name__ + "."):
        match = _FILE.fullmatch(module.name)
        if match is None:
            continue
        other = by_code.setdefault(match["code"], match)
        if other is not match:
            raise ImportError(f"two files claim {match['code'].upper()}: {_name(match)} and {_name(other)}")
    return tuple(by_code[code] for code in sorted(by_code))


def _name(file: re.Match[str]) -> str:
    return file["name"].replace("_", "-")


@cache
def _rule(module_name: str) -> Rule:
    match = _FILE.fullmatch(module_name)
    assert match is not None, "it is one of `_files`"
    return _rule_from_module(importlib.import_module(module_name), match)


def _rule_from_module(module: ModuleType, match: re.Match[str]) -> Rule:
    looks = {name: getattr(module, name) for name in STAGES if hasattr(module, name)}
    if not looks or not module.__doc__:
        raise AttributeError(f"{module.__name__} has no docstring, or none of {', '.join(STAGES)}")
    return Rule(
        code=match["code"].upper(),
        name=_name(match),
        family=match["family"],
        severity=module.SEVERITY,
        keras=getattr(module, "KERAS", ("2", "3")),
        docs=module.__doc__.strip(),
        looks=looks,
        stages=_stages(looks, getattr(module, "FAILS_IN", ("model",))),
        explains=getattr(module, "EXPLAINS", {}),
        is_confirmed_live=getattr(module, "CONFIRMED_LIVE", False),
        never_raises=getattr(module, "NEVER_RAISES", False),
        causes_error=getattr(module, "CAUSES_ERROR", ""),
        says_that_it_raised=getattr(module, "SAYS_THAT_IT_RAISED", False),
        says_that_no_model_came=getattr(module, "SAYS_THAT_NO_MODEL_CAME", False),
        causes_divergence=getattr(module, "CAUSES_DIVERGENCE", False),
        tells_of_divergence=getattr(module, "TELLS_OF_DIVERGENCE", 0),
        is_never_what_if=getattr(module, "NEVER_WHAT_IF", False),
        only_in_half=getattr(module, "ONLY_IN_HALF", False),
        shows_in_forced_loops=getattr(module, "SHOWS_IN_FORCED_LOOPS", False),
        fixes=getattr(module, "FIXES", ()),
        in_light_of=getattr(module, "in_light_of", None),
    )


def _stages(looks: Iterable[str], fails_in: tuple[str, ...]) -> tuple[str, ...]:
    """The stages in which a rule is seen, in their order. A failure is seen where the program fails: a rule says in
    `FAILS_IN` if that is not (only) before training."""
    seen = {stage for name in looks for stage in (fails_in if name == "in_failure" else (STAGES[name],))}
    return tuple(stage for stage in ("source", "model", "training") if stage in seen)


def _stage_of(kind: str, facts: Any) -> str:
    return "training" if kind == "in_failure" and facts.in_training else STAGES[kind]


@cache
def _rules_that_may_look(kind: str) -> tuple[Rule, ...]:
    """The rules that may look at this kind of facts: for a source, those that look at runs alone are not imported."""
    if STAGES[kind] != "source":
        return all_rules()
    looking = (f for f in _files() if f["family"] not in LOOKING_AT_RUNS and f["code"] not in OF_RUNS_ALONE)
    return tuple(_rule(file.string) for file in looking)


def _is_of_float32_alone(rule: Rule, facts: Any, finding: Finding) -> bool:
    """Whether what is wrong in 16 bits alone stands where the program computes in float32."""
    if not rule.only_in_half:
        return False
    from mpdoctor.semantics.source.programs.float32_paths import runs_in_float32_alone

    return runs_in_float32_alone(facts, finding.location)


def _completed(finding: Finding, rule: Rule, kind: str, facts: Any) -> Finding:
    """The finding with what its rule leaves out: code, name, severity and stage."""
    return dataclasses.replace(
        finding,
        code=rule.code,
        name=rule.name,
        severity=finding.severity or rule.severity,
        stage=finding.stage or _stage_of(kind, facts),
    )


def findings_from_facts(
    kind: str, facts: Any, keras: Keras | None, chosen: Callable[[Rule], bool]
) -> Iterator[Finding | Crashed]:
    """Run every chosen rule that looks at this kind of facts ("in_source", …) and fill in what the rule leaves out.

    A rule that breaks yields a Crashed and the others go on."""
    for rule in _rules_that_may_look(kind):
        look = rule.looks.get(kind)
        if look is None or not rule.speaks_about(keras) or not chosen(rule):
            continue
        try:
            with room_for_frames(_FRAMES):
                for finding in look(facts):
                    if kind == "in_source" and _is_of_float32_alone(rule, facts, finding):
                        continue
                    yield _completed(finding, rule, kind, facts)
        except Exception as error:  # a rule's defect is ours: it is shown, and ends the run with exit status 3
            broken = breakdown_from_error("", error)
            yield Crashed(rule.code, f"{kind} ({broken.where})", broken.error)
