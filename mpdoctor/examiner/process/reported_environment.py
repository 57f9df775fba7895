"""What an examination reports of the interpreter, TensorFlow and the devices, as they are at that moment."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

from mpdoctor.examiner.protocol.event_kinds import Environment

if TYPE_CHECKING:
    from mpdoctor.examiner.protocol.events import Events
    from mpdoctor.facts.machine.devices import DeviceFacts
    from mpdoctor.facts.machine.environment import EnvironmentFacts


class ReportedEnvironment:
    """The environment of one examination, from the import of TensorFlow on.

    run_as
        The command by which Python runs the script, where it is not `python FILE`.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self.run_as = ""
        self._environment: EnvironmentFacts | None = None
        self._devices: tuple[DeviceFacts, ...] | None = None

    def note_tensorflow(self, module: ModuleType) -> None:
        """TensorFlow has just been imported."""
        from mpdoctor.examiner.process.environment import environment_of_interpreter, with_tensorflow

        self._environment = with_tensorflow(environment_of_interpreter(), module)
        self.report()

    def report(self) -> None:
        """Send it again: variables may be set, and devices be known, later than TensorFlow is imported."""
        from mpdoctor.examiner.process.environment import as_of_now

        if self._environment is not None:
            now = as_of_now(self._environment, self._devices or ())
            self._events.send(Environment(replace(now, run_as=self.run_as)))

    def report_at_end(self) -> None:
        """Send it with its devices, also of a program that made no model."""
        if self._environment is not None:
            self.devices(program_has_computed=False)
        self.report()

    def devices(self, program_has_computed: bool) -> tuple[DeviceFacts, ...]:
        """The devices of TensorFlow, looked up once."""
        if self._devices is None:
            from mpdoctor.examiner.process.devices import devices_from_tensorflow

            self._devices = devices_from_tensorflow(program_has_computed)
        return self._devices
