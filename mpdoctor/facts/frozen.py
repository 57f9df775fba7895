"""Facts never change once they were made. The type checker sees to it: Python itself would take four times as long to
make each, and of a large project the source stage makes millions.

    @dataclass(frozen=True, eq=False)   # as from the standard library
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True, slots: bool = True, **options: Any) -> Callable[[type], type]:
        """Facts that compare as equal have equal hashes, as those that Python freezes do. Slots take less room, where
        Python makes them."""
        if sys.version_info >= (3, 10):
            options["slots"] = slots
        return dataclasses.dataclass(eq=eq, unsafe_hash=frozen and eq, **options)
