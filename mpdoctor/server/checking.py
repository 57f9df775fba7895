"""Checks the text of an editor, saved or not, with the settings of its project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from mpdoctor.diagnosis import diagnose_with_sources
from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.fixes.choices import Sources
from mpdoctor.progress import SilentProgress
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.project.targets import target_from_content
from mpdoctor.rules.registry import codes_and_names
from mpdoctor.settings.options import Settings, names_rule
from mpdoctor.settings.pyproject import Configuration, ConfigurationError, configuration_above
from mpdoctor.source.kept_sources import KeptSources
from mpdoctor.source.reading import declared_encoding


@dataclass(frozen=True, slots=False)
class Checked:
    """One text and what was found in it.

    path
        Absolute; `shown` is how findings name it.
    diagnosis, sources
        None and {} where its project leaves the file out.
    """

    path: Path
    shown: str
    text: str
    settings: Settings
    diagnosis: Diagnosis | None = None
    sources: Sources = field(default_factory=dict)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of this text; a finding in an imported file is reported when that file is open."""
        findings = self.diagnosis.findings if self.diagnosis is not None else ()
        return tuple(
            finding for finding in findings if finding.location is not None and finding.location.path == self.shown
        )

    @property
    def is_unreadable(self) -> bool:
        """Whether Python cannot parse the text: most often it is being typed."""
        facts = self.sources.get(self.shown)
        return facts is not None and facts.unreadable is not None

    @property
    def imported(self) -> frozenset[Path]:
        """The other files that the findings hang on."""
        return frozenset(Path(name).absolute() for name in self.sources) - {self.path}


def checked(path: Path, text: str, others: Mapping[Path, str], kept: KeptSources | None = None) -> Checked:
    """Check one text with the settings of its project. Imports are read from `others`, the other texts open in the
    editor, or from disk. No code is run. `kept`: files that earlier checks have parsed.

    Raises ConfigurationError where [tool.mpdoctor] is invalid."""
    configured = _configuration(path)
    settings = Settings(
        (target_from_content(bytes_from_text(text), str(path)),),
        static=True,
        keras=configured.keras,
        assume_mixed=bool(configured.assume_mixed),
        select=configured.select or (),
        ignore=configured.ignore or (),
        per_file_ignores=configured.per_file_ignores,
        docs_url=configured.docs_url,
        unsaved={other: bytes_from_text(its) for other, its in others.items() if other != path},
        cache=False,
        kept=kept,
    )
    shown = shown_path(str(path))
    if any(patterns.match(path) for patterns in configured.exclude):
        return Checked(path, shown, text, settings)
    diagnosis, sources = diagnose_with_sources(settings, SilentProgress())
    return Checked(path, shown, text, settings, diagnosis, sources)


def bytes_from_text(text: str) -> bytes:
    """The text in the encoding that its first lines declare, in which it will be read again."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        return text.encode(declared_encoding(data))
    except (SyntaxError, LookupError, ValueError):
        return data


def _configuration(path: Path) -> Configuration:
    configured = configuration_above(path.parent)
    unknown = configured.unknown_rules(lambda text: any(names_rule(text, *rule) for rule in codes_and_names()))
    for wrong, setting in unknown:
        raise ConfigurationError(f"{configured.place(setting)} {setting}: there is no rule {wrong!r}.")
    return configured
