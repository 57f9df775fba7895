"""Layers as the source makes them: their compute dtypes, and the operands in their `call()`."""
