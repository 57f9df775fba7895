"""What the source stage's cache keeps of files, as JSON and back."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import AlsoSeen, Edit, Finding, Fix, Severity
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.project.json_rows import Rows

ROWS = Rows(AlsoSeen, Edit, Finding, Fix, Keras, Location, Problem, SavedFile, Severity, SourceFacts)
