"""The files of mpdoctor that mpdoctor.training consists of: from the repository, or from the source package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("__init__.py", "py.typed", "loss_scale.py")


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        here = Path(self.root)
        source = here / "mpdoctor" if (here / "mpdoctor").is_dir() else here.parents[1] / "mpdoctor"
        files = [source / name for name in FILES] + sorted((source / "training").rglob("*.py"))
        build_data["force_include"].update(
            {str(file): str(Path("mpdoctor") / file.relative_to(source)) for file in files}
        )
