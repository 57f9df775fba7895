"""What a package index is told beside pyproject.toml: a README that it can show, and where the project is kept.

The README's pictures and links lead to files beside it, which an index does not have. A release says where they are:
`MPDOCTOR_REPOSITORY` (https://host/owner/name) and `MPDOCTOR_TAG`, set by .github/workflows/release.yml. A build that
is given neither names no URL, and writes the caption where a picture or a link would be broken.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
BESIDE = re.compile(r"(!?)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")  # ![caption](file) and [text](file)


def readme_for_index(readme: str, repository: str, tag: str) -> str:
    """Pictures and links to files of the repository, as they are at this tag."""

    def elsewhere(link: re.Match[str]) -> str:
        is_picture, words, file = link.groups()
        if not repository:
            return f"*{words}*" if is_picture else words
        return f"{is_picture}[{words}]({repository}/{'raw' if is_picture else 'blob'}/{tag}/{file})"

    prose_and_code = FENCED.split(readme)
    prose_and_code[::2] = [BESIDE.sub(elsewhere, prose) for prose in prose_and_code[::2]]
    return "".join(prose_and_code)


def urls_of(repository: str, tag: str) -> dict[str, str]:
    if not repository:
        return {}
    return {
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changes": f"{repository}/blob/{tag}/CHANGELOG.md",
    }


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        repository, tag = os.environ.get("MPDOCTOR_REPOSITORY", ""), os.environ.get("MPDOCTOR_TAG", "HEAD")
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = readme_for_index(readme, repository.rstrip("/"), tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls_of(repository.rstrip("/"), tag)
