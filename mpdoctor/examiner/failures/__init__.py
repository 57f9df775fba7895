"""From an exception to facts: what was combined, where, and in which call of the library."""
