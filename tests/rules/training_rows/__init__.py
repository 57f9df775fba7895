"""Rows of test_training_rules.py: (code, id, facts, what the message or the help holds)."""

from __future__ import annotations

from typing import Any

Row = tuple[str, str, "dict[str, Any]", "tuple[str, ...] | str"]
