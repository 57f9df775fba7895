"""The bytes of protocol buffers, written by hand."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """A number in as many bytes as it takes, seven bits in each, the lowest first."""
    text = b""
    while number > 127:
        text, number = text + bytes([number & 127 | 128]), number >> 7
    return text + bytes([number])
