"""Where the pages of rules are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mpdoctor.finding import RuleSummary

_ADDRESS = re.compile(r"https?://[!-~]+")


def pages_from_rules(rules: Iterable[RuleSummary]) -> dict[str, str]:
    """By the code of each rule the address of its page. A saved diagnosis may be anybody's: only an address on the web
    is taken for one."""
    return {rule.code: rule.url for rule in rules if _ADDRESS.fullmatch(rule.url)}
