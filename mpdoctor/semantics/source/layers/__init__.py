"""Layers as the source makes them: what they compute in, and what is combined in their `call()`."""
