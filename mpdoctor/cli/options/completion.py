"""What a shell offers when a rule is to be typed: `mpdoctor explain MP3<TAB>`."""

from __future__ import annotations


def rules_from_beginning(beginning: str) -> list[tuple[str, str]]:
    """Codes, each with its name; names, each with its code, once a letter says that a name is meant. A list such as
    `MP1,MP2` is completed at its end."""
    from mpdoctor.rules.registry import all_rules

    before, comma, last = beginning.rpartition(",")
    wanted = last.lower()
    codes = [(rule.code, rule.name) for rule in all_rules() if rule.code.lower().startswith(wanted)]
    names = [(rule.name, rule.code) for rule in all_rules() if rule.name.startswith(wanted)]
    return [(before + comma + text, what) for text, what in codes or names]
